//! The recorder against a naive one, which keeps every object ever allocated with the sessions that saw it.

use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::profile::{Meta, StringRow};
use crate::sites::{FrameKey, Site};

struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

pub(super) fn options(thread: Option<u64>) -> Options {
    Options { thread, sample: 1, stack: 1, strings: true }
}

fn site(recorder: &mut Recorder, line: u32) -> SiteId {
    let key = FrameKey { file: "app.rb".into(), label: "work".into(), first_line: 1, native: None };
    let (frame, _) = recorder.sites.frame(key);
    let place = recorder.sites.stack(None, frame, line);
    let class = recorder.sites.class("Object");
    recorder.sites.site(Site { class, place, stack: place, caller: None })
}

pub(super) fn allocate(recorder: &mut Recorder, thread: u64, address: u64, line: u32) {
    match recorder.sessions.segment(thread) {
        Some(segment) => {
            let site = site(recorder, line);
            let cell = recorder.cell(segment, site);
            recorder.allocated(address, cell, || 40);
        }
        None => recorder.allocated_unrecorded(address),
    }
}

#[derive(Default)]
struct Naive {
    objects: BTreeMap<u64, (u32, BTreeSet<SessionId>)>,
    gone: Vec<(u32, BTreeSet<SessionId>)>,
    recording: BTreeMap<SessionId, Option<u64>>,
}

impl Naive {
    fn allocate(&mut self, thread: u64, address: u64, line: u32) {
        self.free(address);
        let sees = |scope: &Option<u64>| scope.is_none_or(|scope| scope == thread);
        let seen =
            self.recording.iter().filter(|(_, scope)| sees(scope)).map(|(id, _)| *id).collect();
        self.objects.insert(address, (line, seen));
    }

    fn free(&mut self, address: u64) {
        self.gone.extend(self.objects.remove(&address));
    }

    fn live(&self, id: SessionId) -> BTreeMap<u32, u64> {
        let mut counts = BTreeMap::new();
        for (line, seen) in self.objects.values() {
            if seen.contains(&id) {
                *counts.entry(*line).or_default() += 1;
            }
        }
        counts
    }

    fn freed(&self, id: SessionId) -> u64 {
        self.gone.iter().filter(|(_, seen)| seen.contains(&id)).count() as u64
    }
}

#[test]
fn counts_as_a_naive_recorder_does() {
    let mut random = Random(0x853c_49e6_748f_ea9b);
    for round in 0..30 {
        let (mut recorder, mut naive) = (Recorder::new(round), Naive::default());
        let mut open: Vec<SessionId> = Vec::new();
        for _ in 0..3000 {
            let thread = random.below(4);
            match random.below(100) {
                0..3 => {
                    let scope = (random.below(2) == 0).then_some(thread);
                    let id = recorder.open(options(scope));
                    naive.recording.insert(id, scope);
                    open.push(id);
                }
                3..5 if !open.is_empty() => {
                    let id = open[random.below(open.len() as u64) as usize];
                    assert_eq!(recorder.finish(id), naive.recording.remove(&id).is_some());
                }
                5..7 if !open.is_empty() => {
                    let id = open.swap_remove(random.below(open.len() as u64) as usize);
                    recorder.close(id);
                    naive.recording.remove(&id);
                    for (_, seen) in naive.objects.values_mut().chain(naive.gone.iter_mut()) {
                        seen.remove(&id);
                    }
                    if open.is_empty() {
                        (naive.objects, naive.gone) = Default::default();
                    }
                }
                7..40 => {
                    let address = 40 * random.below(3000);
                    recorder.freed(address);
                    naive.free(address);
                }
                _ => {
                    let (address, line) = (40 * random.below(3000), random.below(9) as u32);
                    allocate(&mut recorder, thread, address, line);
                    naive.allocate(thread, address, line);
                }
            }
        }
        for id in &open {
            let stats = recorder
                .stats(*id)
                .into_iter()
                .map(|row| (row.line, row.objects))
                .collect::<BTreeMap<_, _>>();
            assert_eq!(stats, naive.live(*id), "round {round}, {id:?}");
            let profile = recorder.profile(*id, &Survivors::default(), Meta::default());
            let freed: u64 = profile.rows.iter().map(|row| row.freed.objects).sum();
            assert_eq!(freed, naive.freed(*id), "round {round}, {id:?}");
        }
    }
}

#[test]
fn forgets_everything_with_the_last_session() {
    let mut recorder = Recorder::new(1);
    let id = recorder.open(options(None));
    allocate(&mut recorder, 0, 4000, 7);
    recorder.close(id);
    assert_eq!((recorder.live_objects(), recorder.cells.len()), (0, 0));
    assert_eq!(
        recorder.open(options(None)),
        SessionId(2),
        "a session's number is never used again"
    );
}

