use std::collections::BTreeMap;

use super::{Answer, Limit, Question};
use crate::questions::{Remark, Selection};
use crate::tests::ask;
use memprof_dump::record::Kind;
use memprof_heap::Heap;
use memprof_heap::testing::{Thing, class, heap, random, string, thing};

fn answer(heap: &Heap, question: &Question) -> Answer {
    question.answer(heap).expect("an answer")
}

#[test]
fn finds_equal_texts() {
    for seed in 0..12 {
        let (things, heap) = random(seed, 120);
        let mut texts: BTreeMap<String, Vec<u64>> = BTreeMap::new();
        let live = Selection::new(&heap, Some("reachable")).expect("a query");
        let is_live = |thing: &Thing| heap.at(thing.address).is_some_and(|id| live.contains(id));
        let strings = things.iter().filter(|thing| thing.kind == Kind::STRING);
        for thing in strings.filter(|thing| is_live(thing)) {
            let text = String::from_utf8(thing.text.clone().expect("a text")).expect("UTF-8");
            texts.entry(text).or_default().push(thing.size);
        }
        let all = texts.values().map(|sizes| sizes.len() as u64).sum::<u64>();
        texts.retain(|_, sizes| sizes.len() > 1);
        let answer = answer(&heap, &Question::default());
        assert_eq!((answer.count, answer.rows.len(), answer.unknown_count), (all, texts.len(), 0));
        for row in &answer.rows {
            let sizes = &texts[row.text.as_deref().expect("a text")];
            let sum = sizes.iter().sum::<u64>();
            assert_eq!((row.count, row.size), (sizes.len() as u64, sum));
            assert_eq!(row.wasted, sum - sizes.iter().max().expect("a size"));
        }
        assert_eq!(answer.wasted, answer.rows.iter().map(|row| row.wasted).sum::<u64>());
        assert!(answer.rows.windows(2).all(|rows| rows[0].wasted >= rows[1].wasted));
        for offset in 0..answer.rows.len() + 2 {
            let question = Question { limit: Limit(2), offset, ..Question::default() };
            let part = question.answer(&heap).expect("an answer");
            let expected: Vec<_> = answer.rows.iter().skip(offset).take(2).collect();
            assert_eq!(part.rows.iter().collect::<Vec<_>>(), expected);
            assert_eq!(part.more, answer.rows.len().saturating_sub(offset + 2));
        }
    }
}

fn marked(address: u64, mark: u64) -> Thing {
    let mut string = string(address, "");
    (string.text, string.mark, string.length) = (None, Some(mark), Some(7));
    string
}

fn cut(address: u64) -> Thing {
    let mut string = string(address, "the beginn");
    (string.truncated, string.length) = (true, Some(5000));
    string
}

#[test]
fn works_with_marks_and_says_what_it_does_not_know() {
    let things =
        [marked(0x1000, 5), marked(0x1100, 5), marked(0x1200, 6), cut(0x1300), cut(0x1400)];
    let heap = heap(&[], &things);
    let answer = answer(&heap, &Question::default());
    assert_eq!((answer.rows.len(), answer.rows[0].count, answer.rows[0].length), (1, 2, 7));
    assert_eq!(
        (answer.rows[0].text.as_deref(), answer.unknown_count, answer.unknown_size),
        (None, 2, 80)
    );
    let limits = [Remark::PartialTexts { count: 2 }, Remark::HashedTexts, Remark::GarbageCounted];
    assert_eq!(answer.warnings, limits);
}

#[test]
fn garbage_is_not_wasted() {
    let things = [
        class(0x1000, "Session", 0),
        thing(0x1100, Kind::ARRAY, "Array").to("[0]", 0x2000).to("[1]", 0x2100),
        string(0x2000, "kept"),
        string(0x2100, "kept"),
        string(0x2200, "kept"),
        string(0x2300, "gone"),
        string(0x2400, "gone"),
    ];
    let kept = answer(&heap(&[("vm", &[0x1100])], &things), &Question::default());
    assert_eq!((kept.count, kept.duplicates, kept.wasted), (2, 1, 40));
    assert_eq!((kept.rows.len(), kept.rows[0].count), (1, 2));
    assert!(kept.warnings.is_empty());
    // Without roots, garbage is unknown.
    let unknown = answer(&heap(&[], &things), &Question::default());
    assert_eq!((unknown.count, unknown.duplicates), (5, 3));
    assert_eq!(unknown.warnings, [Remark::GarbageCounted]);
}

#[test]
fn says_who_holds_them() {
    let things = [
        class(0x1000, "Session", 0),
        thing(0x1100, Kind::OBJECT, "Session").to("@name", 0x2000),
        thing(0x1200, Kind::OBJECT, "Session").to("@name", 0x2100),
        thing(0x1300, Kind::ARRAY, "Array").to("[0]", 0x2200).to("[1]", 0x2000),
        string(0x2000, "user").at("app.rb", 3, "name", 1),
        string(0x2100, "user").at("app.rb", 3, "name", 1),
        string(0x2200, "user").size(200),
        string(0x2300, "other"),
    ];
    let heap = heap(&[("vm", &[0x1100, 0x1200, 0x1300, 0x2200])], &things);
    let row = answer(&heap, &Question::default()).rows.remove(0);
    assert_eq!((row.count, row.size, row.wasted), (3, 280, 80));
    assert_eq!((row.sites[0].site.line, row.sites[0].count, row.classes[0].count), (3, 2, 3));
    let holders: Vec<(&str, Option<&str>, u64)> = row
        .holders
        .iter()
        .map(|holder| (holder.class.as_str(), holder.label.as_deref(), holder.count))
        .collect();
    assert_eq!(
        holders,
        [("Session", Some("@name"), 2), ("Array", Some("[*]"), 2), ("root vm", None, 1)]
    );
    let few = Question { min: Some(4), ..Question::default() };
    assert!(answer(&heap, &few).rows.is_empty());
    let chosen = Question { r#where: Some("size < 100".to_owned()), ..Question::default() };
    assert_eq!(answer(&heap, &chosen).rows[0].count, 2);
    let json = ask(&heap, "duplicates", serde_json::json!({ "limit": 0 })).expect("an answer");
    assert_eq!((json["more"].as_u64(), json["duplicates"].as_u64()), (Some(1), Some(2)));
}
