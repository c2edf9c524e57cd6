use serde_json::json;

use super::*;
use crate::analysis::ask;
use crate::heap::testing::{Thing, address, class, heap, string, thing};

/// A class `Cache` whose constant has a hash of sessions, each with a text, and a little of everything else.
fn cache(sessions: u64) -> Heap {
    let session = |number: u64| 10 + 2 * number;
    let mut hash = thing(address(3), Kind::HASH, "Hash").length(sessions);
    for number in 0..sessions {
        hash = hash.to("", address(session(number)));
    }
    let mut things = vec![
        class(address(0), "Object", 0).to("Cache", address(1)),
        class(address(1), "Cache", 0).to("STORE", address(3)),
        class(address(2), "Session", 0),
        hash,
        string(address(4), "alone").size(100),
    ];
    for number in 0..sessions {
        let of = session(number);
        things.push(
            thing(address(of), Kind::OBJECT, "Session")
                .at("app/session.rb", 7, "fetch", number)
                .to("@text", address(of + 1)),
        );
        things.push(string(address(of + 1), "text").size(500));
    }
    heap(&[("vm", &[address(0), address(2), address(4)])], &things)
}

fn suspects(heap: &Heap) -> Vec<Suspect> {
    Question::default()
        .answer(heap)
        .expect("an answer")
        .suspects
}

#[test]
fn a_hash_that_never_forgets_is_named_with_its_holder_and_the_line() {
    let found = suspects(&cache(1000));
    assert_eq!(found.len(), 1);
    let suspect = &found[0];
    assert_eq!(suspect.kind, Nature::Object);
    assert_eq!(suspect.object.text, "Hash (1000)");
    assert_eq!(suspect.retained, 40 + 1000 * 540);
    assert_eq!(suspect.accumulated[0].class, "Session");
    assert_eq!(
        (suspect.accumulated[0].count, suspect.accumulated[0].at_site),
        (1000, 1000)
    );
    assert_eq!(suspect.accumulated[0].generations, Some((0, 999)));
    assert_eq!(suspect.site.as_ref().map(|site| site.line), Some(7));
    assert_eq!(
        suspect.sentence,
        "Hash (1000) retains 527.4 KiB (100.0 %), in 1,000 Session, made at app/session.rb:7. It is held by Cache::STORE."
    );
}

#[test]
fn objects_without_a_common_holder_are_a_group() {
    let mut things = vec![class(address(0), "Job", 0)];
    let roots: Vec<u64> = (0..500).map(|number| address(1 + number)).collect();
    things.extend(
        roots
            .iter()
            .map(|&at| thing(at, Kind::OBJECT, "Job").size(200)),
    );
    let heap = heap(&[("global_tbl", &roots), ("vm", &[address(0)])], &things);
    let found = suspects(&heap);
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].kind, found[0].retained), (Nature::Group, 100_000));
    assert!(
        found[0]
            .sentence
            .starts_with("500 Job retain 97.7 KiB (100.0 %)"),
        "{}",
        found[0].sentence
    );
}

#[test]
fn two_caches_beside_each_other_are_two_suspects() {
    let list = |at: u64| {
        let first = 10 + at * 1000;
        let mut list = thing(address(at), Kind::ARRAY, "Array").length(300);
        for number in 0..300 {
            list = list.to(&format!("[{number}]"), address(first + number));
        }
        let strings =
            (0..300).map(move |number| string(address(first + number), "x").size(100 * at));
        std::iter::once(list).chain(strings).collect::<Vec<Thing>>()
    };
    let mut things = vec![
        class(address(0), "App", 0)
            .to("@one", address(1))
            .to("@two", address(2)),
    ];
    things.extend(list(1));
    things.extend(list(2));
    things.sort_by_key(|thing| thing.address);
    let heap = heap(&[("vm", &[address(0)])], &things);
    let found = suspects(&heap);
    let sentences: Vec<&str> = found
        .iter()
        .map(|suspect| suspect.sentence.as_str())
        .collect();
    assert_eq!(found.len(), 2, "{sentences:?}");
    assert!(
        sentences[0].ends_with("It is held by App@two."),
        "{sentences:?}"
    );
    assert!(
        sentences[1].ends_with("It is held by App@one."),
        "{sentences:?}"
    );
}

#[test]
fn a_large_string_is_a_suspect_by_itself() {
    let things = [
        class(address(0), "App", 0).to("PAGE", address(1)),
        string(address(1), "page").size(1 << 30),
    ];
    let found = suspects(&heap(&[("vm", &[address(0)])], &things));
    assert_eq!(
        found[0].sentence,
        "String \"page\" takes 1.0 GiB (100.0 %) by itself. It is held by App::PAGE."
    );
}

#[test]
fn a_thread_is_told_by_its_stack_and_not_by_the_little_that_it_holds() {
    let things = [
        thing(address(0), Kind::DATA, "Thread")
            .size(1 << 20)
            .to("", address(1)),
        string(address(1), "local").size(100),
    ];
    let found = suspects(&heap(&[("vm", &[address(0)])], &things));
    assert_eq!(
        found[0].sentence,
        "Thread takes 1.0 MiB (100.0 %) by itself, for its stack. It is held by root vm."
    );
}

#[test]
fn loaded_code_is_no_leak() {
    let mut things = vec![class(address(0), "App", 0)];
    let code: Vec<u64> = (0..200).map(|number| address(1 + number)).collect();
    things.extend(
        code.iter()
            .map(|&at| thing(at, Kind::IMEMO, "").named("iseq").size(1000)),
    );
    let heap = heap(&[("vm", &code), ("global_tbl", &[address(0)])], &things);
    let answer = Question::default().answer(&heap).expect("an answer");
    assert!(answer.suspects.is_empty());
    assert_eq!(answer.remarks.len(), 1);
}

#[test]
fn a_heap_without_roots_says_so() {
    let answer = Question::default()
        .answer(&heap(&[], &[string(address(1), "x")]))
        .expect("an answer");
    assert!(
        answer.remarks[0].contains("no roots"),
        "{:?}",
        answer.remarks
    );
}

#[test]
fn a_threshold_that_makes_no_sense_is_refused() {
    let heap = cache(3);
    for threshold in [json!(0), json!(-1), json!(101), json!("many")] {
        assert!(ask(&heap, "suspects", json!({ "threshold": threshold })).is_err());
    }
    assert!(ask(&heap, "suspects", json!({ "treshold": 5 })).is_err());
}

#[test]
fn shares_are_of_the_whole_heap_garbage_included() {
    let mut things = vec![thing(address(0), Kind::ARRAY, "Array").size(600)];
    things.push(string(address(1), "garbage").size(400));
    let heap = heap(&[("vm", &[address(0)])], &things);
    let share = |question: &str, parameters| ask(&heap, question, parameters).expect("an answer");
    let told = [
        share("suspects", json!({}))["suspects"][0]["percent"].clone(),
        share("suspects", json!({}))["suspects"][0]["object"]["percent"].clone(),
        share("top", json!({}))["objects"][0]["percent"].clone(),
        share("object", json!({ "of": 0 }))["percent"].clone(),
        share("histogram", json!({ "where": "type = array" }))["rows"][0]["percent"].clone(),
    ];
    assert_eq!(told, [60.0; 5].map(|percent| json!(percent)));
    // 60 % of the heap, all of what is reachable.
    let none = share("suspects", json!({ "threshold": 61 }));
    assert_eq!(none["suspects"], json!([]));
}
