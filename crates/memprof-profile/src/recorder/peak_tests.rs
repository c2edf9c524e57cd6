use super::tests::{allocate, options};
use super::*;
use crate::profile::{Meta, Profile};

/// A recorder with one session, whose objects have known sizes.
struct Heap {
    recorder: Recorder,
    session: SessionId,
    generation: u32,
    /// Address and bytes of live objects.
    objects: FxHashMap<u64, u64>,
}

impl Heap {
    fn new() -> Self {
        let mut recorder = Recorder::new(7);
        let session = recorder.open(options(None));
        recorder.watch_peak(session);
        Heap { recorder, session, generation: 0, objects: FxHashMap::default() }
    }

    fn allocate(&mut self, line: u32, addresses: std::ops::Range<u64>, bytes: u64) {
        for number in addresses {
            allocate(&mut self.recorder, 1, number * 40, line);
            self.objects.insert(number * 40, bytes);
        }
    }

    /// A GC that frees some objects; the process uses `malloc` bytes when it starts.
    fn collect(&mut self, malloc: u64, garbage: std::ops::Range<u64>) {
        let moment = Moment { malloc: Some(malloc), ..Moment::default() };
        self.recorder.collection_starts(moment);
        self.generation += 1;
        self.recorder.set_generation(self.generation, 0);
        for number in garbage {
            let bytes = self.objects.remove(&(number * 40)).expect("an object");
            let record = self.recorder.take(number * 40).expect("a record");
            self.recorder.count_free(record, bytes);
        }
    }

    fn measure(&mut self) {
        for (session, generation) in self.recorder.to_measure() {
            let mut survivors = Survivors::default();
            for (address, bytes) in &self.objects {
                let record = self.recorder.record(*address).expect("a record");
                if self.recorder.allocated_by(generation, record) {
                    self.recorder.survives(&mut survivors, record, *bytes, || None);
                }
            }
            self.recorder.measured(session, &survivors);
        }
    }

    /// Line, objects and bytes at the peak, by line.
    fn peak(&self) -> Vec<(u32, u64, u64)> {
        let profile: Profile =
            self.recorder.profile(self.session, &Survivors::default(), Meta::default());
        let rows = profile.rows.iter().filter(|row| !row.peak.is_none());
        let mut rows: Vec<_> = rows
            .map(|row| {
                let line = profile.stacks[row.site as usize].line;
                (line, row.peak.objects, row.peak.bytes)
            })
            .collect();
        rows.sort_unstable();
        rows
    }
}

#[test]
fn what_a_collection_frees_and_what_survives_it_make_up_the_peak() {
    let mut heap = Heap::new();
    heap.allocate(1, 0..100, 1000);
    heap.allocate(2, 100..130, 70);
    heap.collect(500_000, 0..60);
    heap.allocate(3, 200..300, 5);
    heap.measure();
    assert_eq!(heap.peak(), [(1, 100, 100_000), (2, 30, 2100)]);
}

#[test]
fn a_smaller_moment_later_is_no_peak() {
    let mut heap = Heap::new();
    heap.allocate(1, 0..10, 100);
    heap.collect(100_000, 0..10);
    heap.measure();
    heap.allocate(2, 0..20, 100);
    heap.collect(105_000, 0..0);
    heap.measure();
    assert_eq!(heap.peak(), [(1, 10, 1000)]);
    // The last GC counts if it has more at all.
    heap.recorder.last_peak(heap.session);
    heap.collect(105_001, 0..0);
    heap.measure();
    assert_eq!(heap.peak(), [(2, 20, 2000)]);
}

#[test]
fn collections_before_the_walk_take_nothing_from_the_peak() {
    let mut heap = Heap::new();
    heap.allocate(1, 0..100, 1000);
    heap.collect(500_000, 0..40);
    // Objects of the same line that are not part of it and are freed before the walk, and some that are.
    heap.allocate(1, 200..300, 3);
    heap.collect(100_000, 200..300);
    heap.collect(100_000, 40..50);
    heap.measure();
    assert_eq!(heap.peak(), [(1, 100, 100_000)]);
}

#[test]
fn a_session_that_watches_nothing_has_no_peak() {
    let mut recorder = Recorder::new(7);
    let session = recorder.open(options(None));
    assert!(!recorder.collection_starts(Moment::default()));
    assert!(recorder.peak(session).is_none());
    recorder.watch_peak(session);
    assert!(recorder.watches_peaks());
    recorder.close(session);
    assert!(!recorder.watches_peaks());
}
