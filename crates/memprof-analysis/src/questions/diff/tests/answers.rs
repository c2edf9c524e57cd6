//! A leak, step by step.

use serde_json::{Value, json};

use super::Diff;
use crate::subset::sample_subsets::{Made, heap, made};
use memprof_heap::Heap;

const CACHE: u64 = 0x10;
const LIST: u64 = 0x20;

/// A cache with a list of sessions; each session has a name. The first sessions exist from the start.
fn cache(sessions: std::ops::Range<u64>, generation: impl Fn(u64) -> u64) -> Vec<Made> {
    let session = |number: u64| 0x1000 + 0x80 * number;
    let list: Vec<u64> = sessions.clone().map(session).collect();
    let mut objects = vec![
        made(CACHE, "Cache", &[LIST]).allocated(1, 1),
        made(LIST, "Array", &list).allocated(1, 2),
    ];
    for number in sessions {
        let address = session(number);
        objects.push(made(address, "Session", &[address + 0x40]).allocated(generation(number), 12));
        objects.push(Made {
            size: 100,
            ..made(address + 0x40, "String", &[]).allocated(generation(number), 13)
        });
    }
    objects
}

fn leak() -> [Heap; 3] {
    let of = |objects: &[Made]| heap(&[CACHE], objects);
    let generation = |number: u64| if number < 2 { 1 } else { 5 };
    let mut after = cache(0..6, generation);
    after.push(made(0x9000, "Garbage", &[]).allocated(5, 20));
    [of(&cache(0..2, generation)), of(&after), of(&cache(0..5, generation))]
}

fn ask(question: &str, parameters: Value) -> Value {
    let [before, after, later] = leak();
    let diff = Diff::new(&before, &after, Some(&later)).expect("in memory");
    diff.answer_to(question, parameters)
}

#[test]
fn sums_up() {
    let totals = ask("totals", json!({}));
    assert_eq!(
        totals,
        json!({
            "warnings": [],
            "before": { "count": 6, "size": 360 },
            "after": { "count": 15, "size": 960 },
            "change": { "count": 9, "size": 600 },
            "new": { "count": 9, "size": 600 },
            "gone": { "count": 0, "size": 0 },
            "kept": { "count": 6, "size": 360 },
            "grown": 0,
            "survived": { "count": 6, "size": 420 },
            "temporary": { "count": 3, "size": 180 },
            "unreachable": { "count": 1, "size": 40 },
        })
    );
}

#[test]
fn rows_without_any_change_can_be_left_out() {
    for by in ["class", "site", "type"] {
        let all = ask("rows", json!({ "by": by }));
        let changed = ask("rows", json!({ "by": by, "changed": true }));
        assert_eq!((&all["unchanged"], &all["more"]), (&json!(0), &json!(0)));
        let zero = json!({ "count": 0, "size": 0 });
        let is_unchanged =
            |row: &&Value| ["new", "gone", "change"].iter().all(|key| row[key] == zero);
        let (same, other): (Vec<&Value>, Vec<&Value>) =
            all["rows"].as_array().expect("a list").iter().partition(is_unchanged);
        assert!(by == "type" || !same.is_empty(), "{by}");
        assert_eq!(changed["unchanged"], json!(same.len()));
        assert_eq!(changed["rows"], json!(other));
        // Unchanged rows do not count as `more`.
        let first = ask("rows", json!({ "by": by, "changed": true, "limit": 1 }));
        assert_eq!(first["more"], json!(other.len() - 1));
        assert_eq!(first["unchanged"], changed["unchanged"]);
    }
}

#[test]
fn lists_rows() {
    let rows = ask("rows", json!({ "by": "site", "sort": "retained", "limit": 1 }));
    assert_eq!(
        rows["rows"],
        json!([{
            "file": "app/cache.rb",
            "line": 12,
            "before": { "count": 2, "size": 80 },
            "after": { "count": 6, "size": 240 },
            "change": { "count": 4, "size": 160 },
            "reachable": { "count": 4, "size": 160 },
            "new": { "count": 4, "size": 160 },
            "garbage": { "count": 0, "size": 0 },
            "gone": { "count": 0, "size": 0 },
            "survived": { "count": 3, "size": 120 },
            "retained": 560,
        }])
    );
    assert_eq!(rows["more"], 4);
    let leaked = ask(
        "rows",
        json!({ "where": "change = survived and class = Session", "sort": "survived" }),
    );
    assert_eq!(leaked["rows"].as_array().map(Vec::len), Some(1));
    assert_eq!(leaked["rows"][0]["new"]["count"], 3);
}

#[test]
fn lists_owners() {
    let answer = ask("owners", json!({}));
    let owners = answer["owners"].as_array().expect("owners");
    assert_eq!(owners.len(), 1);
    let owner = &owners[0];
    assert_eq!((&owner["address"], &owner["class"]), (&json!("0x20"), &json!("Array")));
    assert_eq!((&owner["before"], &owner["retained"]), (&json!(320), &json!(880)));
    assert_eq!(owner["new"], json!({ "count": 8, "size": 560 }));
    assert_eq!(owner["retained_by_new"], 560);
    assert_eq!(owner["growth"], 560);
    assert_eq!(owner["classes"][0], json!({ "class": "String", "count": 4, "size": 400 }));
    assert_eq!(owner["path"]["steps"].as_array().map(Vec::len), Some(3));
    assert_eq!(answer["unreachable"], json!({ "count": 1, "size": 40 }));
}

