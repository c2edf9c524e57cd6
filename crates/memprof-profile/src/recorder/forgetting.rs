//! Removes sites without live objects when there are too many: a program that keeps evaluating code under new names has ever
//! new sites, and in a server that is always tracked they would grow without bound.
//!
//! Their counts are added to one site per segment, so that sums remain correct.

use rustc_hash::FxHashMap;

use super::Recorder;
use super::stats::Rows;
use crate::cells::CellId;
use crate::sites::{FrameId, FrameKey, Site, SiteId};

/// Minimum number of counters kept; with their sites they take at most some 15 MB. Beyond that, the limit is one and a half
/// times the counters with live objects at the last check.
pub const KEPT_CELLS: usize = 1 << 14;

/// Location and class of removed sites.
pub const FORGOTTEN: &str = "(forgotten)";

impl Recorder {
    /// True if there are enough counters to make [`Recorder::forget_dead`] worthwhile.
    #[inline]
    pub fn is_crowded(&self) -> bool {
        self.cells.len() >= self.most_cells.max(KEPT_CELLS)
    }

    /// Removes all sites without live objects. Sites and frames are renumbered: `frames` are kept and updated. Only if no
    /// session wants strings or a peak, which refer to sites.
    pub fn forget_dead<'a>(&mut self, frames: impl Iterator<Item = &'a mut FrameId>) {
        let frames: Vec<&mut FrameId> = frames.collect();
        let forgotten = self.forgotten_site();
        for segment in 0..self.by_site.len() {
            self.join_dead(segment, forgotten);
        }
        let used = self.by_site.iter().flat_map(FxHashMap::keys).copied();
        let kept = self.sites.keep(used, frames.iter().map(|frame| **frame));
        for by_site in &mut self.by_site {
            let old = std::mem::take(by_site);
            for (site, cell) in old {
                let Some(moved) = kept.by_site.get(&site) else {
                    continue;
                };
                self.cells.set_site(cell, *moved);
                by_site.insert(*moved, cell);
            }
        }
        for frame in frames {
            *frame = kept.by_frame.get(frame).copied().unwrap_or(*frame);
        }
        self.sites = kept.sites;
        self.rows = Rows::default();
        self.strings = Vec::new();
        self.most_cells = self.cells.len() / 2 * 3;
    }

    /// Merges the counts of dead cells of a segment into one cell.
    fn join_dead(&mut self, segment: usize, forgotten: SiteId) {
        let Some(by_site) = self.by_site.get(segment) else {
            return;
        };
        let dead: Vec<(SiteId, CellId)> = (by_site.iter())
            .filter(|(site, cell)| **site != forgotten && self.cells.is_dead(**cell))
            .map(|(site, cell)| (*site, *cell))
            .collect();
        let Some((_, first)) = dead.first() else {
            return;
        };
        let Some(segment) = self.cells.get(*first).map(|cell| cell.segment) else {
            return;
        };
        let target = self.cell(segment, forgotten);
        for (site, cell) in dead {
            self.cells.join(cell, target);
            self.by_site[segment.0 as usize].remove(&site);
        }
    }

    fn forgotten_site(&mut self) -> SiteId {
        let (frame, _) = self.sites.frame(FrameKey {
            file: FORGOTTEN.into(),
            label: String::new(),
            first_line: 0,
            native: None,
        });
        let place = self.sites.stack(None, frame, 0);
        let class = self.sites.class(FORGOTTEN);
        self.sites.site(Site { class, place, stack: place, caller: None })
    }
}

#[cfg(test)]
mod tests {
    use super::super::Survivors;
    use super::*;
    use crate::profile::Amount;
    use crate::sessions::{Options, SessionId};

    fn open(recorder: &mut Recorder) -> SessionId {
        recorder.open(Options { thread: None, sample: 1, stack: 1, strings: false })
    }

    fn allocate(recorder: &mut Recorder, address: u64, file: &str) {
        let segment = recorder.sessions.process_segment().unwrap();
        let (frame, _) = recorder.sites.frame(FrameKey {
            file: file.into(),
            label: "work".into(),
            first_line: 1,
            native: None,
        });
        let place = recorder.sites.stack(None, frame, 1);
        let class = recorder.sites.class("String");
        let stack = place;
        let site = recorder.sites.site(Site { class, place, stack, caller: None });
        let cell = recorder.cell(segment, site);
        recorder.allocated(address, cell, || 40);
    }

    #[test]
    fn sums_stay_right_and_memory_is_bounded() {
        let mut recorder = Recorder::new(1);
        let session = open(&mut recorder);
        allocate(&mut recorder, 40, "kept.rb");
        let mut most = 0;
        for number in 0..4 * KEPT_CELLS {
            if recorder.is_crowded() {
                most = most.max(recorder.memsize());
                recorder.forget_dead([].into_iter());
            }
            allocate(&mut recorder, 80, &format!("eval-{number}.rb"));
            recorder.freed(80);
        }
        assert!(most > 0 && most < 80 << 20, "{most}");
        let counts = recorder.counts(session, &Survivors::default());
        assert_eq!(recorder.stats(session).len(), 1);
        assert_eq!(recorder.stats(session)[0].file, "kept.rb");
        let allocated: u64 = counts.iter().map(|row| row.allocated.objects).sum();
        assert_eq!(allocated, 4 * KEPT_CELLS as u64 + 1);
        let forgotten = counts.iter().find(|row| row.file == FORGOTTEN).unwrap();
        assert_eq!(forgotten.live, 0);
        assert!(forgotten.allocated.objects > 2 * KEPT_CELLS as u64);
        // The kept object's record still refers to its site.
        recorder.freed(40);
        assert_eq!(recorder.stats(session), []);
        recorder.forget_dead([].into_iter());
        let counts = recorder.counts(session, &Survivors::default());
        assert_eq!(counts.len(), 1);
        let all = 4 * KEPT_CELLS as u64 + 1;
        assert_eq!(counts[0].allocated, Amount::new(all, all * 40));
    }
}
