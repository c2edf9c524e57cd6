use super::{Answer, Limit, Question, Sort};
use crate::tests::ask;
use memprof_dump::record::Kind;
use memprof_heap::Heap;
use memprof_heap::testing::{Thing, class, heap, string, thing};

fn callback(number: u64) -> [Thing; 3] {
    let at = 0x10_0000 + number * 0x1000;
    [
        thing(at, Kind::DATA, "Proc")
            .named("proc")
            .written("driver.rb", 7)
            .size(80)
            .to("self", 0x1100)
            .to("env", at + 0x100),
        thing(at + 0x100, Kind::IMEMO, "").named("env").to("local text", at + 0x200),
        string(at + 0x200, "payload").size(1000),
    ]
}

fn driver() -> Heap {
    let mut things = vec![
        class(0x1000, "Driver", 0),
        thing(0x1100, Kind::OBJECT, "Driver").to("@callbacks", 0x1200),
        thing(0x1200, Kind::ARRAY, "Array").length(10),
        thing(0x1300, Kind::DATA, "Proc").named("proc").at("app.rb", 3, "run", 2),
        thing(0x1400, Kind::DATA, "Proc").named("proc"),
    ];
    for number in 0..10 {
        things.extend(callback(number));
        let held = things[2].clone().to(&format!("[{number}]"), 0x10_0000 + number * 0x1000);
        things[2] = held;
    }
    heap(&[("vm", &[0x1100, 0x1300])], &things)
}

#[test]
fn finds_callbacks_that_pile_up() {
    let heap = driver();
    let Answer { rows, more, count, size, .. } =
        Question::default().answer(&heap).expect("an answer");
    assert_eq!((rows.len(), more, count, size), (3, 0, 12, 880));
    let row = &rows[0];
    assert_eq!((row.file.as_deref(), row.line, row.written), (Some("driver.rb"), Some(7), true));
    assert_eq!((row.count, row.size, row.retained), (10, 800, Some(10 * 1120)));
    let captures: Vec<(&str, &str, u64)> = row
        .captures
        .iter()
        .map(|capture| (capture.label.as_str(), capture.class.as_str(), capture.count))
        .collect();
    assert_eq!(captures, [("local text", "String", 10), ("self", "Driver", 10)]);
    assert_eq!((row.holders[0].class.as_str(), row.holders[0].count), ("Array", 10));
    assert!(row.path.as_deref().is_some_and(|path| path.contains("@callbacks")), "{:?}", row.path);
    let made = &rows[1];
    assert_eq!(
        (made.file.as_deref(), made.written, made.first_generation),
        (Some("app.rb"), false, Some(2))
    );
    assert_eq!(
        (rows[2].file.as_deref(), rows[2].line, rows[2].path.as_deref()),
        (None, None, None)
    );
}

#[test]
fn takes_a_filter_and_a_limit() {
    let heap = driver();
    let filtered = Question {
        r#where: Some("tracked".to_owned()),
        sort: Sort::Count,
        limit: Limit(5),
        ..Question::default()
    };
    assert_eq!(filtered.answer(&heap).expect("an answer").count, 1);
    let json =
        ask(&heap, "procs", serde_json::json!({ "sort": "count", "limit": 1 })).expect("an answer");
    assert_eq!((json["more"].as_u64(), json["rows"][0]["count"].as_u64()), (Some(2), Some(10)));
    let whole = ask(&heap, "procs", serde_json::json!({})).expect("an answer");
    let rest = ask(&heap, "procs", serde_json::json!({ "offset": 1, "limit": 1 }));
    let rest = rest.expect("an answer");
    assert_eq!(rest["rows"][0], whole["rows"][1]);
    assert_eq!(rest["more"].as_u64(), Some(1));
}
