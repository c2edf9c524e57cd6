use super::tracking::Tracking;
use super::*;
use memprof_dump::record::Kind as Type;
use serde_json::json;

use memprof_heap::testing::{Thing, address, class, heap, string, thing};

fn verdict(heaps: &[Heap]) -> Answer {
    let mut verdict = Verdict::default();
    for heap in heaps {
        verdict.add(heap, false).expect("added");
    }
    let last = heaps.last().expect("a heap");
    verdict.answer(&Question::default(), last).expect("an answer")
}

/// Tenants in a hash, each with `notes` strings.
fn tenants(tenants: u64, notes: u64) -> Heap {
    let mut hash = thing(address(2), Type::HASH, "Hash").length(tenants);
    let mut things = vec![
        class(address(0), "Object", 0).to("Registry", address(1)),
        class(address(1), "Registry", 0).to("TENANTS", address(2)),
        class(address(3), "Tenant", 0),
    ];
    for tenant in 0..tenants {
        let at = 10 + tenant * 1000;
        hash = hash.to("[:key]", address(at));
        let mut array = thing(address(at + 1), Type::ARRAY, "Array").length(notes);
        for note in 0..notes {
            array = array.to(&format!("[{note}]"), address(at + 2 + note));
            let string = string(address(at + 2 + note), "note").size(100);
            things.push(string.at("/srv/shop/app.rb", 6, "note", 1));
        }
        things.push(thing(address(at), Type::OBJECT, "Tenant").to("@notes", address(at + 1)));
        things.push(array);
    }
    things.push(hash);
    heap(&[("vm", &[address(0), address(3)])], &things)
}

#[test]
fn what_many_like_holders_gain_is_one_finding() {
    let answer = verdict(&[tenants(50, 10), tenants(50, 20), tenants(50, 30)]);
    assert_eq!((answer.findings.len(), answer.more), (1, 0));
    let finding = &answer.findings[0];
    assert_eq!(finding.class, "String");
    assert_eq!(
        finding.retained_by.to_string(),
        "Registry::TENANTS -> Hash[*] -> Tenant@notes -> Array[*]"
    );
    assert_eq!(finding.count, [500, 1000, 1500]);
    assert_eq!((finding.trend, finding.gained), (Trend::Grows, 100_000));
    let own = finding.own.as_ref().expect("the application's line");
    assert_eq!((own.site.line, own.more.count), (6, 1000));
}

#[test]
fn the_line_of_the_application_is_the_one_that_called_the_library() {
    let queue = |jobs: u64| {
        let mut array = thing(address(2), Type::ARRAY, "Array").length(jobs);
        let mut things = vec![class(address(0), "Object", 0).to("JOBS", address(2))];
        for job in 0..jobs {
            array = array.to(&format!("[{job}]"), address(10 + job));
            let parsed = string(address(10 + job), "job").size(100);
            let parsed = parsed.at("/x/gems/json-2.7.0/lib/json.rb", 216, "parse", 1);
            // Two application lines, one of which calls it more often.
            let line = if job % 4 == 0 { 7 } else { 9 };
            things.push(parsed.called_at("/srv/shop/app.rb", line));
        }
        things.push(array);
        heap(&[("vm", &[address(0)])], &things)
    };
    let answer = verdict(&[queue(0), queue(400), queue(800)]);
    let finding = &answer.findings[0];
    let lines: Vec<_> = finding.lines.iter().map(|line| (line.site.line, line.own)).collect();
    assert_eq!(lines, [(216, false)]);
    assert_eq!(finding.lines[0].more.count, 800);
    let own = finding.own.as_ref().expect("the application's line");
    assert_eq!((own.site.file.as_str(), own.site.line), ("/srv/shop/app.rb", 9));
    assert_eq!((own.own, own.more.count), (true, 600));
}

