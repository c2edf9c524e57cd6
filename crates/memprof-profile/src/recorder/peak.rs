//! Which sites the memory belonged to when it was largest.
//!
//! Memory falls only when a collection sweeps, so it is largest when one starts. If the process then uses more than at the
//! last peak, by [`STEP`], the live objects of each cell are noted: what has been counted, without a look at the heap. What
//! they had in bytes is known later. Those that this collection frees are counted with their bytes as they are freed;
//! those that survive it are measured on the heap, as soon as that can be walked ([`Recorder::measured`]).

use rustc_hash::FxHashMap;

use super::{Recorder, Survivors};
use crate::cells::CellId;
use crate::live::Record;
use crate::profile::Amount;
use crate::sessions::SessionId;
use crate::sites::SiteId;

/// How much larger than the last peak a new one is, in percent. A measurement walks the heap, so there may not be one for
/// each collection of a heap that grows; this is how far memory may have been above the peak that is reported.
const STEP: u64 = 10;

/// The process when a collection started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moment {
    /// Bytes of the slots of recorded objects; the recorder fills it in.
    pub slots: u64,
    /// Bytes of malloc that are in use, if known.
    pub malloc: Option<u64>,
    /// Resident set size, if known.
    pub resident: Option<u64>,
    /// Microseconds since the epoch.
    pub time: u64,
}

impl Moment {
    /// Bytes by which peaks are compared: what objects and malloc use. What the process has from the kernel counts only
    /// where malloc does not say what it uses, as it falls late or never.
    fn used(&self) -> u64 {
        match (self.malloc, self.resident) {
            (Some(malloc), _) => malloc + self.slots,
            (None, Some(resident)) => resident,
            (None, None) => self.slots,
        }
    }
}

/// The largest memory of a session.
#[derive(Clone, Debug, Default)]
pub struct Peak {
    /// The process at that moment.
    pub moment: Moment,
    /// What of each site was alive or not yet collected.
    pub sites: FxHashMap<SiteId, Amount>,
}

/// A session whose peak is wanted.
#[derive(Debug, Default)]
pub(super) struct Watch {
    highest: u64,
    /// The next collection counts if it has more at all.
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
    /// The collection that began then has been swept: what it freed is known.
    swept: bool,
}

#[derive(Debug)]
struct NotedCell {
    id: CellId,
    site: SiteId,
    scale: u64,
    live: u64,
    /// What the cell had freed before; once swept, what the collection freed.
    freed: Amount,
}

impl Recorder {
    /// Watches for the peak of a session.
    pub fn watch_peak(&mut self, session: SessionId) {
        self.watches.insert(session, Watch::default());
    }

    /// True if some session's peak is wanted.
    #[inline]
    pub fn watches_peaks(&self) -> bool {
        !self.watches.is_empty()
    }

    /// The next collection is the last that may be the peak of this session.
    pub fn last_peak(&mut self, session: SessionId) {
        if let Some(watch) = self.watches.get_mut(&session) {
            watch.last = true;
        }
    }

    /// A collection starts, and has freed nothing yet. True if there is something to measure when it is over.
    pub fn collection_starts(&mut self, moment: Moment) -> bool {
        let recorded = self.live.slot_bytes();
        let mut watches = std::mem::take(&mut self.watches);
        let mut wanted = false;
        for (session, watch) in &mut watches {
            let sample = self
                .sessions
                .options(*session)
                .map_or(1, |options| options.sample);
            let slots = recorded * u64::from(sample);
            let moment = Moment { slots, ..moment };
            if let Some(noted) = watch.noted.as_mut().filter(|noted| !noted.swept) {
                self.sweep_ended(noted);
            }
            let least = if watch.last {
                watch.highest
            } else {
                watch.highest + watch.highest / 100 * STEP
            };
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
        let cells = self
            .cells_of(session)
            .filter(|(_, cell, _)| cell.live() > 0);
        let cells = cells.map(|(id, cell, scale)| NotedCell {
            id,
            site: cell.site,
            scale,
            live: cell.live(),
            freed: cell.freed,
        });
        Noted {
            moment,
            generation: self.generation,
            cells: cells.collect(),
            swept: false,
        }
    }

    fn sweep_ended(&self, noted: &mut Noted) {
        noted.swept = true;
        for noted in &mut noted.cells {
            let now = self
                .cells
                .get(noted.id)
                .filter(|cell| cell.site == noted.site);
            let now = now.map_or(noted.freed, |cell| cell.freed);
            noted.freed = Amount::new(
                now.objects
                    .saturating_sub(noted.freed.objects)
                    .min(noted.live),
                now.bytes.saturating_sub(noted.freed.bytes),
            );
        }
    }

    /// The sessions that have something to measure, and the last generation of the objects that they need: see [`Recorder::measured`].
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

    /// What is alive of a session's objects that were allocated up to the generation of [`Recorder::to_measure`], and was
    /// measured after the sweep of the collection that then began.
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
            // Freed between the sweep and the walk: like the others.
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
            watch.peak = Some(Peak {
                moment: noted.moment,
                sites,
            });
        }
    }

    /// The largest memory of a session, if it is watched and a collection has started.
    pub fn peak(&self, session: SessionId) -> Option<&Peak> {
        self.watches.get(&session)?.peak.as_ref()
    }
}
