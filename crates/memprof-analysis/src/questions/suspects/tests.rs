mod linked_lists;
mod loaded_code;
mod own_code;
mod thread_stacks;

use serde_json::json;

use super::*;
use crate::tests::ask;
use memprof_dump::record::Kind;
use memprof_heap::testing::{Thing, address, class, heap, string, thing};

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
        "Hash (1000) retains 527.4 KiB (100.0 %), in 1,000 Session instances, allocated at app/session.rb:7. It is retained \
         by Cache::STORE."
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
            .starts_with("500 Job instances retain 97.7 KiB (100.0 %)"),
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
        sentences[0].ends_with("It is retained by App@two."),
        "{sentences:?}"
    );
    assert!(
        sentences[1].ends_with("It is retained by App@one."),
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
        "String \"page\" takes 1.0 GiB (100.0 %) by itself. It is retained by App::PAGE."
    );
}

#[test]
fn what_is_less_than_half_is_not_most() {
    let things = [
        thing(address(0), Kind::DATA, "Buffer")
            .size(600)
            .to("", address(1)),
        string(address(1), "text").size(300),
        string(address(2), "garbage").size(4000),
    ];
    let found = suspects(&heap(&[("vm", &[address(0)])], &things));
    assert!(
        found[0]
            .sentence
            .starts_with("Buffer retains 900 B (18.4 %), 300 B of it in 1 String instance."),
        "{}",
        found[0].sentence
    );
}

/// A hash with 60 values, allocated by these lines: so many of each.
fn allocated(lines: &[(&str, u32, u64)]) -> Suspect {
    let mut hash = thing(address(1), Kind::HASH, "Hash");
    let mut things = vec![class(address(0), "App", 0).to("@all", address(1))];
    let mut next = 10;
    for &(file, line, count) in lines {
        for _ in 0..count {
            hash = hash.to("", address(next));
            things.push(string(address(next), "x").size(500).at(file, line, "", 1));
            next += 1;
        }
    }
    things.insert(1, hash);
    suspects(&heap(&[("vm", &[address(0)])], &things)).remove(0)
}

#[test]
fn most_is_said_of_a_majority_only() {
    let few: Vec<(String, u32, u64)> = (0..10)
        .map(|line| ("app.rb".to_owned(), line + 1, 1))
        .collect();
    let mut few: Vec<(&str, u32, u64)> = few
        .iter()
        .map(|(file, line, count)| (file.as_str(), *line, *count))
        .collect();
    few[3].2 = 2;
    let suspect = allocated(&few);
    assert!(
        !suspect.sentence.contains("allocated at"),
        "{}",
        suspect.sentence
    );
    assert!(suspect.site.is_none());
    // The figures are there.
    let most = &suspect.accumulated[0];
    assert_eq!((most.count, most.at_site), (11, 2));
    assert_eq!(most.site.as_ref().map(|site| site.line), Some(4));
    let half = allocated(&[("app.rb", 1, 30), ("app.rb", 2, 30)]);
    assert!(!half.sentence.contains("allocated at"), "{}", half.sentence);
    let majority = allocated(&[("app.rb", 1, 31), ("app.rb", 2, 29)]);
    assert!(
        majority
            .sentence
            .contains("60 String instances, most of them allocated at app.rb:1."),
        "{}",
        majority.sentence
    );
}

#[test]
fn code_in_c_has_no_line_to_name() {
    let suspect = allocated(&[("", 0, 50), ("app.rb", 2, 10)]);
    assert!(
        !suspect.sentence.contains("allocated at"),
        "{}",
        suspect.sentence
    );
    let suspect = allocated(&[("", 0, 60)]);
    assert!(suspect.site.is_none() && suspect.accumulated[0].site.is_none());
}