#[test]
fn paths_that_are_alike_are_one() {
    let heap = tenants(50, 20);
    let question = merged_paths::Question {
        r#where: Some("type = STRING or class = Tenant".to_owned()),
        limit: Limit::default(),
    };
    let answer = question.answer(&heap).expect("an answer");
    let rows: Vec<_> = (answer.rows.iter())
        .map(|row| (row.class.as_str(), row.retained_by.to_string(), row.sum))
        .collect();
    let notes = "Registry::TENANTS -> Hash[*] -> Tenant@notes -> Array[*]".to_owned();
    let sum = |count, size| Sum { count, size };
    assert_eq!(
        rows,
        [
            ("String", notes, sum(1000, 100_000)),
            ("Tenant", "Registry::TENANTS -> Hash[*]".to_owned(), sum(50, 2000)),
        ]
    );
    assert_eq!((answer.more, answer.garbage), (0, Sum::default()));
    let one = merged_paths::Question { limit: Limit(1), ..question };
    assert_eq!(one.answer(&heap).expect("an answer").more, 1);
}

#[test]
fn two_heaps_show_growth_but_no_trend() {
    let answer = verdict(&[tenants(50, 10), tenants(50, 20)]);
    assert_eq!(answer.findings[0].trend, Trend::Unknown);
}

#[test]
fn what_stays_the_same_or_takes_the_place_of_others_does_not_grow() {
    let same = verdict(&[tenants(50, 20), tenants(50, 20), tenants(50, 20)]);
    assert!(same.findings.is_empty());
    let shrunk = verdict(&[tenants(50, 20), tenants(50, 30), tenants(50, 20)]);
    assert!(shrunk.findings.is_empty());
}

#[test]
fn a_cache_that_fills_levels_off() {
    let answer = verdict(&[tenants(50, 0), tenants(50, 100), tenants(50, 110)]);
    assert_eq!(answer.findings[0].trend, Trend::LevelsOff);
}

/// Jobs, each retained by the one before.
fn list(jobs: u64) -> Heap {
    let mut things =
        vec![class(address(0), "Object", 0).to("JOBS", address(10)), class(address(1), "Job", 0)];
    for job in 0..jobs {
        let one = thing(address(10 + job), Type::OBJECT, "Job").size(100);
        let next = (job + 1 < jobs).then(|| address(11 + job));
        things.push(next.map_or(one.clone(), |next| one.clone().to("@next", next)));
    }
    heap(&[("vm", &[address(0), address(1)])], &things)
}

#[test]
fn a_list_of_any_length_is_one_finding() {
    let answer = verdict(&[list(1000), list(2000), list(3000)]);
    assert_eq!(answer.findings.len(), 1);
    let finding = &answer.findings[0];
    assert!(finding.list);
    assert_eq!(finding.count, [999, 1999, 2999]);
}

/// An array of numbers. They are not objects.
fn numbers(size: u64) -> Heap {
    let things: Vec<Thing> = vec![
        class(address(0), "Object", 0).to("SEEN", address(1)),
        thing(address(1), Type::ARRAY, "Array").size(size),
    ];
    heap(&[("vm", &[address(0)])], &things)
}

#[test]
fn what_grows_itself_is_found_without_more_objects() {
    let answer = verdict(&[numbers(100_000), numbers(200_000), numbers(300_000)]);
    let finding = &answer.findings[0];
    assert_eq!((finding.class.as_str(), finding.in_place), ("Array", true));
    assert_eq!(finding.retained_by.to_string(), "SEEN");
}

/// Threads, each with a stack of a mebibyte.
fn threads(count: u64, strings: u64) -> Heap {
    threads_with_stacks(count, strings, 1 << 20)
}

fn threads_with_stacks(count: u64, strings: u64, size: u64) -> Heap {
    let mut things = vec![class(address(0), "Thread", 0)];
    let mut roots = vec![address(0)];
    for number in 0..count {
        let mut one = thing(address(10 + number), Type::DATA, "Thread");
        one = one.named("VM/thread").size(size);
        for text in 0..strings {
            let at = address(1000 + number * 100 + text);
            one = one.to("", at);
            things.push(string(at, "text").size(1000));
        }
        things.push(one);
        roots.push(address(10 + number));
    }
    heap(&[("vm", &roots)], &things)
}

#[test]
fn threads_count_as_such_and_their_stacks_as_what_they_use() {
    let answer = verdict(&[threads(10, 5), threads(20, 5), threads(30, 5)]);
    let finding = &answer.findings[0];
    assert_eq!(finding.kind, Kind::Thread);
    assert_eq!(finding.gained, 20 * (16 * 1024 + 5000));
    let why = Why::Running { unended: Some("threads"), frame: None, count: 0 };
    assert_eq!(finding.why, Some(why));
}

