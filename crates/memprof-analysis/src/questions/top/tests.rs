use std::cmp::Reverse;

use super::{Answer, Limit, Question, Sort};
use crate::questions::Selection;
use crate::tests::ask;
use memprof_heap::Heap;
use memprof_heap::testing::random;

fn value(heap: &Heap, sort: Sort, id: u32) -> Option<u64> {
    let object = heap.object(id).expect("in memory").expect("an object");
    let classes = [];
    let graph = heap.graph(&classes).expect("in memory");
    match sort {
        Sort::Retained => Some(heap.retained().expect("in memory").get(id)),
        Sort::Size => Some(object.memsize),
        Sort::Length => object.length.map(u64::from),
        Sort::References => Some(graph.row(id).len() as u64),
        Sort::Referrers => {
            let rows =
                (0..heap.len()).map(|from| graph.row(from).iter().filter(|&&to| to == id).count());
            Some(rows.sum::<usize>() as u64)
        }
        Sort::Depth => {
            let steps = heap.steps().expect("in memory");
            let mut at = id;
            let mut depth = 0;
            while heap.category(at).is_none() {
                at = *steps.get(at as usize).filter(|&&step| step != u32::MAX)?;
                depth += 1;
            }
            Some(depth)
        }
        Sort::Address => None,
    }
}

#[test]
fn is_the_beginning_of_the_sorted_list() {
    for seed in 0..10 {
        let (_, heap) = random(seed, 70);
        for sort in [
            Sort::Retained,
            Sort::Size,
            Sort::Length,
            Sort::References,
            Sort::Referrers,
            Sort::Depth,
            Sort::Address,
        ] {
            for (offset, limit) in [(0, 5), (3, 4), (0, 1000), (65, 20), (200, 1), (0, 0)] {
                let filter = Some("size > 40 or frozen".to_owned());
                let mut ids: Vec<u32> =
                    Selection::new(&heap, filter.as_deref()).expect("a query").iter().collect();
                let count = ids.len();
                ids.sort_by_key(|&id| Reverse(value(&heap, sort, id)));
                let expected: Vec<u32> = ids.into_iter().skip(offset).take(limit).collect();
                let question = Question { sort, r#where: filter, limit: Limit(limit), offset };
                let Answer { objects, more, .. } = question.answer(&heap).expect("an answer");
                let found: Vec<u32> = objects.iter().map(|row| row.object.id).collect();
                assert_eq!(found, expected, "{sort:?} {offset} {limit}");
                assert_eq!(more, count.saturating_sub(offset + limit), "{sort:?} {offset} {limit}");
                assert!(objects.iter().all(|row| row.value == value(&heap, sort, row.object.id)));
            }
        }
    }
}

#[test]
fn is_asked_in_json() {
    let (_, heap) = random(1, 40);
    let answer =
        ask(&heap, "top", serde_json::json!({ "sort": "size", "limit": 1 })).expect("an answer");
    let row = &answer["objects"][0];
    for key in [
        "id",
        "address",
        "type",
        "class",
        "text",
        "size",
        "retained",
        "percent",
        "generation",
        "value",
    ] {
        assert!(row.get(key).is_some(), "{key}: {row}");
    }
    assert_eq!(row["value"], row["size"]);
}