#[test]
fn requests_that_overlap_for_ever_do_not_pile_up_cells() {
    let mut recorder = Recorder::new(1);
    let mut previous = recorder.open(options(Some(0)));
    for request in 1..1000u64 {
        let next = recorder.open(options(Some(request % 2)));
        for object in 0..10 {
            allocate(&mut recorder, request % 2, 40 * object, object as u32);
        }
        recorder.close(previous);
        previous = next;
    }
    assert!(recorder.cells.len() <= 20, "{} cells", recorder.cells.len());
}

#[test]
fn an_object_counts_with_the_bytes_that_it_had_at_its_end() {
    let mut recorder = Recorder::new(1);
    let id = recorder.open(options(None));
    for address in [4000, 4040, 4080] {
        allocate(&mut recorder, 0, address, 7);
    }
    let record = recorder.take(4000).expect("was allocated");
    recorder.count_free(record, 1_000_000);
    recorder.freed(4040);
    let mut survivors = Survivors::default();
    let record = recorder.record(4080).expect("lives");
    recorder.survives(&mut survivors, record, 100, || None);
    let profile = recorder.profile(id, &survivors, Meta::default());
    assert_eq!(profile.rows[0].freed, Amount::new(2, 1_000_040));
    assert_eq!(profile.rows[0].allocated, Amount::new(3, 1_000_140));
}

#[test]
fn keeps_the_values_of_strings_that_live_and_die() {
    let mut recorder = Recorder::new(1);
    let id = recorder.open(options(None));
    for address in [4000, 4040, 4080] {
        allocate(&mut recorder, 0, address, 7);
    }
    let record = recorder.freed(4000).expect("was allocated");
    recorder.string_freed(record, b"abc");
    let mut survivors = Survivors::default();
    for (address, value) in [(4040, &b"abc"[..]), (4080, b"x\xff")] {
        let record = recorder.record(address).expect("lives");
        recorder.survives(&mut survivors, record, 100, || Some(value));
    }
    let profile = recorder.profile(id, &survivors, Meta::default());
    let values = |rows: &[StringRow]| {
        rows.iter().map(|row| (row.value.clone(), row.objects)).collect::<Vec<_>>()
    };
    assert_eq!(values(&profile.strings_allocated), [("abc".into(), 2), ("x\\xFF".into(), 1)]);
    assert_eq!(values(&profile.strings_retained), [("abc".into(), 1), ("x\\xFF".into(), 1)]);
    assert_eq!(
        profile.rows[0].allocated,
        Amount::new(3, 240),
        "slot size for the gone, memsize for the living"
    );
}

#[test]
fn threads_belong_to_the_sessions_of_those_that_started_them() {
    let mut recorder = Recorder::new(1);
    let id = recorder.open(options(Some(1)));
    recorder.sessions.thread_started(1, 2);
    recorder.sessions.thread_started(2, 3);
    recorder.sessions.thread_started(8, 9);
    for thread in [1, 2, 3, 8, 9] {
        allocate(&mut recorder, thread, 40 * thread, thread as u32);
    }
    recorder.sessions.threads_moved(|thread| Some(thread + 100));
    allocate(&mut recorder, 103, 4000, 103);
    recorder.sessions.thread_ended(103);
    allocate(&mut recorder, 103, 8000, 104);
    let lines: Vec<u32> = recorder.stats(id).into_iter().map(|row| row.line).collect();
    assert_eq!(lines, [1, 2, 3, 103]);
}

/// Requests of 100 objects each, one in 100 of which is sampled: all objects are sampled equally often over many requests.
#[test]
fn short_sessions_sample_each_object_alike() {
    const LINES: u64 = 100;
    const REQUESTS: u64 = 3000;
    let mut recorder = Recorder::new(1);
    let mut seen = [0u64; LINES as usize];
    for _ in 0..REQUESTS {
        let id = recorder.open(Options { sample: 100, ..options(None) });
        let mut next = u64::from(recorder.sample_gap());
        while next < LINES {
            seen[next as usize] += 1;
            next += 1 + u64::from(recorder.sample_gap());
        }
        recorder.close(id);
    }
    let expected = REQUESTS as f64 / 100.0;
    let square = |count: &u64| (*count as f64 - expected).powi(2) / expected;
    let chi_square: f64 = seen.iter().map(square).sum();
    // 100 on average, with a standard deviation of 14.
    assert!(chi_square < 200.0, "chi-square {chi_square}: {seen:?}");
}

#[test]
fn keeps_sites_but_no_numbers_when_the_last_session_closes() {
    let mut recorder = Recorder::new(1);
    for request in 1..200u64 {
        let id = recorder.open(options(Some(7)));
        for object in 0..request % 5 + 1 {
            allocate(&mut recorder, 7, 40 * (object + request), 3);
        }
        let rows = recorder.stats(id);
        assert_eq!(rows.len(), 1);
        assert_eq!(rows[0].objects, request % 5 + 1);
        let text = recorder.stats_text(id, None, "head\n");
        assert_eq!(text, format!("head\n{:>7} app.rb:3:Object\n", request % 5 + 1));
        recorder.close(id);
        assert_eq!((recorder.live_objects(), recorder.cells.len()), (0, 0));
    }
    let kept = recorder.sites.memsize();
    let id = recorder.open(options(None));
    allocate(&mut recorder, 7, 40, 3);
    recorder.close(id);
    assert_eq!(recorder.sites.memsize(), kept);
    recorder.forget();
    assert_eq!(recorder.sites.memsize(), 0);
}

