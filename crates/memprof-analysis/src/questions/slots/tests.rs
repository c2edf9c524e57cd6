use super::{Answer, Question};
use crate::tests::ask;
use memprof_dump::record::Kind;
use memprof_heap::Heap;
use memprof_heap::testing::{Random, Thing, heap, heap_of, thing};

fn answer(heap: &Heap) -> Answer {
    Question::default().answer(heap).expect("an answer")
}

fn slot(page: u64, size: u32, number: u64) -> Thing {
    thing((page << 16) + 16 + u64::from(size) * number, Kind::OBJECT, "Object").slot(size)
}

/// Slots of a 64 KiB page that begin 16 bytes after its start.
fn slots(size: u32) -> u64 {
    (65_536 - 16) / u64::from(size)
}

#[test]
fn counts_slots_of_each_size() {
    let mut things: Vec<Thing> = (0..slots(40)).map(|number| slot(1, 40, number)).collect();
    things.extend([slot(2, 40, 5), slot(2, 40, 900), slot(3, 160, 0), slot(3, 160, 399)]);
    let header = r#"{"ruby_version":"3.4.1","gc":{"heap_allocated_pages":5}}"#;
    let answer = answer(&heap_of(header, &[], &things));
    let small = &answer.rows[0];
    assert_eq!((small.slot, small.pages, small.slots, small.used), (40, 2, 2 * 1638, 1640));
    assert_eq!((small.free, small.nearly_empty_pages, small.nearly_empty_objects), (1636, 1, 2));
    assert_eq!(small.fill_histogram, [1, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    // 1640 objects need two pages of 1638 slots.
    assert_eq!(
        (small.returnable_pages, answer.empty_pages, answer.page_size),
        (0, Some(2), 65_536)
    );
    let large = &answer.rows[1];
    assert_eq!((large.slot, large.slots, large.used), (160, slots(160), 2));
}

#[test]
fn lists_what_could_be_given_back() {
    let things: Vec<Thing> = (0..20).map(|page| slot(page + 1, 80, page)).collect();
    let heap = heap_of(r#"{"ruby_version":"3.3.0"}"#, &[], &things);
    let answer = answer(&heap);
    assert_eq!((answer.pages, answer.used, answer.returnable), (20, 20, 19 * 65_536));
    assert!(
        answer.sentence.contains("20 objects retain 20 nearly empty pages"),
        "{}",
        answer.sentence
    );
    assert!(answer.sentence.contains("1.2 MiB (95 %)"), "{}", answer.sentence);
    let json = ask(&heap, "slots", serde_json::json!({ "nearly_empty": 0.1 })).expect("an answer");
    assert_eq!(json["rows"][0]["nearly_empty_pages"], 0);
}

#[test]
fn finds_the_size_of_pages() {
    // 409 slots in each 16 KiB page, none where the next page begins.
    let small =
        |page: u64, number: u64| thing((page << 14) + 8 + 40 * number, Kind::OBJECT, "Object");
    let things: Vec<Thing> =
        (4..9).flat_map(|page| (0..409).map(move |number| small(page, number))).collect();
    let found = answer(&heap(&[], &things));
    assert_eq!((found.page_size, found.pages, found.slots, found.free), (16_384, 5, 5 * 409, 0));
    let things: Vec<Thing> = (0..slots(40)).map(|number| slot(1, 40, number)).collect();
    let found = answer(&heap(&[], &things));
    assert_eq!((found.page_size, found.pages, found.free), (65_536, 1, 0));
    assert_eq!(
        found.sentence,
        "100 % of the slots in 1 pages (64.0 KiB) are used: the heap is not fragmented."
    );
}

#[test]
fn adds_up_and_takes_any_address() {
    let mut random = Random(5);
    for _ in 0..20 {
        let mut things: Vec<Thing> = (0..50)
            .map(|_| {
                let size = [0, 1, 40, 160, 640, 70_000][random.below(6) as usize];
                thing(random.below(1 << 20), Kind::OBJECT, "Object").slot(size)
            })
            .collect();
        things.sort_by_key(|thing| thing.address);
        things.dedup_by_key(|thing| thing.address);
        let Ok(answer) = Question::default().answer(&heap(&[], &things)) else {
            continue;
        };
        assert_eq!(answer.used + answer.free, answer.slots);
        assert!(answer.rows.iter().all(|row| row.fill_histogram.iter().sum::<u64>() == row.pages));
    }
    assert_eq!(answer(&heap(&[], &[])).pages, 0);
}