#[test]
fn threads_that_use_more_of_their_stacks_do_not_grow() {
    let heaps = [4096, 8192, 16384].map(|size| threads_with_stacks(64, 5, size));
    assert!(verdict(&heaps).findings.is_empty());
}

/// Strings that a stack and a constant reference.
fn on_a_stack(strings: u64) -> Heap {
    let mut array = thing(address(3), Type::ARRAY, "Array");
    let mut thread = thing(address(2), Type::DATA, "Thread").named("VM/thread");
    let mut things = vec![
        class(address(0), "Object", 0).to("Log", address(4)),
        class(address(4), "Log", 0).to("LINES", address(5)),
        thing(address(5), Type::OBJECT, "Lines").to("@all", address(3)),
        class(address(1), "Thread", 0),
    ];
    for number in 0..strings {
        array = array.to(&format!("[{number}]"), address(10 + number));
        things.push(string(address(10 + number), "line").size(100));
        thread = thread.to("", address(10 + number));
    }
    things.extend([array, thread]);
    heap(&[("vm", &[address(0), address(1), address(2)])], &things)
}

#[test]
fn what_lasts_is_named_before_a_stack() {
    let answer = verdict(&[on_a_stack(100), on_a_stack(200), on_a_stack(300)]);
    assert_eq!(answer.findings[0].retained_by.to_string(), "Log::LINES -> Lines@all -> Array[*]");
}

/// Items in hashes, `{ item:, next: [..] }`, each in the array of the previous one.
fn nested(items: u64) -> Heap {
    let mut things = vec![class(address(0), "Object", 0).to("LIST", address(10))];
    for item in 0..items {
        let (hash, array) = (address(10 + item * 2), address(11 + item * 2));
        things.push(thing(hash, Type::HASH, "Hash").size(100).to("[0]", array));
        let next = thing(array, Type::ARRAY, "Array");
        things.push(if item + 1 < items { next.to("[0]", address(12 + item * 2)) } else { next });
    }
    heap(&[("vm", &[address(0)])], &things)
}

#[test]
fn a_list_of_collections_is_one_finding() {
    let answer = verdict(&[nested(1000), nested(2000), nested(3000)]);
    assert_eq!(answer.findings.len(), 1);
    assert!(answer.findings[0].list);
}

/// Jobs, hashes in an array, each with an array of arguments that another line allocated.
fn jobs(jobs: u64) -> Heap {
    let mut queue = thing(address(1), Type::ARRAY, "Array");
    let mut things = vec![class(address(0), "Object", 0).to("JOBS", address(2))];
    for job in 0..jobs {
        let (hash, arguments) = (address(10 + job * 2), address(11 + job * 2));
        queue = queue.to(&format!("[{job}]"), hash);
        let one = thing(hash, Type::HASH, "Hash").to("[0]", arguments);
        things.push(one.at("/srv/shop/app.rb", 3, "push", 1));
        let one = thing(arguments, Type::ARRAY, "Array").size(500);
        things.push(one.at("/srv/shop/app.rb", 9, "parse", 1));
    }
    things.push(thing(address(2), Type::HASH, "Hash").to("[0]", address(1)));
    things.push(queue);
    heap(&[("vm", &[address(0)])], &things)
}

#[test]
fn collections_in_collections_are_levels_and_not_a_list() {
    let answer = verdict(&[jobs(100), jobs(200), jobs(300)]);
    let finding = &answer.findings[0];
    assert_eq!((finding.class.as_str(), finding.list), ("Hash", false));
    assert_eq!(finding.retained_by.to_string(), "JOBS -> Hash[*] -> Array[*]");
    assert_eq!(finding.lines[0].site.line, 3);
}

/// A single collection or string.
fn single(kind: Type, name: &str, size: u64, length: u64) -> Heap {
    let one = thing(address(1), kind, name).size(size).length(length);
    let object = class(address(0), "Object", 0).to("ONE", address(1));
    heap(&[("vm", &[address(0)])], &[object, one])
}

