use super::{Answer, Limit, Question, Row, Sort};
use crate::tests::ask;
use memprof_dump::record::Kind;
use memprof_heap::Heap;
use memprof_heap::testing::{class, heap, thing};

fn shop() -> Heap {
    let things = [
        class(0x1000, "Shop::Order", 0).size(500).to("CACHE", 0x2000),
        class(0x1100, "Shop::Order::Line", 0x1000).size(300),
        thing(0x1200, Kind::MODULE, "Module").named("Shop").size(100),
        class(0x1300, "Session", 0),
        class(0x1400, "Session", 0),
        class(0x1500, "Hidden::Deep", 0),
        thing(0x1600, Kind::CLASS, "Class"),
        thing(0x2000, Kind::ARRAY, "Array").size(1000),
        thing(0x2100, Kind::OBJECT, "Shop::Order").size(60),
        thing(0x2200, Kind::OBJECT, "Shop::Order::Line").size(70),
        thing(0x2300, Kind::OBJECT, "Shop::Order::Line").size(70),
    ];
    heap(&[("vm", &[0x1000, 0x1100, 0x1200, 0x1300, 0x2100])], &things)
}

fn answer(question: &Question) -> Answer {
    question.answer(&shop()).expect("an answer")
}

#[test]
fn is_a_tree_of_names() {
    let Answer { rows, more, classes, anonymous, .. } =
        answer(&Question { depth: Limit(5), ..Question::default() });
    let names: Vec<&str> = rows.iter().map(|row| row.name.as_str()).collect();
    assert_eq!((names, more, classes, anonymous), (vec!["Shop", "Session", "Hidden"], 0, 6, 1));
    let shop = &rows[0];
    assert_eq!((shop.r#type, shop.classes, shop.class_size), (Some("module"), 3, 900));
    assert_eq!((shop.retained, shop.count, shop.size), (Some(1900), 3, 200));
    let order = &shop.rows[0];
    assert_eq!(
        (order.name.as_str(), order.r#type, order.classes),
        ("Shop::Order", Some("class"), 2)
    );
    assert_eq!((order.retained, order.rows[0].count), (Some(1800), 2));
    assert_eq!((rows[1].versions, rows[1].classes), (2, 2));
    assert_eq!((rows[2].r#type, rows[2].id, rows[2].classes), (None, None, 1));
}

#[test]
fn shows_a_part() {
    let under = Question {
        under: Some("Shop".to_owned()),
        sort: Sort::Name,
        depth: Limit(1),
        limit: Limit::default(),
    };
    let rows = answer(&under).rows;
    let names: Vec<(&str, usize)> =
        rows.iter().map(|row: &Row| (row.name.as_str(), row.more)).collect();
    assert_eq!(names, [("Shop::Order", 1)]);
    let none = Question { under: Some("Stop".to_owned()), ..Question::default() };
    assert!(none.answer(&shop()).is_err());
    let json = ask(&shop(), "namespaces", serde_json::json!({ "sort": "classes", "limit": 1 }))
        .expect("an answer");
    assert_eq!((json["rows"][0]["name"].as_str(), json["more"].as_u64()), (Some("Shop"), Some(2)));
}