/// A booting program allocates at tens of thousands of lines, and their counters dominate the recorder's memory.
#[test]
fn a_site_takes_little_memory() {
    const SITES: u32 = 40_000;
    let mut recorder = Recorder::new(1);
    recorder.open(options(None));
    for line in 1..=SITES {
        allocate(&mut recorder, 7, 40, line);
    }
    let each = recorder.memsize() / SITES as usize;
    assert!(each < 150, "{each} bytes");
}

/// Names come in any order, over several sessions: rows are sorted by name.
#[test]
fn orders_rows_by_names_that_it_met_in_other_sessions() {
    let mut recorder = Recorder::new(1);
    let mut random = Random(5);
    for request in 0..50u64 {
        let id = recorder.open(options(None));
        let segment = recorder.sessions.segment(1).expect("a session is open");
        for object in 0..40 {
            // Some names are new to each request, and some places belong to two sites.
            let file = format!("f{}.rb", random.below(10 + request));
            let class = format!("C{}", random.below(5 + request));
            let key = FrameKey {
                file: file.into(),
                label: format!("m{}", random.below(2)),
                first_line: 1,
                native: None,
            };
            let (frame, _) = recorder.sites.frame(key);
            let place = (recorder.sites).stack(None, frame, random.below(3) as u32);
            let class = recorder.sites.class(&class);
            let site = recorder.sites.site(Site { class, place, stack: place, caller: None });
            let cell = recorder.cell(segment, site);
            recorder.allocated(40 * object, cell, || 40);
        }
        let rows = recorder.stats(id);
        let mut sorted = rows.clone();
        sorted.sort_by_key(|row| {
            let place = (row.file.clone(), row.line, row.class.clone());
            (std::cmp::Reverse(row.objects), place)
        });
        assert_eq!(rows, sorted);
        assert_eq!(rows.iter().map(|row| row.objects).sum::<u64>(), 40);
        let distinct: BTreeSet<_> =
            (rows.iter()).map(|row| (&row.file, row.line, &row.class)).collect();
        assert_eq!(distinct.len(), rows.len());
        let line = |row: &StatsRow| {
            format!("{:>7} {}:{}:{}\n", row.objects, row.file, row.line, row.class)
        };
        let text: String = rows.iter().take(7).map(line).collect();
        assert_eq!(recorder.stats_text(id, Some(7), ""), text);
        recorder.close(id);
    }
}

#[test]
fn an_object_that_gets_a_class_counts_as_if_it_had_been_allocated_with_it() {
    let mut recorder = Recorder::new(1);
    let outer = recorder.open(options(None));
    let segment = recorder.sessions.process_segment().unwrap();
    let first = site(&mut recorder, 1);
    let named = recorder.sites.get(first).unwrap();
    let hidden = recorder.sites.class("<string>");
    let hidden = recorder.sites.site(Site { class: hidden, ..named });
    let cell = recorder.cell(segment, hidden);
    for address in [40, 80, 120] {
        recorder.allocated(address, cell, || 40);
    }
    // Its session is closed before: the cell is joined to another one.
    let inner = recorder.open(options(None));
    let segment = recorder.sessions.process_segment().unwrap();
    let cell = recorder.cell(segment, hidden);
    recorder.allocated(160, cell, || 40);
    recorder.close(inner);
    for address in [80, 160] {
        let record = recorder.record(address).unwrap();
        assert!(recorder.is_hidden(record));
        let now = recorder.reveal(record, named.class);
        recorder.replace(address, now);
        assert_eq!(recorder.record(address), Some(now));
        assert!(!recorder.is_hidden(now));
        assert_eq!(now.slot_size(), 40);
    }
    let counts = |recorder: &Recorder| -> Vec<(String, u64, u64)> {
        let rows = recorder.counts(outer, &Survivors::default());
        let row = |row: CountRow| (row.class, row.live, row.allocated.objects);
        rows.into_iter().map(row).collect()
    };
    let row = |class: &str, live, allocated| (class.to_owned(), live, allocated);
    assert_eq!(counts(&recorder), [row("<string>", 2, 2), row("Object", 2, 2)]);
    for address in [40, 80, 160] {
        recorder.freed(address);
    }
    assert_eq!(counts(&recorder), [row("<string>", 1, 2), row("Object", 0, 2)]);
    recorder.close(outer);
    assert_eq!(recorder.live_objects(), 0);
}