#[test]
fn a_string_grows_by_its_contents_too() {
    let buffer = |size, length| single(Type::STRING, "String", size, length);
    let (k128, k256) = (128 << 10, 256 << 10);
    let appended = verdict(&[buffer(k128, 100_000), buffer(k256, 170_000), buffer(k256, 240_000)]);
    let finding = &appended.findings[0];
    assert!(finding.in_place);
    assert_eq!(finding.why, Some(Why::Appended));
    let doubled =
        verdict(&[buffer(k128, 100_000), buffer(k256, 170_000), buffer(k256 + 8192, 240_000)]);
    assert_eq!(doubled.findings[0].trend, Trend::Grows);
    let reused = verdict(&[buffer(k256, 100_000), buffer(k256, 170_000), buffer(k256, 240_000)]);
    assert!(reused.findings.is_empty());
}

#[test]
fn a_singleton_class_that_grows_is_a_class_to_which_something_is_added() {
    let module = |size| single(Type::CLASS, "#<Class:Query::Matchers>", size, 0);
    let answer = verdict(&[module(1 << 20), module(2 << 20), module(3 << 20)]);
    let finding = &answer.findings[0];
    assert_eq!((finding.kind, finding.in_place), (Kind::Class, true));
    assert_eq!(finding.why, Some(Why::Added));
}

#[test]
fn a_hash_that_only_grows_by_capacity_says_so() {
    let hash = |size| single(Type::HASH, "Hash", size, 10);
    let answer = verdict(&[hash(1 << 20), hash(2 << 20), hash(4 << 20)]);
    assert_eq!(answer.findings[0].why, Some(Why::Capacity { entries: 10 }));
}

/// Threads, some of which have a large object in their frames.
fn left_in_frames(number: u64, with: u64) -> Heap {
    let mut things = vec![class(address(0), "Thread", 0)];
    let mut roots = vec![address(0)];
    for at in 0..number {
        let one = thing(address(10 + at), Type::DATA, "Thread").named("VM/thread");
        let held = address(1000 + at);
        things.push(if at < with { one.to("", held) } else { one });
        if at < with {
            things.push(thing(held, Type::FILE, "TCPSocket").size(10_000));
        }
        roots.push(address(10 + at));
    }
    heap(&[("vm", &roots)], &things)
}

#[test]
fn what_threads_had_last_does_not_grow() {
    let heaps = [20, 40, 60].map(|with| left_in_frames(64, with));
    assert!(verdict(&heaps).findings.is_empty());
}

/// A hash that a gem allocated, in a set of the application.
fn set(size: u64) -> Heap {
    let hash = thing(address(2), Type::HASH, "Hash").size(size);
    let set = thing(address(1), Type::OBJECT, "Set").to("@hash", address(2));
    let things = [
        class(address(0), "Object", 0).to("SEEN", address(1)),
        set.at("/srv/shop/app.rb", 7, "initialize", 1),
        hash.at("/usr/lib/ruby/3.1.0/set.rb", 246, "initialize", 1),
    ];
    heap(&[("vm", &[address(0)])], &things)
}

#[test]
fn the_application_s_line_may_be_the_holder_s() {
    let answer = verdict(&[set(100_000), set(200_000), set(300_000)]);
    let own = answer.findings[0].own.as_ref().expect("a line");
    assert_eq!((own.class.as_str(), own.site.line), ("Set", 7));
}

#[test]
fn questions_that_make_no_sense_are_refused() {
    let heap = numbers(1);
    assert!(Verdict::default().json(&Question::default(), None).is_err());
    let mut verdict = Verdict::default();
    verdict.add(&heap, false).expect("added");
    let own = Some("(".to_owned());
    let question = Question { own, ..Question::default() };
    assert!(verdict.json(&question, Some(&heap)).is_err());
}

#[test]
fn heaps_of_workers_count_together() {
    let mut verdict = Verdict::default();
    let rounds = [[list(1000), list(500)], [list(1500), list(700)]];
    for [first, second] in &rounds {
        verdict.add(first, false).expect("added");
        verdict.add(second, true).expect("added");
    }
    let answer = verdict.answer(&Question::default(), &rounds[1][1]).expect("an answer");
    assert_eq!(answer.heaps, 2);
    assert_eq!(answer.findings[0].count, [1498, 2198]);
}

/// A thread in the middle of a job with `rows` rows, at addresses from `first` on.
fn working(first: u64, rows: u64) -> Heap {
    let thread = thing(address(1), Type::DATA, "Thread").named("VM/thread");
    let mut array = thing(address(2), Type::ARRAY, "Array");
    let mut things = vec![class(address(0), "Thread", 0)];
    for number in 0..rows {
        let at = address(first + number);
        array = array.to("", at);
        things.push(thing(at, Type::OBJECT, "Row").size(1000));
    }
    things.extend([thread.to("", address(2)), array]);
    things.sort_by_key(|thing| thing.address);
    heap(&[("vm", &[address(0), address(1)])], &things)
}

