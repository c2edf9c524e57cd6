use std::collections::BTreeMap;

use super::{Answer, Bar, By, Key, Limit, Question, Row, Sort};
use crate::questions::Selection;
use crate::tests::ask;
use memprof_dump::record::Kind;
use memprof_heap::graph::{BitSet, retained_of_set};
use memprof_heap::testing::{Thing, class, heap, random, thing};
use memprof_heap::{Heap, Object};

fn answer(heap: &Heap, question: &Question) -> Answer {
    question.answer(heap).unwrap_or_else(|error| panic!("{question:?}: {error}"))
}

fn all(by: By) -> Question {
    Question {
        by,
        limit: Limit(1000),
        then_limit: Some(1000),
        depth: Limit(30),
        ..Question::default()
    }
}

fn text(heap: &Heap, object: &Object, by: By) -> String {
    let name = |name| heap.name(name).to_owned();
    let number =
        |number: Option<u32>| number.map_or("null".to_owned(), |number| number.to_string());
    let gem = |file: &str| memprof_paths::guess_gem(file).to_owned();
    let range = |number: u64| match number {
        0 => "\"0..0\"".to_owned(),
        _ => {
            let low = (0..64).map(|bit| 1_u64 << bit).rfind(|low| *low <= number).expect("a bit");
            format!("\"{low}..{}\"", low + (low - 1))
        }
    };
    let site = |field: &dyn Fn(&memprof_heap::Site) -> Option<String>| {
        object.site.as_ref().and_then(field).map_or("null".to_owned(), |text| format!("{text:?}"))
    };
    match by {
        By::Class => format!("{:?}", name(object.class.name)),
        By::Type => format!("{:?}", object.group.kind.name()),
        By::File => site(&|site| Some(name(site.file))),
        By::Line => site(&|site| {
            Some(match site.line {
                0 => name(site.file),
                line => format!("{}:{line}", name(site.file)),
            })
        }),
        // These heaps have no library lines called from an application line.
        By::Application => site(&|site| {
            let file = heap.name(site.file);
            let own = memprof_paths::is_application(file);
            own.then(|| match site.line {
                0 => file.to_owned(),
                line => format!("{file}:{line}"),
            })
        }),
        By::Gem => site(&|site| Some(gem(heap.name(site.file)))),
        By::Method => site(&|site| site.method.map(name)),
        By::Generation => number(object.generation),
        By::Age => number(object.generation.map(|born| 5 - born)),
        By::Size => range(object.memsize),
        By::Length => object.length.map_or("null".to_owned(), |length| range(length.into())),
        By::Shape => number(object.shape),
        By::Slot => number(Some(object.slot_size.into())),
        By::Imemo => format!("{:?}", object.group.name.map_or(String::new(), name)),
        By::Namespace | By::Superclass | By::Root => String::new(),
    }
}

/// The retained size of the members that no other member dominates.
fn retained(heap: &Heap, members: &[u32]) -> u64 {
    let dominators = heap.dominators().expect("in memory");
    let top = members.iter().filter(|&&id| {
        dominators.reaches(id) && !dominators.ancestors(id).any(|above| members.contains(&above))
    });
    top.map(|&id| heap.retained().expect("in memory").get(id)).sum()
}

fn check(heap: &Heap, row: &Row, members: &[u32], context: &str) {
    let objects = members.iter().map(|&id| heap.object(id).expect("in memory").expect("an object"));
    let objects: Vec<Object> = objects.collect();
    let generations = || objects.iter().filter_map(|object| object.generation);
    assert_eq!(row.count, members.len() as u64, "{context}");
    assert_eq!(row.size, objects.iter().map(|object| object.memsize).sum::<u64>(), "{context}");
    assert_eq!(row.retained, Some(retained(heap, members)), "{context}");
    assert_eq!(row.first_generation, generations().min(), "{context}");
    assert_eq!(row.last_generation, generations().max(), "{context}");
    if let Some(filter) = row.r#where.as_deref().filter(|_| !context.contains("then")) {
        let found: Vec<u32> = Selection::new(heap, Some(filter)).expect(filter).iter().collect();
        assert_eq!(found, members, "{filter}");
    }
}

const FLAT: [By; 13] = [
    By::Class,
    By::Type,
    By::File,
    By::Line,
    By::Application,
    By::Gem,
    By::Method,
    By::Generation,
    By::Age,
    By::Size,
    By::Length,
    By::Shape,
    By::Slot,
];

