use super::{Answer, Question, Room, Sort};
use crate::questions::Selection;
use crate::tests::ask;
use memprof_dump::record::{Flags, Kind};
use memprof_heap::Heap;
use memprof_heap::testing::{Thing, class, heap, random, thing};

fn answer(heap: &Heap, sort: Sort) -> Answer {
    Question { sort, ..Question::default() }.answer(heap).expect("an answer")
}

#[test]
fn knows_room_by_the_memsize() {
    assert_eq!(Room::of_array(3, 0), None);
    assert_eq!(Room::of_array(5, 160), Some(Room { capacity: 20, unused: 120 }));
    assert_eq!(Room::of_array(9, 40), None);
    assert_eq!(Room::of_hash(0, 0), None);
    assert_eq!(Room::of_hash(2, 136), Some(Room { capacity: 8, unused: 96 }));
    // 16 entries without bins; 32 with 64 one-byte bins.
    assert_eq!(Room::of_hash(10, 16 * 24 + 56), Some(Room { capacity: 16, unused: 144 }));
    assert_eq!(Room::of_hash(20, 32 * 24 + 64), Some(Room { capacity: 32, unused: 288 }));
    assert_eq!(Room::of_hash(20, 777), None);
    assert_eq!(Room::of_hash(u64::MAX, u64::MAX), None);
}

#[test]
fn lists_the_largest_the_empty_and_the_unused() {
    let things = [
        class(0x1000, "Session", 0),
        class(0x1028, "Set", 0),
        thing(0x1050, Kind::ARRAY, "Array").length(5).size(200),
        thing(0x1078, Kind::ARRAY, "Array").length(0),
        thing(0x10a0, Kind::ARRAY, "Array").length(0),
        thing(0x10c8, Kind::HASH, "Hash").length(2).size(176),
        thing(0x10f0, Kind::OBJECT, "Set").length(1).to("@hash", 0x10c8),
        thing(0x1118, Kind::OBJECT, "Session")
            .to("@tags", 0x1078)
            .to("@notes", 0x10a0)
            .to("@all", 0x1050),
        thing(0x1140, Kind::ARRAY, "Array").length(9).size(400).flags(Flags::SHARED),
        thing(0x1168, Kind::STRUCT, "Point").length(1),
    ];
    let heap = heap(&[("vm", &[0x1118, 0x10f0, 0x1140, 0x1168])], &things);
    let by_length = answer(&heap, Sort::Length);
    let lengths: Vec<Option<u64>> = by_length.rows.iter().map(|row| row.length).collect();
    assert_eq!(lengths, [Some(9), Some(5), Some(2), Some(2), Some(1), Some(0), Some(0)]);
    assert_eq!((by_length.rows[0].capacity, by_length.rows[1].capacity), (None, Some(20)));
    let unused = answer(&heap, Sort::Unused);
    assert_eq!((unused.rows[0].unused, unused.rows[1].unused), (120, 96));
    let array = &unused.types[0];
    assert_eq!((array.r#type, array.count, array.elements), ("array", 4, 14));
    assert_eq!((array.empty_count, array.empty_size, array.fill), (2, 80, Some(25.0)));
    assert_eq!(array.empty_holders.len(), 2);
    assert_eq!(array.empty_holders[0].class, "Session");
    let types: Vec<&str> = unused.types.iter().map(|of| of.r#type).collect();
    assert_eq!(types, ["array", "hash", "struct", "set"]);
}

#[test]
fn adds_up() {
    for seed in 0..10 {
        let (things, heap) = random(seed, 80);
        let answer = answer(&heap, Sort::Size);
        let live = Selection::new(&heap, Some("reachable")).expect("a query");
        let is_live = |thing: &Thing| heap.at(thing.address).is_some_and(|id| live.contains(id));
        let arrays: Vec<_> =
            things.iter().filter(|thing| thing.kind == Kind::ARRAY && is_live(thing)).collect();
        let empty = arrays.iter().filter(|thing| thing.length == Some(0));
        let of = &answer.types[0];
        assert_eq!(of.count, arrays.len() as u64);
        assert_eq!(of.size, arrays.iter().map(|thing| thing.size).sum::<u64>());
        assert_eq!(of.elements, arrays.iter().filter_map(|thing| thing.length).sum::<u64>());
        assert_eq!(of.empty_size, empty.map(|thing| thing.size).sum::<u64>());
        assert_eq!(answer.rows.len() + answer.more, arrays.len());
    }
    let (_, heap) = random(1, 50);
    let json = ask(&heap, "collections", serde_json::json!({ "sort": "retained", "limit": 1 }))
        .expect("an answer");
    assert!(json["rows"][0]["length"].is_number() && json["rows"][0]["retained"].is_number());
}