#[test]
fn rows_of_one_job_after_the_other_do_not_grow() {
    let jobs = [(10_000, 500), (20_000, 1000), (30_000, 1500)];
    assert!(verdict(&jobs.map(|(first, rows)| working(first, rows))).findings.is_empty());
    let one = [500, 1000, 1500].map(|rows| working(10_000, rows));
    assert_eq!(verdict(&one).findings[0].class, "Row");
}

/// Classes whose names differ by numbers, each in a file of its own or all in one.
fn numbered(classes: u64, own_files: bool) -> Heap {
    let mut global = class(address(0), "Object", 0);
    let mut things = Vec::new();
    for number in 0..classes {
        let at = address(10 + number);
        let file = if own_files { number } else { 0 };
        global = global.to(&format!("Part{number}"), at);
        let part = class(at, &format!("Part{number}"), 0).size(10_000);
        things.push(part.at(&format!("/srv/shop/part{file}.rb"), 1, "", 1));
    }
    things.insert(0, global);
    heap(&[("vm", &[address(0)])], &things)
}

#[test]
fn classes_that_are_loaded_do_not_grow_and_those_that_are_generated_do() {
    let loaded = verdict(&[10, 20, 30].map(|number| numbered(number, true)));
    assert!(loaded.findings.is_empty());
    let generated = verdict(&[10, 20, 30].map(|number| numbered(number, false)));
    assert_eq!(generated.findings.len(), 1);
}

/// Objects that take much of one heap: class, number, and path.
fn large(heap: &Heap) -> Vec<(String, u64, String)> {
    let answer = verdict(std::slice::from_ref(heap));
    assert_eq!(answer.heaps, 1);
    (answer.findings.iter())
        .map(|found| {
            assert_eq!((found.trend, found.gained), (Trend::OneHeap, found.size[0]));
            (found.class.clone(), found.count[0], found.retained_by.to_string())
        })
        .collect()
}

#[test]
fn of_one_heap_what_is_large_is_named_with_its_holder_and_line() {
    let tenant = "Registry::TENANTS -> Hash[*]".to_owned();
    // A few tenants with many notes, or many tenants with a few.
    let notes = format!("{tenant} -> Tenant@notes -> Array[*]");
    assert_eq!(large(&tenants(20, 30)), [("String".to_owned(), 600, notes)]);
    assert_eq!(large(&tenants(200, 3)), [("Tenant".to_owned(), 200, tenant)]);
    let answer = verdict(&[tenants(20, 30)]);
    let own = answer.findings[0].own.as_ref().expect("the application's line");
    assert_eq!((own.site.line, own.more.count), (6, 600));
    assert_eq!(answer.findings[0].generations, Some((1, 1)));
    assert_eq!(answer.reachable.len(), 1);
}

#[test]
fn of_one_heap_two_caches_beside_each_other_are_two_findings() {
    let mut things =
        vec![class(address(0), "App", 0).to("PAGES", address(1)).to("NAMES", address(2))];
    for (at, (begin, size)) in [(10, 3000), (500, 1000)].into_iter().enumerate() {
        let entries = 0..150;
        let array = thing(address(1 + at as u64), Type::ARRAY, "Array").length(150);
        things.push(entries.clone().fold(array, |array, number| {
            array.to(&format!("[{number}]"), address(begin + number))
        }));
        things.extend(entries.map(|number| string(address(begin + number), "text").size(size)));
    }
    let text = |holder: &str| ("String".to_owned(), 150, format!("App::{holder} -> Array[*]"));
    assert_eq!(large(&heap(&[("vm", &[address(0)])], &things)), [text("PAGES"), text("NAMES")]);
}

