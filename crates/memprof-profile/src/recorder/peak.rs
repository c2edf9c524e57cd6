//! Memory by site when it peaked.
//!
//! Memory falls only when a GC sweeps, so it peaks when one starts. If the process then uses more than at the last peak, by
//! [`STEP`], the live objects of each cell are noted from the counts, without a heap walk. Their bytes become known later:
//! objects freed by this GC are counted as they are freed, and survivors are measured as soon as the heap can be walked
//! ([`Recorder::measured`]).

use rustc_hash::FxHashMap;

use super::{Recorder, Survivors};
use crate::cells::CellId;
use crate::live::Record;
use crate::profile::Amount;
use crate::sessions::SessionId;
use crate::sites::SiteId;

/// Minimum distance of a new peak from the last one, in percent. A measurement walks the heap, so a growing heap can't have one
/// per GC. Memory may have exceeded the reported peak by this much.
const STEP: u64 = 10;

/// The process at the start of a GC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moment {
    /// Bytes of the slots of recorded objects; set by the recorder.
    pub slots: u64,
    /// malloc'ed bytes in use, if known.
    pub malloc: Option<u64>,
    /// Resident set size, if known.
    pub resident: Option<u64>,
    /// Microseconds since the epoch.
    pub time: u64,
}

impl Moment {
    /// Bytes to compare peaks by: those used by objects and malloc. Resident memory counts only where malloc doesn't report its
    /// use, as it falls late or never.
    fn used(&self) -> u64 {
        match (self.malloc, self.resident) {
            (Some(malloc), _) => malloc + self.slots,
            (None, Some(resident)) => resident,
            (None, None) => self.slots,
        }
    }
}

/// The memory peak of a session.
#[derive(Clone, Debug, Default)]
pub struct Peak {
    /// The process at that moment.
    pub moment: Moment,
    /// Objects of each site that were live or not yet collected.
    pub sites: FxHashMap<SiteId, Amount>,
}

/// A session whose peak is wanted.
#[derive(Debug, Default)]
pub(super) struct Watch {
    highest: u64,
    /// The next GC counts if it has more at all.
    last: bool,
    noted: Option<Noted>,
    peak: Option<Peak>,
}

/// The live objects at a moment, before their bytes are known.
#[derive(Debug)]
struct Noted {
    moment: Moment,
    generation: u32,
    cells: Vec<NotedCell>,
    /// The GC that began then has swept: its frees are known.
    swept: bool,
}

#[derive(Debug)]
struct NotedCell {
    id: CellId,
    site: SiteId,
    scale: u64,
    live: u64,
    /// Frees of the cell before; once swept, those of the GC.
    freed: Amount,
}

impl Recorder {
    /// Watches for the peak of a session.
    pub fn watch_peak(&mut self, session: SessionId) {
        self.watches.insert(session, Watch::default());
    }

    /// True if a peak is wanted by some session.
    #[inline]
    pub fn watches_peaks(&self) -> bool {
        !self.watches.is_empty()
    }

    /// The next GC is the last candidate for the peak of this session.
    pub fn last_peak(&mut self, session: SessionId) {
        if let Some(watch) = self.watches.get_mut(&session) {
            watch.last = true;
        }
    }

    /// A GC starts, and has freed nothing yet. True if there is something to measure after it.
    pub fn collection_starts(&mut self, moment: Moment) -> bool {
        let recorded = self.live.slot_bytes();
        let mut watches = std::mem::take(&mut self.watches);
        let mut wanted = false;
        for (session, watch) in &mut watches {
            let sample = self.sessions.options(*session).map_or(1, |options| options.sample);
            let slots = recorded * u64::from(sample);
            let moment = Moment { slots, ..moment };
            if let Some(noted) = watch.noted.as_mut().filter(|noted| !noted.swept) {
                self.sweep_ended(noted);
            }
            let least =
                if watch.last { watch.highest } else { watch.highest + watch.highest / 100 * STEP };
            if moment.used() > least {
                watch.highest = moment.used();
                watch.noted = Some(self.note(*session, moment));
            }
            wanted |= watch.noted.is_some();
        }
        self.watches = watches;
        wanted
    }

    fn note(&self, session: SessionId, moment: Moment) -> Noted {
        let cells = self.cells_of(session).filter(|(_, cell, _)| cell.live() > 0);
        let cells = cells.map(|(id, cell, scale)| NotedCell {
            id,
            site: cell.site,
            scale,
            live: cell.live(),
            freed: cell.freed,
        });
        Noted { moment, generation: self.generation, cells: cells.collect(), swept: false }
    }

    fn sweep_ended(&self, noted: &mut Noted) {
        noted.swept = true;
        for noted in &mut noted.cells {
            let now = self.cells.get(noted.id).filter(|cell| cell.site == noted.site);
            let now = now.map_or(noted.freed, |cell| cell.freed);
            noted.freed = Amount::new(
                now.objects.saturating_sub(noted.freed.objects).min(noted.live),
                now.bytes.saturating_sub(noted.freed.bytes),
            );
        }
    }

    /// Sessions with something to measure, each with the last generation of the objects to include: see [`Recorder::measured`].
    pub fn to_measure(&self) -> Vec<(SessionId, u32)> {
        let watches = self.watches.iter();
        watches
            .filter_map(|(session, watch)| Some((*session, watch.noted.as_ref()?.generation)))
            .collect()
    }

    /// True if the object with this record was allocated in this generation or before.
    pub fn allocated_by(&self, generation: u32, record: Record) -> bool {
        record.age(self.generation) >= self.generation.wrapping_sub(generation)
    }

    /// Adds the live objects of a session, allocated up to the generation of [`Recorder::to_measure`] and measured after the
    /// sweep of the GC that then began.
    pub fn measured(&mut self, session: SessionId, survivors: &Survivors) {
        let Some(mut noted) = (self.watches.get_mut(&session)).and_then(|watch| watch.noted.take())
        else {
            return;
        };
        if !noted.swept {
            self.sweep_ended(&mut noted);
        }
        let mut sites: FxHashMap<SiteId, Amount> = FxHashMap::default();
        for cell in noted.cells {
            let survived = survivors.amounts.get(cell.id.0 as usize);
            let mut known = cell.freed;
            known.add(survived.copied().unwrap_or_default());
            // Objects freed between the sweep and the walk are assumed to be of average size.
            let bytes = match known.objects {
                0 => 0,
                objects => {
                    (u128::from(known.bytes) * u128::from(cell.live) / u128::from(objects)) as u64
                }
            };
            let amount = Amount::new(cell.live * cell.scale, bytes * cell.scale);
            sites.entry(cell.site).or_default().add(amount);
        }
        if let Some(watch) = self.watches.get_mut(&session) {
            watch.peak = Some(Peak { moment: noted.moment, sites });
        }
    }

    /// The memory peak of a session, if it is watched and a GC has started.
    pub fn peak(&self, session: SessionId) -> Option<&Peak> {
        self.watches.get(&session)?.peak.as_ref()
    }
}
