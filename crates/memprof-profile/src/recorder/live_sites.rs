//! What is alive now, for those who watch a process.

use rustc_hash::FxHashMap;

use super::{Record, Recorder, Survivors};
use crate::group::NO_NAME;
use crate::profile::Amount;
use crate::sessions::SessionId;

/// Ages of the live objects of a cell or a site, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LiveAges {
    sum: f64,
    oldest: f64,
}

impl LiveAges {
    fn add(&mut self, other: LiveAges, scale: f64) {
        self.sum += other.sum * scale;
        self.oldest = self.oldest.max(other.oldest);
    }
}

/// The live objects of one class allocated at one line.
#[derive(Clone, Debug, PartialEq)]
pub struct LiveSite {
    /// Path of the file.
    pub file: String,
    /// Line.
    pub line: u32,
    /// Name of the class.
    pub class: String,
    /// Objects, and their memsizes.
    pub live: Amount,
    /// Their mean age in seconds, counted from the GC before their allocation.
    pub mean_age: f64,
    /// Age of the oldest one.
    pub oldest: f64,
}

/// The largest sites, and the sums of all.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LiveSites {
    /// Largest first.
    pub largest: Vec<LiveSite>,
    /// Number of all sites.
    pub sites: usize,
    /// Objects and bytes of all sites.
    pub live: Amount,
}

impl Survivors {
    /// Empty; the objects' ages will be counted at this time, in microseconds since the epoch.
    pub fn aged(now: u64) -> Self {
        Survivors { aged_at: Some(now), ..Survivors::default() }
    }

    /// Adds the age of an object whose generation began at `begun`; 0 if that is unknown.
    pub(super) fn age(&mut self, cell: usize, begun: u64, now: u64) {
        if self.ages.len() <= cell {
            self.ages.resize(cell + 1, LiveAges::default());
        }
        if begun > 0 {
            let age = now.saturating_sub(begun) as f64 / 1e6;
            self.ages[cell].add(LiveAges { sum: age, oldest: age }, 1.0);
        }
    }
}

impl Recorder {
    /// When the generation of the object with this record began, in microseconds since the epoch; 0 if unknown.
    pub(super) fn begun(&self, record: Record) -> u64 {
        self.begun.time(self.generation.wrapping_sub(record.age(self.generation)))
    }

    /// The `most` sites of a session with most live bytes. `survivors` are from [`Survivors::aged`].
    pub fn live_sites(&self, session: SessionId, survivors: &Survivors, most: usize) -> LiveSites {
        let mut rows: FxHashMap<(&str, u32, &str), (Amount, LiveAges)> = FxHashMap::default();
        let mut answer = LiveSites::default();
        for (id, cell, scale) in self.cells_of(session) {
            let index = id.0 as usize;
            let found = survivors.amounts.get(index).copied().unwrap_or_default();
            let Some(site) = self.sites.get(cell.site).filter(|_| found.objects > 0) else {
                continue;
            };
            let live = Amount::new(found.objects * scale, found.bytes * scale);
            let (file, line) = self.sites.location(site.place);
            let file = if file.is_empty() { NO_NAME } else { file };
            let row = rows.entry((file, line, self.sites.class_name(site.class))).or_default();
            row.0.add(live);
            row.1.add(survivors.ages.get(index).copied().unwrap_or_default(), scale as f64);
            answer.live.add(live);
        }
        answer.sites = rows.len();
        let mut rows: Vec<_> = rows.into_iter().collect();
        rows.sort_unstable_by(|(a, (one, _)), (b, (other, _))| {
            other.bytes.cmp(&one.bytes).then_with(|| a.cmp(b))
        });
        rows.truncate(most);
        answer.largest = (rows.into_iter())
            .map(|((file, line, class), (live, ages))| LiveSite {
                file: file.into(),
                line,
                class: class.into(),
                live,
                mean_age: ages.sum / live.objects.max(1) as f64,
                oldest: ages.oldest,
            })
            .collect();
        answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sessions::Options;
    use crate::sites::{FrameKey, Site};

    /// Allocates an object of a line.
    fn allocate(recorder: &mut Recorder, address: u64, line: u32) {
        let segment = recorder.sessions.process_segment().expect("a session is open");
        let key =
            FrameKey { file: "app.rb".into(), label: "work".into(), first_line: 1, native: None };
        let (frame, _) = recorder.sites.frame(key);
        let place = recorder.sites.stack(None, frame, line);
        let class = recorder.sites.class("Page");
        let site = recorder.sites.site(Site { class, place, stack: place, caller: None });
        let cell = recorder.cell(segment, site);
        recorder.allocated(address, cell, || 40);
    }

    #[test]
    fn the_largest_sites_come_first_with_their_ages() {
        let mut recorder = Recorder::new(1);
        recorder.set_generation(7, 1_000_000);
        let session = recorder.open(Options { thread: None, sample: 1, stack: 1, strings: false });
        allocate(&mut recorder, 4000, 10);
        recorder.set_generation(8, 5_000_000);
        for (address, line) in [(4040, 10), (4080, 20), (4120, 30)] {
            allocate(&mut recorder, address, line);
        }
        let mut survivors = Survivors::aged(9_000_000);
        for (address, bytes) in [(4000, 100), (4040, 50), (4080, 900)] {
            let record = recorder.record(address).expect("lives");
            recorder.survives(&mut survivors, record, bytes, || None);
        }
        let answer = recorder.live_sites(session, &survivors, 1);
        assert_eq!((answer.sites, answer.live), (2, Amount::new(3, 1050)));
        let rows: Vec<_> = (answer.largest.iter())
            .map(|row| (row.line, row.live, row.mean_age, row.oldest))
            .collect();
        assert_eq!(rows, [(20, Amount::new(1, 900), 4.0, 4.0)]);
        let all = recorder.live_sites(session, &survivors, 9).largest;
        assert_eq!((all[1].line, all[1].mean_age, all[1].oldest), (10, 6.0, 8.0));
    }
}