#[test]
fn an_arrow_in_a_text_is_no_step() {
    let key = "left -> right";
    let things = [
        class(address(0), "App", 0).to("@all", address(1)),
        thing(address(1), Kind::HASH, "Hash").to("", address(2)),
        string(address(2), key).size(1 << 20),
    ];
    let found = suspects(&heap(&[("vm", &[address(0)])], &things));
    assert_eq!(
        found[0].sentence,
        "String \"left -> right\" takes 1.0 MiB (100.0 %) by itself. It is retained by App@all -> Hash."
    );
    let answer = serde_json::to_value(&found[0]).expect("JSON");
    assert_eq!(answer["retained_by"], json!(["App@all -> Hash"]));
}

#[test]
fn places_in_files_stay_apart_in_what_is_said() {
    let things = [
        class(address(0), "App", 0).to("@hooks", address(1)),
        thing(address(1), Kind::DATA, "Proc")
            .named("proc")
            .written("/srv/app/hooks.rb", 12)
            .to("local body", address(2)),
        string(address(2), "body").size(1 << 20),
    ];
    let found = suspects(&heap(&[("vm", &[address(0)])], &things));
    let answer = serde_json::to_value(&found[0]).expect("JSON");
    assert_eq!(
        answer["retained_by"],
        json!([
            "App@hooks -> Proc ",
            { "file": "/srv/app/hooks.rb", "line": 12 },
            "(local body)"
        ])
    );
}

#[test]
fn advice_fits_what_is_loaded() {
    let page = || string(address(1), "page").size(1 << 20);
    let remarks = |things: &[Thing]| {
        let heap = heap(&[("vm", &[address(0), address(2)])], things);
        Question::default()
            .answer(&heap)
            .expect("an answer")
            .remarks
    };
    let app = || class(address(0), "App", 0).to("PAGE", address(1));
    let plain = remarks(&[app(), page()]);
    assert!(plain[0].contains("require \"memprof/signal\""), "{plain:?}");
    let signal = thing(address(2), Kind::MODULE, "Module").named("Memprof::OnSignal");
    let loaded = remarks(&[app(), page(), signal]);
    assert!(!loaded[0].contains("require"), "{loaded:?}");
    let tracked = string(address(2), "later").at("app.rb", 1, "", 5);
    let late = remarks(&[app(), page(), tracked]);
    assert!(late[0].contains("before tracking began"), "{late:?}");
    // Two lines allocated one half each.
    let list = thing(address(1), Kind::ARRAY, "Array");
    let mut things = vec![class(address(0), "App", 0).to("LIST", address(1))];
    let list = (0..40).fold(list, |list, number| list.to("", address(10 + number)));
    things.push(list);
    things.extend((0..40).map(|number| {
        let line = 1 + number as u32 % 2;
        string(address(10 + number), "row")
            .size(1000)
            .at("app.rb", line, "", 1)
    }));
    assert_eq!(remarks(&things), Vec::<String>::new());
}

#[test]
fn what_is_memprofs_own_is_no_suspect_and_said_in_one_line() {
    let things = [
        thing(address(0), Kind::DATA, "Memprof::Native::Guard")
            .named("Memprof::Native::Guard")
            .size(1 << 20),
        string(address(1), "small"),
    ];
    let heap = heap(&[("vm", &[address(0), address(1)])], &things);
    let answer = Question::default().answer(&heap).expect("an answer");
    assert_eq!(answer.suspects.len(), 1);
    assert_eq!(answer.suspects[0].object.class, "String");
    assert_eq!(answer.suspects[0].percent, 100.0);
    assert!(
        answer
            .remarks
            .contains(&"Not counted: 1 object of memprof's own (1.0 MiB).".to_owned()),
        "{:?}",
        answer.remarks
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
    let answer = [
        share("suspects", json!({}))["suspects"][0]["percent"].clone(),
        share("suspects", json!({}))["suspects"][0]["object"]["percent"].clone(),
        share("top", json!({}))["objects"][0]["percent"].clone(),
        share("object", json!({ "of": 0 }))["percent"].clone(),
        share("histogram", json!({ "where": "type = array" }))["rows"][0]["percent"].clone(),
    ];
    assert_eq!(answer, [60.0; 5].map(|percent| json!(percent)));
    // 60 % of the heap, all of what is reachable.
    let none = share("suspects", json!({ "threshold": 61 }));
    assert_eq!(none["suspects"], json!([]));
}