#[test]
fn counts_what_a_look_at_each_object_counts() {
    for seed in 0..12 {
        let (_, heap) = random(seed, 90);
        for by in FLAT {
            let mut groups: BTreeMap<String, Vec<u32>> = BTreeMap::new();
            for id in 0..heap.len() {
                let object = heap.object(id).expect("in memory").expect("an object");
                groups.entry(text(&heap, &object, by)).or_default().push(id);
            }
            let answer = answer(&heap, &all(by));
            assert_eq!(answer.rows.len(), groups.len(), "{by:?}: {:?} {groups:?}", answer.rows);
            for row in &answer.rows {
                let key = serde_json::to_string(&row.key).expect("JSON");
                check(&heap, row, &groups[&key], &format!("{by:?} {key} of {seed}"));
            }
            assert_eq!(answer.total.count, u64::from(heap.len()));
            let sorted = answer.rows.windows(2).all(|rows| rows[0].retained >= rows[1].retained);
            assert!(sorted && answer.sort == Sort::Retained);
        }
    }
}

#[test]
fn shows_the_first_and_counts_the_rest() {
    let (_, heap) = random(3, 90);
    let whole = answer(&heap, &Question { sort: Some(Sort::Size), ..all(By::Line) });
    for limit in [0, 1, 3, 100] {
        let part = Question { limit: Limit(limit), sort: Some(Sort::Size), ..all(By::Line) };
        let part = answer(&heap, &part);
        assert_eq!(part.rows[..], whole.rows[..limit.min(whole.rows.len())]);
        assert_eq!(part.rows.len() + part.more, whole.rows.len());
        assert_eq!(part.total, whole.total);
    }
    let named = answer(&heap, &Question { sort: Some(Sort::Name), ..all(By::Class) });
    let keys: Vec<&Key> = named.rows.iter().map(|row| &row.key).collect();
    assert!(keys.is_sorted());
}

