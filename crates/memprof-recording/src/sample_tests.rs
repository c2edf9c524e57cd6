use memprof_profile::export as profile;

use crate::export::Format;
use crate::tests::{block, exported, file, summary};
use crate::{Counts, Record, Scale};

const PERIOD: u64 = 4096;

/// Two blocks of 100 bytes and one of a mebibyte are sampled; one of the small ones is freed at once.
fn recording(period: u64) -> Vec<Record<'static>> {
    let small = block(1, 100);
    let large = block(1, 1 << 20);
    vec![
        Record::Start { pid: 7, time: 0, command: b"app.rb" },
        Record::Samples { period },
        Record::Clock { ms: 0, rss: 0 },
        Record::RubyFrame { path: b"/app/a.rb", line: 3, method: b"" },
        Record::Node { parent: 0, frame: 1 },
        Record::Allocation(large),
        Record::Allocation(small),
        Record::Allocation(small),
        Record::Free(small),
        Record::Clock { ms: 10, rss: 9_000 },
        Record::End { missed: 0 },
    ]
}

#[test]
fn samples_count_for_what_they_stand_for() {
    let summary = summary(&file(&recording(PERIOD), 100));
    assert_eq!((summary.sample, summary.complete), (Some(PERIOD), true));
    // One of 100 bytes represents 41.46 of them.
    let expected = Counts {
        allocations: 84,
        allocated_bytes: 8_292 + (1 << 20),
        temporary: 0,
        peak: 84,
        peak_bytes: 8_292 + (1 << 20),
        leaked: 42,
        leaked_bytes: 4_146 + (1 << 20),
    };
    assert_eq!(summary.total, expected);
    assert_eq!(summary.locations[0].counts, expected);
    let scale = Scale::new(Some(PERIOD));
    assert_eq!(scale.bytes(2 * scale.weight(100).bytes), 8_292);
    let calls: Vec<_> = summary.sizes.iter().map(|class| class.allocations).collect();
    assert_eq!(calls, [83, 1]);
    let first = summary.timeline[0];
    assert_eq!((first.live_bytes, first.allocations), (8_292 + (1 << 20), 84));
}

#[test]
fn samples_are_exported_with_the_bytes_that_they_stand_for() {
    let bytes = file(&recording(PERIOD), 100);
    let text = exported(&bytes, Format::Heaptrack);
    assert!(text.contains("\na 1032 1\n+ 1\n+ 1\n- 1\n"), "{text}");
    let text = exported(&bytes, Format::Collapsed);
    assert_eq!(text, "/app/a.rb:3 1056868\n");
}

#[test]
fn exports_call_their_numbers_estimates() {
    let bytes = file(&recording(PERIOD), 100);
    let note = "sampled every 4096 bytes on average: estimates";
    let text = exported(&bytes, Format::Heaptrack);
    assert!(text.contains(&format!("\n# {note}\n")), "{text}");
    let text = exported(&bytes, Format::Massif);
    assert!(text.starts_with(&format!("desc: memprof malloc, {note}\n")), "{text}");
    let text = exported(&bytes, Format::Profile(profile::Format::Speedscope));
    assert!(text.contains(&format!("app.rb, {note}")), "{text}");
}

#[test]
fn a_period_of_nothing_is_damage() {
    let summary = summary(&file(&recording(0), 100));
    assert!(summary.damaged_at.is_some());
    assert_eq!(summary.total, Counts::default());
}
