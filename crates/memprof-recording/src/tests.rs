use std::io::Cursor;

use crate::export::{Format, Value, export};
use crate::{BlockWriter, Error, Event, Record, Selection, Summary, read};

const A: Event = Event { node: 1, size: 1000, address: 0 };
const B: Event = Event { node: 2, size: 24, address: 0 };

/// A block of a recording without addresses.
pub(crate) fn block(node: u64, size: u64) -> Event {
    Event { node, size, address: 0 }
}

fn frames() -> Vec<Record<'static>> {
    vec![
        Record::Start { pid: 7, time: 1_700_000_000_000, command: b"app.rb" },
        Record::RubyFrame { path: b"/app/a.rb", line: 3, method: b"" },
        Record::NativeFrame { address: 0x7f00_0000_1234, offset: 0x1234, module: b"/lib/libpq.so" },
        Record::Node { parent: 0, frame: 1 },
        Record::Node { parent: 0, frame: 2 },
    ]
}

pub(crate) fn file(records: &[Record<'_>], records_a_block: usize) -> Vec<u8> {
    let mut writer = BlockWriter::new(Vec::new()).unwrap();
    for (number, record) in records.iter().enumerate() {
        writer.add(*record).unwrap();
        if (number + 1) % records_a_block == 0 {
            writer.flush().unwrap();
        }
    }
    writer.flush().unwrap();
    writer.into_parts().1
}

fn recording() -> Vec<Record<'static>> {
    let mut records = frames();
    records.extend([
        Record::Clock { ms: 0, rss: 5_000 },
        Record::Allocation(A),
        Record::Allocation(B),
        Record::Allocation(A),
        Record::Clock { ms: 10, rss: 9_000 },
        Record::Free(A),
        Record::Allocation(B),
        Record::Free(B),
        Record::Allocation(B),
        Record::Clock { ms: 20, rss: 8_000 },
        Record::Name { frame: 2, distance: 4, function: b"PQexec" },
        Record::End { missed: 2 },
    ]);
    records
}

pub(crate) fn summary(bytes: &[u8]) -> Summary {
    Summary::read(&mut &bytes[..]).unwrap()
}

