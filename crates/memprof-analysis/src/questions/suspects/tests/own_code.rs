use super::*;
use crate::questions::suspects::own_code::Origin;
use memprof_heap::NONE;

const FANOUT: &str = "/usr/lib/ruby/vendor_ruby/active_support/notifications/fanout.rb";

/// A gem's list of subscribers, each with the block that it was given, which captured a body.
fn subscribers(blocks: &[(&str, i64, u64)]) -> Heap {
    let mut list = thing(address(1), Kind::ARRAY, "Array").at(FANOUT, 50, "initialize", 1);
    let mut things = vec![
        class(address(0), "Notifications", 0).to("@all", address(1)),
        class(address(2), "Subscriber", 0).at(FANOUT, 90, "", 1),
    ];
    let mut next = 10;
    for &(file, line, count) in blocks {
        for _ in 0..count {
            let subscriber = thing(address(next), Kind::OBJECT, "Subscriber");
            list = list.to("", address(next));
            things.extend([
                subscriber
                    .at(FANOUT, 104, "subscribe", 2)
                    .to("@delegate", address(next + 1)),
                thing(address(next + 1), Kind::DATA, "Proc")
                    .named("proc")
                    .written(file, line)
                    .at(FANOUT, 100, "subscribe", 2)
                    .to("local body", address(next + 2)),
                string(address(next + 2), "body")
                    .size(1000)
                    .at("/srv/shop/body.rb", 3, "read", 2),
            ]);
            next += 3;
        }
    }
    things.insert(1, list);
    things.sort_by_key(|thing| thing.address);
    heap(&[("vm", &[address(0), address(2)])], &things)
}

fn own(heap: &Heap, pattern: Option<&str>) -> Option<OwnCode> {
    let question = Question {
        own: pattern.map(str::to_owned),
        ..Question::default()
    };
    let mut suspects = question.answer(heap).expect("an answer").suspects;
    assert_eq!(suspects.len(), 1);
    suspects.remove(0).own
}

#[test]
fn a_block_that_a_gem_retains_is_the_applications_line() {
    let heap = subscribers(&[
        ("/srv/shop/checkout.rb", 11, 30),
        ("/srv/shop/other.rb", 2, 10),
    ]);
    let found = own(&heap, None).expect("own code");
    assert_eq!(
        (found.kind, found.file.as_str(), found.line),
        (Origin::Block, "/srv/shop/checkout.rb", 11)
    );
    assert_eq!(
        (found.count, found.of_class, found.class.as_str()),
        (30, 30, "Proc")
    );
    assert_eq!(found.retained, 30 * 1040);
    let all = 40 + 40 * 1080;
    assert!((found.share - 100.0 * 31_200.0 / f64::from(all)).abs() < 0.06);
}

#[test]
fn an_own_pattern_replaces_what_is_the_applications() {
    let heap = subscribers(&[("/srv/shop/checkout.rb", 11, 30)]);
    let line = |pattern| own(&heap, Some(pattern)).map(|found| (found.kind, found.line));
    assert_eq!(line("body\\.rb$"), Some((Origin::Allocation, 3)));
    assert_eq!(line("/active_support/"), Some((Origin::Allocation, 104)));
    assert_eq!(line("/nowhere/"), None);
    assert!(ask(&heap, "suspects", json!({ "own": "(" })).is_err());
    assert!(ask(&heap, "suspects", json!({ "own": 3 })).is_err());
}

#[test]
fn a_line_behind_less_than_a_hundredth_is_not_named() {
    let heap = |others| {
        subscribers(&[
            ("/x/gems/a-1/a.rb", 5, others),
            ("/srv/shop/checkout.rb", 11, 1),
        ])
    };
    let line = |heap: Heap| own(&heap, Some("checkout")).map(|found| found.line);
    assert_eq!(line(heap(50)), Some(11));
    assert_eq!(line(heap(150)), None);
}

#[test]
fn an_object_of_a_class_of_the_application_leads_to_the_class() {
    let gem = "/x/gems/orm-1.0/lib/orm.rb";
    let mut list = thing(address(2), Kind::ARRAY, "Array").at(gem, 4, "initialize", 1);
    let mut things = vec![
        class(address(0), "ORM", 0)
            .to("@all", address(2))
            .at(gem, 1, "", 1),
        class(address(1), "User", 0).at("/srv/shop/user.rb", 1, "", 1),
    ];
    for number in 10..40 {
        list = list.to("", address(number));
        things.push(thing(address(number), Kind::OBJECT, "User").at(gem, 9, "load", 2));
    }
    things.insert(2, list);
    let heap = heap(&[("vm", &[address(0), address(1)])], &things);
    let found = own(&heap, None).expect("own code");
    assert_eq!(
        (
            found.kind,
            found.file.as_str(),
            found.class.as_str(),
            found.count
        ),
        (Origin::Class, "/srv/shop/user.rb", "User", 30)
    );
}

