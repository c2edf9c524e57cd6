use super::{Answer, Question};
use crate::questions::tracking::Tracking;
use crate::questions::{Remark, Selection};
use crate::tests::ask;
use memprof_dump::record::{Flags, Kind};
use memprof_heap::Heap;
use memprof_heap::testing::{Thing, class, heap, heap_of, random, string, thing};

fn answer(heap: &Heap) -> Answer {
    Question::default().answer(heap).expect("an answer")
}

#[test]
fn counts_what_there_is() {
    let mut singleton = class(0x1100, "", 0x1000).flags(Flags::SINGLETON);
    singleton.name = None;
    let things = [
        class(0x1000, "Session", 0),
        singleton,
        thing(0x1200, Kind::MODULE, "Module").named("Shop"),
        string(0x1300, "one").size(100).at("app.rb", 3, "new", 4),
        string(0x1400, "two").at("app.rb", 4, "new", 6),
        thing(0x1500, Kind::DATA, "Proc").named("proc"),
        thing(0x1600, Kind::DATA, "Thread").named("VM/thread"),
        thing(0x1700, Kind::IMEMO, "").named("ment"),
        thing(0x1800, Kind::ARRAY, "Array").length(1).to("[0]", 0x1300),
    ];
    let header = r#"{"ruby":"ruby 3.4","pid":42,"rss":1000,"gc":{"count":9},"environment":{"TOKEN":"secret"}}"#;
    let heap = heap_of(header, &[("vm", &[0x1000, 0x1800]), ("global_tbl", &[0x1800])], &things);
    let answer = answer(&heap);
    let counts = answer.counts;
    assert_eq!((counts.classes, counts.singleton_classes, counts.modules), (1, 1, 1));
    assert_eq!(
        (counts.strings, counts.arrays, counts.procs, counts.threads, counts.methods),
        (2, 1, 1, 1, 1)
    );
    assert_eq!(counts.source_files, 1);
    assert_eq!((answer.objects.count, answer.objects.size, answer.references), (9, 420, 1));
    assert_eq!((answer.types[0].r#type, answer.types[0].sum.size), ("string", 140));
    assert_eq!(
        (answer.tracked.count, answer.first_generation, answer.last_generation),
        (2, Some(4), Some(6))
    );
    assert_eq!((answer.process["pid"].as_u64(), answer.gc["count"].as_u64()), (Some(42), Some(9)));
    assert!(answer.process["time"].is_null() && !answer.process.contains_key("environment"));
    assert_eq!(answer.unreachable.map(|sum| sum.count), Some(6));
    assert_eq!((answer.roots[0].root.as_str(), answer.roots[0].retained), ("vm", 40));
    assert_eq!(answer.shared_by_roots, Some(140));
    assert_eq!(answer.slots.map(|slots| (slots.size, slots.outside)), Some((360, 60)));
    assert_eq!(answer.classes.len(), 5);
    assert_eq!(answer.warnings, []);
}

#[test]
fn adds_up() {
    for seed in 0..10 {
        let (things, heap) = random(seed, 80);
        let answer = answer(&heap);
        let size =
            |things: &mut dyn Iterator<Item = &Thing>| things.map(|thing| thing.size).sum::<u64>();
        assert_eq!(answer.objects.size, size(&mut things.iter()));
        assert_eq!(answer.types.iter().map(|of| of.sum.count).sum::<u64>(), answer.objects.count);
        assert_eq!(answer.types.iter().map(|of| of.sum.size).sum::<u64>(), answer.objects.size);
        let garbage = Selection::new(&heap, Some("not reachable")).expect("a query");
        let garbage: Vec<u32> = garbage.iter().collect();
        let sum = answer.unreachable.expect("roots");
        assert_eq!(sum.count, garbage.len() as u64);
        assert_eq!(sum.size, size(&mut garbage.iter().map(|&id| &things[id as usize])));
        let alone: u64 = answer.roots.iter().map(|root| root.retained).sum();
        assert_eq!(alone + answer.shared_by_roots.expect("roots") + sum.size, answer.objects.size);
    }
}

#[test]
fn says_what_is_missing() {
    let things = [string(0x1000, "one").to("", 0x9000)];
    let mut heap = heap(&[], &things);
    heap.source.truncated = true;
    (heap.source.skipped, heap.source.first_skipped) = (3, Some(17));
    let answer = answer(&heap);
    let limits = [
        Remark::EndsEarly,
        Remark::Skipped { unit: "line", count: 3, first: 17 },
        Remark::Missing { count: 1 },
        Remark::Rootless,
        Remark::NoLines { tracking: Tracking::Unknown },
    ];
    assert_eq!(answer.warnings, limits);
    assert_eq!((answer.unreachable, answer.shared_by_roots), (None, None));
    assert!(answer.classes[0].retained.is_none());
    let json = ask(&heap, "overview", serde_json::json!({})).expect("an answer");
    assert!(json["unreachable"].is_null() && json["source"]["missing"] == 1);
}