#[test]
fn groups_twice_and_of_a_selection() {
    for seed in 0..8 {
        let (_, heap) = random(seed, 90);
        let question = Question {
            then: Some(By::File),
            r#where: Some("size > 40".to_owned()),
            ..all(By::Class)
        };
        let answer = answer(&heap, &question);
        let mut rows = 0;
        for outer in &answer.rows {
            for inner in &outer.rows {
                let filter =
                    format!("size > 40 and ({})", inner.r#where.as_deref().expect("a filter"));
                let members: Vec<u32> =
                    Selection::new(&heap, Some(&filter)).expect("a query").iter().collect();
                check(&heap, inner, &members, "then");
                rows += members.len() as u64;
            }
        }
        assert_eq!(rows, answer.total.count);
        let members: Vec<u32> =
            Selection::new(&heap, Some("size > 40")).expect("a query").iter().collect();
        assert_eq!(answer.total.retained, Some(retained(&heap, &members)));
    }
}

#[test]
fn computes_exactly_what_goes_with_a_group() {
    for seed in 0..8 {
        let (_, heap) = random(seed, 60);
        let answer = answer(&heap, &Question { exact: true, ..all(By::Class) });
        let classes = heap.group_classes();
        let graph = heap.graph(&classes).expect("in memory");
        for row in &answer.rows {
            let filter = row.r#where.as_deref();
            let members = Selection::new(&heap, filter).expect("a query");
            let members = BitSet::of(graph.len(), members.iter());
            let gone = retained_of_set(&graph, heap.root(), &members);
            let memsizes = heap.memsizes().expect("in memory");
            assert_eq!(row.retained, Some(gone.sum(|id| memsizes.get(id))), "{seed} {filter:?}");
        }
    }
}

/// All rows of a tree, with the names of their parents.
fn flat<'r>(rows: &'r [Row], above: &str, found: &mut Vec<(String, &'r Row)>) {
    for row in rows {
        let Key::Text(key) = &row.key else { panic!("{row:?}") };
        let way = format!("{above}/{key}");
        flat(&row.rows, &way, found);
        found.push((way, row));
    }
}

#[test]
fn makes_trees_of_constants_and_classes() {
    for seed in 0..12 {
        let (_, heap) = random(seed, 90);
        let class = |id| heap.class_name(id).expect("in memory").to_owned();
        let constants = answer(&heap, &all(By::Namespace));
        let mut found = Vec::new();
        flat(&constants.rows, "", &mut found);
        for (way, row) in found {
            let name = way.rsplit('/').next().expect("a name").to_owned();
            let inside = |id: u32| class(id) == name || class(id).starts_with(&format!("{name}::"));
            let members: Vec<u32> = (0..heap.len()).filter(|&id| inside(id)).collect();
            check(&heap, row, &members, &way);
        }
        let classes = answer(&heap, &all(By::Superclass));
        let mut found = Vec::new();
        flat(&classes.rows, "", &mut found);
        let above = |id: u32| -> Vec<u32> {
            let group = heap.group_numbers().expect("in memory")[id as usize] as usize;
            let first = heap.classes()[heap.groups()[group].shown as usize].object;
            std::iter::successors(heap.class_object(first), |class| {
                heap.class_object(class.superclass)
            })
            .map(|class| class.object)
            .collect()
        };
        for (way, row) in found.iter().filter(|(way, _)| way.contains("/Object")) {
            let name = way.rsplit('/').next().expect("a name");
            let object = heap
                .class_objects()
                .iter()
                .find(|class| class.name.is_some_and(|known| heap.name(known) == name));
            let object = object.expect("a class").object;
            let members: Vec<u32> =
                (0..heap.len()).filter(|&id| above(id).contains(&object)).collect();
            check(&heap, row, &members, way);
        }
        assert_eq!(classes.total.count, u64::from(heap.len()));
    }
}

#[test]
fn groups_by_roots_and_takes_circles_of_superclasses() {
    let things = [
        class(0x1000, "A", 0x1100),
        class(0x1100, "B", 0x1000),
        thing(0x1200, Kind::OBJECT, "A"),
        thing(0x1300, Kind::OBJECT, "B").to("", 0x1200),
        thing(0x1400, Kind::IMEMO, "").named("iseq"),
    ];
    let heap = heap(&[("vm", &[0x1300]), ("global_tbl", &[])], &things);
    let roots = answer(&heap, &all(By::Root));
    let keys: Vec<(&Key, u64)> = roots.rows.iter().map(|row| (&row.key, row.count)).collect();
    assert_eq!(keys, [(&Key::Text("vm".to_owned()), 4), (&Key::Unknown, 1)]);
    assert_eq!((roots.total.unreachable_count, roots.total.unreachable_size), (Some(1), Some(40)));
    let classes = answer(&heap, &all(By::Superclass));
    assert_eq!(classes.total.count, 5);
    let imemos = answer(&heap, &all(By::Imemo));
    assert_eq!((imemos.rows.len(), imemos.rows[0].count, imemos.total.count), (1, 1, 1));
}

#[test]
fn is_asked_in_json() {
    let (_, heap) = random(1, 50);
    let parameters =
        serde_json::json!({ "by": "site", "then": "class", "sort": "count", "limit": 2 });
    let answer = ask(&heap, "histogram", parameters).expect("an answer");
    assert_eq!(answer["by"], "line");
    assert_eq!(answer["rows"].as_array().map(Vec::len), Some(2));
    assert!(answer["rows"][0]["key"].is_string() || answer["rows"][0]["key"].is_null());
    for wrong in [
        serde_json::json!({ "by": "colour" }),
        serde_json::json!({ "where": "clas = A" }),
        serde_json::json!({ "by": "superclass", "then": "file" }),
        serde_json::json!({ "limits": 3 }),
    ] {
        assert!(ask(&heap, "histogram", wrong).is_err());
    }
}

#[test]
fn rows_can_be_passed_over() {
    let (_, heap) = random(7, 200);
    for sort in ["retained", "size", "count", "name"] {
        let put = |limit, offset| {
            let parameters =
                serde_json::json!({ "by": "line", "sort": sort, "limit": limit, "offset": offset });
            ask(&heap, "histogram", parameters).expect("an answer")
        };
        let whole = put(1000, 0);
        let rows = whole["rows"].as_array().expect("a list");
        for offset in [0, 1, 3, rows.len(), rows.len() + 5] {
            let part = put(2, offset);
            let expected: Vec<_> = rows.iter().skip(offset).take(2).cloned().collect();
            assert_eq!(part["rows"], serde_json::json!(expected));
            assert_eq!(part["more"], rows.len().saturating_sub(offset + 2));
            assert_eq!(part["total"], whole["total"]);
        }
    }
}

#[test]
fn many_groups_are_few_bars_in_the_order_of_their_keys() {
    let things: Vec<Thing> = (0..250_u64)
        .map(|number| {
            let generation = number * 7 % 250 + 1;
            thing(0x1000 + number * 40, Kind::OBJECT, "A").at("app.rb", 1, "call", generation)
        })
        .collect();
    let heap = heap(&[("vm", &[0x1000])], &things);
    let chart = |filter: Option<&str>, bars| {
        let question = Question {
            by: By::Generation,
            bars: Some(bars),
            limit: Limit(1),
            r#where: filter.map(str::to_owned),
            ..Question::default()
        };
        answer(&heap, &question).chart.expect("a chart")
    };
    let bars = chart(None, 100);
    assert_eq!(bars.len(), 84);
    let several = |key: &str, count: u64, filter: &str| Bar::Several {
        key: key.to_owned(),
        count,
        size: count * 40,
        r#where: Some(filter.to_owned()),
    };
    assert_eq!(bars[0], several("1..3", 3, "generation in 1..3"));
    assert!(matches!(&bars[83], Bar::One(row) if row.key == Key::Number(250)));
    let filtered = chart(Some("generation < 9 or age < 1"), 4);
    let filter = "generation in 1..2 and (generation < 9 or age < 1)";
    assert_eq!((filtered.len(), &filtered[0]), (5, &several("1..2", 2, filter)));
    assert_eq!(chart(Some("generation < 9"), 250).len(), 8);
    assert_eq!(answer(&heap, &all(By::Generation)).chart, None);
}