/// A list, allocated at a line, of strings that were allocated elsewhere.
fn list_of(strings: &str, count: u64) -> Heap {
    let mut list = thing(address(1), Kind::ARRAY, "Array").at("/srv/shop/app.rb", 5, "", 1);
    let mut things = vec![class(address(0), "App", 0).to("@all", address(1))];
    for number in 10..10 + count {
        list = list.to("", address(number));
        things.push(string(address(number), "x").size(100).at(strings, 1, "", 2));
    }
    things.insert(1, list);
    heap(&[("vm", &[address(0)])], &things)
}

#[test]
fn the_suspects_own_line_is_named_if_nothing_below_has_one() {
    let found = own(&list_of("/x/gems/a-1/a.rb", 30), None).expect("own code");
    assert_eq!((found.line, found.count, found.share), (5, 1, 100.0));
    let found = own(&list_of("/srv/shop/text.rb", 30), None).expect("own code");
    assert_eq!((found.line, found.count), (1, 30));
}

#[test]
fn evaluated_code_leads_to_the_line_that_evaluated_it() {
    let found = own(&list_of("(eval at /srv/shop/render.rb:20)", 30), None).expect("own code");
    assert_eq!(
        (found.file.as_str(), found.line),
        ("/srv/shop/render.rb", 20)
    );
    let found = own(&list_of("(eval)", 30), None).expect("own code");
    assert_eq!(found.line, 5);
}

#[test]
fn a_group_has_a_line_too() {
    let roots: Vec<u64> = (0..50).map(|number| address(1 + number)).collect();
    let mut things = vec![class(address(0), "Job", 0)];
    things.extend(roots.iter().map(|&at| {
        thing(at, Kind::OBJECT, "Job")
            .size(200)
            .at("/srv/shop/job.rb", 8, "run", 1)
    }));
    let heap = heap(&[("global_tbl", &roots), ("vm", &[address(0)])], &things);
    let found = own(&heap, None).expect("own code");
    assert_eq!(
        (found.line, found.count, found.method.as_deref()),
        (8, 50, Some("run"))
    );
}

#[test]
fn methods_are_named_by_their_blocks() {
    let mut api = class(address(1), "API", 0);
    let mut things = vec![class(address(0), "App", 0).to("@api", address(1))];
    for number in 0..30 {
        let [entry, block, body] = [10, 11, 12].map(|at| address(at + 3 * number));
        api = api.to("", entry);
        things.extend([
            thing(entry, Kind::IMEMO, "")
                .named("ment")
                .at("/srv/shop/app.rb", 7, "define", 1)
                .to("", block),
            thing(block, Kind::DATA, "Proc")
                .named("proc")
                .written("/srv/shop/app.rb", 6)
                .to("local body", body),
            string(body, "body").size(100),
        ]);
    }
    things.insert(1, api);
    let heap = heap(&[("vm", &[address(0)])], &things);
    let found = own(&heap, None).expect("own code");
    assert_eq!(
        (found.kind, found.line, found.count),
        (Origin::Block, 6, 30)
    );
}

/// What a walk without the tree's order finds: each retained object asked on its own.
#[test]
fn the_line_is_what_a_naive_walk_finds() {
    let heap = subscribers(&[
        ("/srv/shop/checkout.rb", 11, 7),
        ("/srv/shop/other.rb", 2, 9),
        ("/x/gems/a-1/a.rb", 5, 20),
        ("/srv/shop/other.rb", 3, 1),
    ]);
    let (tree, retained) = (
        heap.tree().expect("a tree"),
        heap.retained().expect("sizes"),
    );
    let search = Search::new(&heap, 10.0).expect("a search");
    let found = search.found().remove(0);
    let line = |node: u32| {
        let written = search.describer.words.source(node);
        let site = search
            .describer
            .site(node)
            .map(|site| (site.file, site.line));
        [written, site]
            .into_iter()
            .flatten()
            .find(|(file, _)| file.starts_with("/srv/"))
    };
    let mut sums: std::collections::BTreeMap<(String, u32), u64> =
        std::collections::BTreeMap::new();
    for node in
        (0..heap.len()).filter(|&node| node != found.node && tree.contains(found.node, node))
    {
        let parent = |node: u32| {
            (0..heap.len()).find(|&above| tree.children(above).any(|child| child == node))
        };
        let mut above = std::iter::successors(parent(node), |&node| parent(node))
            .take_while(|&above| above != found.node && above != NONE);
        let is_outermost = above.all(|above| line(above).is_none());
        if let Some(line) = line(node).filter(|_| is_outermost) {
            *sums.entry(line).or_default() += retained.get(node);
        }
    }
    let most = sums.iter().max_by_key(|&(_, sum)| *sum).expect("a line");
    let own = own(&heap, None).expect("own code");
    assert_eq!((&(own.file, own.line), &own.retained), most);
    assert_eq!(sums.values().sum::<u64>(), 17 * 1040 + 20 * 1000);
}