#[test]
fn of_one_heap_a_large_text_is_named_and_loaded_code_is_not() {
    let code: Vec<u64> = (10..300).map(address).collect();
    let mut things = vec![
        class(address(0), "App", 0).to("PAGE", address(1)),
        string(address(1), "page").size(1 << 20),
        // RubyGems' metadata about gems.
        class(address(2), "Gem", 0).to("@specs", address(3)),
        string(address(3), "specifications").size(1 << 20),
    ];
    things.extend(code.iter().map(|&at| thing(at, Type::IMEMO, "").named("iseq").size(10_000)));
    let roots = [("vm", code.as_slice()), ("global_tbl", &[address(0), address(2)])];
    let page = ("String".to_owned(), 1, "App::PAGE".to_owned());
    assert_eq!(large(&heap(&roots, &things)), [page]);
}

#[test]
fn variables_that_are_added_to_an_object_are_one_finding() {
    let bag = |values: u64| {
        let mut bag = thing(address(2), Type::OBJECT, "Bag");
        let mut things = vec![class(address(0), "Object", 0).to("BAG", address(2))];
        for value in 0..values {
            bag = bag.to(&format!("@value_{value}"), address(10 + value));
            things.push(string(address(10 + value), "value").size(1000));
        }
        things.push(bag);
        heap(&[("vm", &[address(0)])], &things)
    };
    let answer = verdict(&[bag(10), bag(200), bag(400)]);
    let finding = &answer.findings[0];
    assert_eq!(finding.retained_by.to_string(), "BAG -> Bag@value_#");
    assert_eq!((finding.class.as_str(), finding.gained), ("String", 390_000));
}

#[test]
fn the_table_of_a_weak_map_is_no_growth() {
    let map = |size: u64| {
        let map = thing(address(1), Type::DATA, "ObjectSpace::WeakMap").size(size);
        let object = [address(0)];
        let roots = [("vm", object.as_slice())];
        heap(&roots, &[class(address(0), "Object", 0).to("MAP", address(1)), map])
    };
    let answer = verdict(&[map(1 << 10), map(1 << 20), map(1 << 22)]);
    assert_eq!(answer.findings.len(), 0);
}

#[test]
fn a_heap_without_roots_is_not_known() {
    let heaps = [heap(&[], &[string(address(1), "x")]), tenants(2, 3)];
    for heaps in [&heaps[..1], &heaps] {
        assert_eq!(verdict(heaps).unknown, Some(Remark::Unretained));
    }
    assert_eq!(verdict(&heaps[1..]).unknown, None);
}

#[test]
fn a_heap_that_lacks_what_roots_refer_to_is_not_known() {
    // A dump of objects allocated since: one is on the stack by chance.
    let things: Vec<_> = (0..9).map(|at| string(address(at), "x")).collect();
    let lost: Vec<u64> = (100..105).map(address).collect();
    let with = |found: u64| {
        let found: Vec<u64> = (0..found).map(address).collect();
        let roots = [("vm", lost.as_slice()), ("machine_context", &found)];
        verdict(&[heap(&roots, &things)]).unknown
    };
    assert_eq!(with(4), Some(Remark::Unretained));
    assert_eq!(with(5), None);
}

#[test]
fn a_threshold_that_makes_no_sense_is_refused() {
    let heap = tenants(2, 3);
    let ask = |parameters| crate::questions::ask(&heap, "leaks", parameters);
    for threshold in [json!(0), json!(-1), json!(101), json!("many")] {
        assert!(ask(json!({ "threshold": threshold })).is_err());
    }
    assert!(ask(json!({ "treshold": 5 })).is_err());
    assert!(ask(json!({ "threshold": 100 })).is_ok());
}

#[test]
fn advice_on_lines_fits_what_is_loaded() {
    let page = || string(address(1), "page").size(1 << 20);
    let remarks =
        |things: &[Thing]| verdict(&[heap(&[("vm", &[address(0), address(2)])], things)]).remarks;
    let app = || class(address(0), "App", 0).to("PAGE", address(1));
    let unknown = [Remark::NoLines { tracking: Tracking::Unknown }];
    assert_eq!(remarks(&[app(), page()]), unknown);
    let signal = thing(address(2), Type::MODULE, "Module").named("Memprof::OnSignal");
    let own = Remark::OwnObjects { count: 1, size: 40 };
    assert_eq!(
        remarks(&[app(), page(), signal]),
        [Remark::NoLines { tracking: Tracking::Off }, own]
    );
    let tracked = string(address(2), "later").at("app.rb", 1, "", 5);
    assert_eq!(remarks(&[app(), page(), tracked]), [Remark::LinesUnknown]);
    assert_eq!(verdict(&[tenants(20, 30)]).remarks, []);
}