#[test]
fn turnover_is_no_growth() {
    let of = |sessions| heap(&[CACHE], &cache(sessions, |number| 1 + number / 4));
    let (before, after) = (of(0..4), of(4..8));
    let diff = Diff::new(&before, &after, None).expect("in memory");
    let answer = diff.answer_to("owners", json!({}));
    let owner = &answer["owners"][0];
    assert_eq!(owner["address"], json!("0x20"));
    assert_eq!((&owner["retained_by_new"], &owner["growth"]), (&json!(560), &json!(0)));
}

#[test]
fn the_growth_of_an_owner_is_not_that_of_an_old_object_below_it() {
    let holder = || made(0x8, "App", &[CACHE, 0x9000]);
    let mut before = cache(0..2, |_| 1);
    before.insert(0, holder());
    let mut after = cache(0..6, |number| 1 + number / 2);
    after.insert(0, holder());
    after.push(made(0x9000, "Late", &[]).allocated(5, 20));
    let (before, after) = (heap(&[0x8], &before), heap(&[0x8], &after));
    let diff = Diff::new(&before, &after, None).expect("in memory");
    let answer = diff.answer_to("owners", json!({}));
    let growth = |address: &str| {
        let mut owners = answer["owners"].as_array().expect("owners").iter();
        let owner = owners.find(|owner| owner["address"] == json!(address));
        owner.expect("an owner")["growth"].clone()
    };
    assert_eq!((growth("0x20"), growth("0x8")), (json!(560), json!(40)));
}

#[test]
fn of_a_root_the_largest_new_object_is_named() {
    let node = |address: u64, next: &[u64]| made(address, "Node", next);
    let before = heap(&[0x40], &[node(0x40, &[])]);
    let after = [node(0x40, &[]), node(0x80, &[0x40])];
    let after = heap(&[0x80], &after);
    let diff = Diff::new(&before, &after, None).expect("in memory");
    let owner = &diff.answer_to("owners", json!({}))["owners"][0];
    assert_eq!(owner["largest"]["steps"][1]["address"], json!("0x80"));
    assert_eq!(owner["growth"], json!(40));
}

#[test]
fn an_object_that_grows_by_itself_is_an_owner_on_demand() {
    let log = |size: u64| [Made { size, ..made(0x40, "String", &[]) }];
    let (before, after) = (heap(&[0x40], &log(100)), heap(&[0x40], &log(9000)));
    let diff = Diff::new(&before, &after, None).expect("in memory");
    assert_eq!(diff.answer_to("owners", json!({}))["owners"], json!([]));
    let owner = &diff.answer_to("owners", json!({ "grown": true }))["owners"][0];
    assert_eq!((&owner["growth"], &owner["address"]), (&json!(8900), &json!("0x40")));
}

#[test]
fn rows_are_ranked_by_what_roots_reach() {
    let mut after = cache(0..4, |_| 1);
    after.extend(
        (0..50).map(|number| made(0x9000 + 0x40 * number, "Garbage", &[]).allocated(5, 20)),
    );
    let before = heap(&[CACHE], &cache(0..2, |_| 1));
    let after = heap(&[CACHE], &after);
    let diff = Diff::new(&before, &after, None).expect("in memory");
    let answer = diff.answer_to("rows", json!({}));
    let classes = answer["rows"].as_array().expect("rows").iter();
    let classes: Vec<&str> = classes.filter_map(|row| row["class"].as_str()).collect();
    assert_eq!(classes[0], "String");
    let garbage = classes.iter().position(|class| *class == "Garbage").expect("a row");
    let row = &answer["rows"][garbage];
    assert_eq!(row["change"]["size"], 2000);
    assert_eq!(row["reachable"], json!({ "count": 0, "size": 0 }));
    assert_eq!(row["garbage"], json!({ "count": 50, "size": 2000 }));
}

#[test]
fn lists_crossings() {
    let answer = ask("interface", json!({}));
    let rows = answer["crossings"].as_array().expect("rows");
    assert_eq!(rows.len(), 1);
    let row = &rows[0];
    assert_eq!((&row["from"], &row["class"]), (&json!("Array"), &json!("Session")));
    assert_eq!(
        (&row["references"], &row["holders"], &row["count"]),
        (&json!(4), &json!(1), &json!(4))
    );
    assert_eq!((&row["retained"], &row["keepalive_count"]), (&json!(560), &json!(2)));
    assert_eq!((&answer["border"], &answer["count"]), (&json!(1), &json!(4)));
    assert_eq!(answer["objects"][0]["holder"]["address"], "0x20");
}

#[test]
fn rejects_unknown_questions_and_parameters() {
    let [before, after, _] = leak();
    let diff = Diff::new(&before, &after, None).expect("in memory");
    let error = |question: &str, parameters: Value| {
        diff.ask(question, parameters).expect_err("no answer").to_string()
    };
    assert!(error("objects", json!({ "change": "survived" })).contains("third dump"));
    assert!(error("row", json!({})).contains("no such question"));
    assert!(error("rows", json!({ "by": "colour" })).contains("colour"));
    assert!(error("rows", json!({ "where": "change = old" })).contains("old"));
    assert!(error("rows", json!({ "where": "state = free" })).contains("in each heap"));
    assert_eq!(diff.answer_to("totals", json!({}))["survived"], Value::Null);
}
