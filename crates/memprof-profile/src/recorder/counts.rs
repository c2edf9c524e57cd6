//! Objects by place and class, for tests that limit allocations.

use rustc_hash::FxHashMap;

use super::{Recorder, Survivors};
use crate::group::NO_NAME;
use crate::profile::Amount;
use crate::sessions::SessionId;

/// The objects of one class allocated at one line. Unlike in other reports, anonymous classes with the same name have separate
/// rows if the session distinguished them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CountRow {
    /// Path of the file.
    pub file: String,
    /// Line.
    pub line: u32,
    /// Name of the class.
    pub class: String,
    /// Distinguishes an anonymous class from others of its name, or 0.
    pub identity: u32,
    /// Objects not reported as freed.
    pub live: u64,
    /// All objects. Bytes: memsize, for freed objects at the time of the free.
    pub allocated: Amount,
    /// Objects found live. Bytes: memsize.
    pub retained: Amount,
}

impl Recorder {
    /// The objects of a session by file, line and class, in this order.
    pub fn counts(&self, session: SessionId, survivors: &Survivors) -> Vec<CountRow> {
        let mut rows: FxHashMap<(&str, u32, &str, u32), [Amount; 3]> = FxHashMap::default();
        for (id, cell, scale) in self.cells_of(session) {
            let Some(site) = self.sites.get(cell.site) else {
                continue;
            };
            let (file, line) = self.sites.location(site.place);
            let file = if file.is_empty() { NO_NAME } else { file };
            let class = self.sites.class_name(site.class);
            let identity = self.sites.class_identity(site.class);
            let retained = survivors.amounts.get(id.0 as usize).copied();
            let retained = retained.unwrap_or_default();
            let allocated = Amount::new(cell.allocated, cell.freed.bytes + retained.bytes);
            let amounts = [Amount::new(cell.live(), 0), allocated, retained];
            let row = rows.entry((file, line, class, identity)).or_default();
            for (sum, amount) in row.iter_mut().zip(amounts) {
                sum.add(Amount::new(amount.objects * scale, amount.bytes * scale));
            }
        }
        let rows = rows.into_iter().map(|((file, line, class, identity), row)| {
            let [live, allocated, retained] = row;
            CountRow {
                file: file.into(),
                line,
                class: class.into(),
                identity,
                live: live.objects,
                allocated,
                retained,
            }
        });
        let mut rows: Vec<CountRow> = rows.collect();
        rows.sort_unstable_by(|a, b| key(a).cmp(&key(b)));
        rows
    }
}

fn key(row: &CountRow) -> (&str, u32, &str, u32) {
    (&row.file, row.line, &row.class, row.identity)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sessions::Options;
    use crate::sites::{FrameKey, Site};

    #[test]
    fn anonymous_classes_of_one_name_have_a_row_each() {
        let mut recorder = Recorder::new(1);
        let session = recorder.open(Options { thread: None, sample: 1, stack: 1, strings: false });
        let segment = recorder.sessions.process_segment().unwrap();
        for (address, identity) in [(40, 0), (80, 1), (120, 2), (160, 2)] {
            let key = FrameKey {
                file: "app.rb".into(),
                label: "work".into(),
                first_line: 1,
                native: None,
            };
            let (frame, _) = recorder.sites.frame(key);
            let place = recorder.sites.stack(None, frame, 7);
            let class = recorder.sites.anonymous_class("#<Class < Array>", identity);
            let stack = place;
            let site = recorder.sites.site(Site { class, place, stack, caller: None });
            let cell = recorder.cell(segment, site);
            recorder.allocated(address, cell, || 40);
        }
        recorder.freed(160);
        let rows = recorder.counts(session, &Survivors::default());
        let amounts = rows.iter().map(|row| (row.identity, row.live, row.allocated));
        assert_eq!(
            amounts.collect::<Vec<_>>(),
            [(0, 1, Amount::new(1, 0)), (1, 1, Amount::new(1, 0)), (2, 1, Amount::new(2, 40)),]
        );
        assert_eq!((rows[0].file.as_str(), rows[0].line), ("app.rb", 7));
        assert_eq!(recorder.stats(session).len(), 1);
    }
}
