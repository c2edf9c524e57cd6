//! Allocations by mark (see [`crate::sessions`]), that is, by the file being loaded.

use std::collections::BTreeMap;

use super::{Recorder, Survivors};
use crate::profile::Amount;
use crate::sessions::SessionId;

/// Name of the class of instruction sequences.
const CODE: &str = "<iseq>";

/// The objects of one mark.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MarkRow {
    /// The mark; 0 for threads without one.
    pub mark: u32,
    /// All objects. Bytes: memsize, for freed objects at the time of the free.
    pub allocated: Amount,
    /// Objects found live. Bytes: memsize.
    pub retained: Amount,
    /// Instruction sequences among `retained`.
    pub code: Amount,
}

impl Recorder {
    /// The objects of a session by mark, in the order of the marks.
    pub fn marks(&self, session: SessionId, survivors: &Survivors) -> Vec<MarkRow> {
        let mut rows: BTreeMap<u32, MarkRow> = BTreeMap::new();
        for (id, cell, scale) in self.cells_of(session) {
            let Some(segment) = self.sessions.get(cell.segment) else {
                continue;
            };
            let retained = survivors.amounts.get(id.0 as usize).copied();
            let retained = retained.unwrap_or_default();
            let scaled =
                |objects, bytes: u64| Amount::new(objects * scale, bytes.saturating_mul(scale));
            let row = rows.entry(segment.mark).or_default();
            row.mark = segment.mark;
            let bytes = cell.freed.bytes + retained.bytes;
            row.allocated.add(scaled(cell.allocated, bytes));
            row.retained.add(scaled(retained.objects, retained.bytes));
            let site = self.sites.get(cell.site);
            if site.is_some_and(|site| self.sites.class_name(site.class) == CODE) {
                row.code.add(scaled(retained.objects, retained.bytes));
            }
        }
        rows.into_values().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sessions::{Options, SegmentId};
    use crate::sites::{FrameKey, Site, SiteId};

    const OPTIONS: Options = Options { thread: None, sample: 1, stack: 1, strings: false };

    fn site(recorder: &mut Recorder, class: &str) -> SiteId {
        let key = FrameKey {
            file: "boot.rb".into(),
            label: "require".into(),
            first_line: 1,
            native: None,
        };
        let (frame, _) = recorder.sites.frame(key);
        let place = recorder.sites.stack(None, frame, 7);
        let class = recorder.sites.class(class);
        recorder.sites.site(Site { class, place, stack: place, caller: None })
    }

    fn allocate(recorder: &mut Recorder, segment: SegmentId, site: SiteId, address: u64) {
        let cell = recorder.cell(segment, site);
        recorder.allocated(address, cell, || 40);
    }

    #[test]
    fn objects_of_one_line_are_distinguished_by_mark() {
        let mut recorder = Recorder::new(1);
        assert_eq!(recorder.sessions.mark(1, 9), 0, "no session tracks");
        let session = recorder.open(OPTIONS);
        let (code, string) = (site(&mut recorder, CODE), site(&mut recorder, "String"));
        let mut address = 0;
        for (mark, before, strings) in [(5, 0, 1), (6, 5, 2), (5, 6, 3), (0, 5, 4)] {
            assert_eq!(recorder.sessions.mark(1, mark), before);
            let segment = recorder.sessions.segment(1).unwrap();
            for site in std::iter::repeat_n(string, strings).chain([code]) {
                address += 40;
                allocate(&mut recorder, segment, site, address);
            }
        }
        assert!(!recorder.sessions.by_thread());
        recorder.freed(40); // the first string of mark 5
        let mut survivors = Survivors::default();
        for address in (80..=address).step_by(40) {
            let record = recorder.record(address).unwrap();
            recorder.survives(&mut survivors, record, 100, || None);
        }
        let row = |mark, objects: u64, freed: u64, code| MarkRow {
            mark,
            allocated: Amount::new(objects + freed, objects * 100 + freed * 40),
            retained: Amount::new(objects, objects * 100),
            code: Amount::new(code, code * 100),
        };
        assert_eq!(
            recorder.marks(session, &survivors),
            [row(0, 5, 0, 1), row(5, 5, 1, 2), row(6, 3, 0, 1)]
        );
    }

    #[test]
    fn threads_inherit_the_mark_and_sessions_of_a_thread_keep_it() {
        let mut recorder = Recorder::new(1);
        let process = recorder.open(OPTIONS);
        recorder.sessions.mark(1, 5);
        recorder.sessions.thread_started(1, 2);
        let inner = recorder.open(Options { thread: Some(2), ..OPTIONS });
        recorder.finish(inner);
        recorder.close(inner);
        let string = site(&mut recorder, "String");
        for (thread, address) in [(1, 40), (2, 80), (3, 120)] {
            let segment = recorder.sessions.segment(thread).unwrap();
            allocate(&mut recorder, segment, string, address);
        }
        let rows = recorder.marks(process, &Survivors::default());
        let counts = rows.iter().map(|row| (row.mark, row.allocated.objects));
        assert_eq!(counts.collect::<Vec<_>>(), [(0, 1), (5, 2)]);
        recorder.close(process);
        assert!(!recorder.sessions.by_thread(), "marks end with tracking");
    }
}