/// Writes the records in blocks of each of these sizes, and reads them back.
pub(crate) fn assert_come_back(records: &[Record<'_>], sizes: &[usize]) {
    for records_a_block in sizes {
        let bytes = file(records, *records_a_block);
        let mut seen = 0;
        read(&mut &bytes[..], &mut |record| {
            assert_eq!(record, records[seen]);
            seen += 1;
            true
        })
        .unwrap();
        assert_eq!(seen, records.len());
    }
}

#[test]
fn records_come_back() {
    assert_come_back(&recording(), &[1, 4, 100]);
}

#[test]
fn sums_have_the_peak_and_what_made_it_up() {
    let summary = summary(&file(&recording(), 100));
    assert!(summary.complete && summary.damaged_at.is_none());
    assert_eq!((summary.pid, summary.ms, summary.missed), (7, 20, 2));
    assert_eq!((summary.peak_ms, summary.peak_rss), (0, 9_000));
    let total = &summary.total;
    assert_eq!((total.allocations, total.allocated_bytes), (5, 2_072));
    assert_eq!((total.peak, total.peak_bytes), (3, 2_024));
    assert_eq!(total.temporary, 2);
    assert_eq!((total.leaked, total.leaked_bytes), (3, 1_048));
    let row = |name| summary.locations.iter().find(|row| row.location == name);
    let ruby = row("/app/a.rb:3").unwrap();
    assert_eq!((ruby.counts.peak_bytes, ruby.counts.leaked_bytes), (2_000, 1_000));
    let native = row("/lib/libpq.so(PQexec+0x4) [0x7f0000001234]").unwrap();
    let native = native.counts;
    assert_eq!((native.peak_bytes, native.leaked_bytes), (24, 48));
    assert_eq!((native.temporary, native.allocations), (1, 3));
    let sizes: Vec<_> = summary.sizes.iter().map(|one| (one.up_to, one.allocations)).collect();
    assert_eq!(sizes, [(32, 3), (1024, 2)]);
    let live: Vec<_> = summary.timeline.iter().map(|one| one.live_bytes).collect();
    // Events after a clock happened up to then.
    assert_eq!(live, [2_024, 2_024, 1_048]);
}

#[test]
fn a_peak_is_that_of_a_slow_recount() {
    let mut records = frames();
    let mut state = 0x1234_5678_9abc_def1u64;
    let mut live: Vec<Event> = Vec::new();
    let (mut sums, mut peak) = ([0u64; 2], [0u64; 2]);
    for _ in 0..20_000 {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        if state % 7 < 4 || live.is_empty() {
            let (node, size) = (1 + state % 2, state >> 8 & 0xfff);
            live.push(block(node, size));
            records.push(Record::Allocation(block(node, size)));
            sums[node as usize - 1] += size;
            if sums[0] + sums[1] > peak[0] + peak[1] {
                peak = sums;
            }
        } else {
            let event = live.swap_remove((state >> 20) as usize % live.len());
            records.push(Record::Free(event));
            sums[event.node as usize - 1] -= event.size;
        }
    }
    let summary = summary(&file(&records, 999));
    assert!(!summary.complete, "it was not stopped");
    let mut rows = summary.locations;
    rows.sort_by(|one, other| one.location.cmp(&other.location));
    let peaks: Vec<_> = rows.iter().map(|row| row.counts.peak_bytes).collect();
    assert_eq!(peaks, peak);
    let leaked: Vec<_> = rows.iter().map(|row| row.counts.leaked_bytes).collect();
    assert_eq!(leaked, sums);
}

#[test]
fn a_range_counts_what_happened_in_it_and_keeps_what_was_live() {
    let bytes = file(&recording(), 4);
    let part = |from_ms, to_ms| {
        let selection = Selection { from_ms, to_ms, ..Selection::default() };
        Summary::read_part(&mut &bytes[..], &selection).unwrap()
    };
    let late = part(10, None);
    // One block of A was freed, and B allocated, freed and allocated.
    assert_eq!((late.total.allocations, late.total.allocated_bytes), (2, 48));
    assert_eq!((late.total.peak_bytes, late.peak_ms), (2_024, 10));
    assert_eq!(late.total.leaked_bytes, 1_048);
    let early = part(0, Some(10));
    assert_eq!((early.total.allocations, early.total.leaked_bytes), (5, 1_048));
    let start = part(0, Some(9));
    assert_eq!((start.total.allocations, start.total.leaked_bytes), (3, 2_024));
    assert_eq!(part(100, None).total.allocations, 0);
    assert_eq!(part(0, None), summary(&bytes));
}

#[test]
fn known_leaks_are_not_counted() {
    let bytes = file(&recording(), 4);
    let part = |text: &str| {
        let selection = Selection { suppressions: text.parse().unwrap(), ..Selection::default() };
        Summary::read_part(&mut &bytes[..], &selection).unwrap()
    };
    let without = part("leak:PQ*c$\n");
    assert_eq!((without.suppressed, without.suppressed_bytes), (2, 48));
    assert_eq!((without.total.leaked, without.total.leaked_bytes), (1, 1_000));
    assert_eq!(without.total.peak_bytes, 2_024);
    assert_eq!(part("leak:a.rb:3").suppressed_bytes, 1_000);
    assert_eq!(part("leak:none"), summary(&bytes));
}

#[test]
fn a_file_that_was_cut_off_is_read_up_to_the_last_whole_block() {
    let bytes = file(&recording(), 4);
    let mut most = 0;
    for length in 0..bytes.len() {
        match Summary::read(&mut &bytes[..length]) {
            Ok(summary) => {
                assert!(!summary.complete && summary.damaged_at.is_none());
                assert!(summary.total.allocations >= most);
                most = summary.total.allocations;
            }
            Err(Error::NoRecording) => assert!(length < 17),
            Err(error) => panic!("{error}"),
        }
    }
    assert!(most > 0);
}

#[test]
fn no_flipped_bit_goes_unnoticed() {
    let bytes = file(&recording(), 4);
    let whole = summary(&bytes);
    for bit in 17 * 8..bytes.len() * 8 {
        let mut bytes = bytes.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        let summary = summary(&bytes);
        let is_noticed = !summary.complete || summary.damaged_at.is_some();
        // zstd ignores one bit of each block.
        assert!(is_noticed || summary == whole, "{bit}");
    }
}

#[test]
fn what_cannot_be_is_damage() {
    let bad = [
        Record::Allocation(block(9, 1)),
        Record::Allocation(block(0, 1)),
        Record::Free(A),
        Record::Node { parent: 0, frame: 3 },
        Record::Node { parent: 9, frame: 1 },
        Record::Name { frame: 0, distance: 0, function: b"" },
        Record::Name { frame: 1, distance: 0, function: b"not native" },
    ];
    for record in bad {
        let mut records = frames();
        records.push(record);
        let summary = summary(&file(&records, 100));
        assert_eq!(summary.damaged_at, Some(17), "{record:?}");
    }
}

#[test]
fn a_timeline_has_a_bounded_number_of_points() {
    let mut records = frames();
    for ms in 0..5_000 {
        records.push(Record::Clock { ms, rss: ms });
    }
    let points = summary(&file(&records, 999)).timeline;
    assert!((256..=512).contains(&points.len()), "{}", points.len());
    assert_eq!(points.last().unwrap().ms, 4_999);
    assert!(points.windows(2).all(|pair| pair[0].ms < pair[1].ms));
}

pub(crate) fn exported(bytes: &[u8], format: Format) -> String {
    String::from_utf8(exported_bytes(bytes, format)).unwrap()
}

fn exported_bytes(bytes: &[u8], format: Format) -> Vec<u8> {
    let mut out = Vec::new();
    let all = Selection::default();
    export(&mut Cursor::new(bytes), format, Value::Peak, &all, &mut out).unwrap();
    out
}

#[test]
fn heaptrack_has_every_event() {
    let text = exported(&file(&recording(), 4), Format::Heaptrack);
    let expected = "v 10400 3\nX app.rb\nI 1000 0\ns 4 ruby\ns b /app/a.rb:3\ns 9 /app/a.rb\ni 1 1 2 3 3\n\
        s d /lib/libpq.so\ns 6 PQexec\ni 7f0000001234 4 5\nt 1 0\nt 2 0\n\
        a 3e8 1\n+ 0\na 18 2\n+ 1\n+ 0\nc 0\nR 1\n- 0\n+ 1\n- 1\n+ 1\nc a\nR 2\nc 14\nR 1\n";
    assert_eq!(text, expected);
}

#[test]
fn massif_has_the_peak_and_the_end() {
    let text = exported(&file(&recording(), 4), Format::Massif);
    let peak = "time=0\nmem_heap_B=2024\nmem_heap_extra_B=0\nmem_stacks_B=0\nheap_tree=peak\n\
        n2: 2024 (heap allocation functions) malloc/new/new[], --alloc-fns, etc.\n \
        n0: 2000 0x0: /app/a.rb:3 (/app/a.rb:3)\n \
        n0: 24 0x0: PQexec (libpq.so) (/lib/libpq.so(PQexec+0x4) [0x7f0000001234])\n";
    assert!(text.contains(peak), "{text}");
    assert!(text.contains("time=20\nmem_heap_B=1048\n"), "{text}");
    assert!(text.contains("heap_tree=detailed\nn2: 1048 "), "{text}");
}

#[test]
fn collapsed_lines_are_ranked() {
    let text = exported(&file(&recording(), 4), Format::Collapsed);
    let expected = "/app/a.rb:3 2000\nPQexec (libpq.so) 24\n";
    assert_eq!(text, expected);
}

#[test]
fn what_is_damaged_or_cut_off_is_exported_as_far_as_it_goes() {
    let bytes = file(&recording(), 4);
    for format in ["heaptrack", "massif", "collapsed", "speedscope", "firefox", "pprof"] {
        let format: Format = format.parse().unwrap();
        for length in 17..bytes.len() {
            exported_bytes(&bytes[..length], format);
        }
        for bit in 17 * 8..bytes.len() * 8 {
            let mut bytes = bytes.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            exported_bytes(&bytes, format);
        }
    }
}