#[test]
fn a_queue_that_drops_its_oldest_grows_if_it_takes_in_more() {
    let queue = |jobs: std::ops::Range<u64>| {
        let mut array = thing(address(2), Type::ARRAY, "Array").length(jobs.end - jobs.start);
        let mut things = vec![class(address(0), "Object", 0).to("JOBS", address(2))];
        for job in jobs {
            array = array.to(&format!("[{job}]"), address(10 + job));
            things.push(string(address(10 + job), "job").size(100));
        }
        things.push(array);
        heap(&[("vm", &[address(0)])], &things)
    };
    let answer = verdict(&[queue(0..300), queue(200..800), queue(400..1300)]);
    let finding = &answer.findings[0];
    assert_eq!(finding.retained_by.to_string(), "JOBS -> Array[*]");
    assert_eq!(finding.count, [300, 600, 900]);
    // All objects differ each time: the queue is replaced as a whole.
    let answer = verdict(&[queue(0..300), queue(300..900), queue(900..1800)]);
    assert_eq!(answer.findings.len(), 0);
}

#[test]
fn a_list_that_is_linked_both_ways_is_one_finding() {
    let ring = |sessions: u64| {
        let at = |number: u64| address(10 + number);
        let ring = thing(address(1), Type::OBJECT, "Ring");
        let mut things = vec![
            class(address(0), "Object", 0).to("RING", address(1)),
            class(address(2), "Session", 0),
            ring.to("@head", at(0)).to("@tail", at(sessions - 1)),
        ];
        things.extend((0..sessions).map(|number| {
            let session = thing(at(number), Type::OBJECT, "Session").size(200);
            let session = match number + 1 == sessions {
                true => session,
                false => session.to("@next", at(number + 1)),
            };
            match number {
                0 => session,
                _ => session.to("@previous", at(number - 1)),
            }
        }));
        heap(&[("vm", &[address(0), address(2)])], &things)
    };
    let answer = verdict(&[ring(400), ring(800), ring(1200)]);
    assert_eq!(answer.findings.len(), 1);
    let finding = &answer.findings[0];
    assert!(finding.list);
    // Except the first and the last, which are not links.
    assert_eq!(finding.count, [398, 798, 1198]);
}

/// An object that has a block, garbage that has another, and `lost` unreferenced blocks.
fn with_lost_blocks(header: &str, lost: u64) -> Heap {
    use crate::subset::sample_subsets::{Made, heap_of, made};
    let block = |address: u64, size: u64, references: &[u64]| Made {
        kind: Type::BLOCK,
        size,
        ..made(address, "", references)
    };
    let mut objects = vec![
        made(0x100, "Plan", &[0x200]),
        block(0x200, 5000, &[]),
        made(0x300, "Plan", &[0x400]),
        block(0x400, 6000, &[]),
    ];
    for number in 0..lost {
        let address = 0x1000 + number * 0x100;
        // Each but the last references the next.
        objects.push(block(address, 1 << 18, &[address + 0x100]));
    }
    heap_of(header, &[0x100], &objects)
}

#[test]
fn blocks_are_lost_that_neither_roots_nor_garbage_lead_to() {
    let header = r#"{"type":"header","blocks":true}"#;
    let answer = verdict(&[with_lost_blocks(header, 1), with_lost_blocks(header, 3)]);
    let lost = answer.blocks.expect("blocks");
    assert_eq!((lost.count, lost.bytes), (3, 3 << 18));
    assert_eq!(lost.series, [1 << 18, 3 << 18]);
    let alike = Alike { size: 1 << 18, count: 3 };
    assert_eq!(lost.largest, Some(alike));
    let answer = verdict(&[with_lost_blocks("{}", 1), with_lost_blocks(header, 3)]);
    assert_eq!(answer.blocks, None);
}

#[test]
fn a_core_beside_dumps_is_said() {
    let image = r#"{"type":"header","source":"image"}"#;
    let remarks =
        |headers: [&str; 2]| verdict(&headers.map(|header| with_lost_blocks(header, 1))).remarks;
    assert!(remarks(["{}", image]).contains(&Remark::ImagesDiffer));
    assert!(!remarks([image, image]).contains(&Remark::ImagesDiffer));
}
