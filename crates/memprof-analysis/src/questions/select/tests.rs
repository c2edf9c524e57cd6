use memprof_dump::record::{Flags, Kind};
use memprof_heap::Heap;
use memprof_heap::testing::{Fact, Thing, address, class, heap_of, random, string, thing};

use super::Selection;
use crate::objects::Objects;

fn found(heap: &Heap, filter: &str) -> Vec<u32> {
    let selection =
        Selection::new(heap, Some(filter)).unwrap_or_else(|error| panic!("{filter}: {error}"));
    assert_eq!(selection.count(), selection.iter().count());
    selection.iter().collect()
}

fn few() -> Heap {
    let things = [
        class(0x1000, "Session", 0),
        thing(0x2000, Kind::OBJECT, "Session")
            .size(200)
            .shape(7)
            .at("/gems/rack-3.1.0/lib/rack.rb", 5, "call", 3)
            .to("@name", 0x2_3000)
            .to("@other", 0x2_3000),
        string(0x2_3000, "user:42").flags(Flags::FROZEN).slot(80),
        thing(0x3_4000, Kind::IMEMO, "").named("iseq").fact("name", Fact::Text("fetch".to_owned())),
        string(0x4_5000, "garbage").to("", 0x2_3000),
    ];
    // The page at 0x23000 is its second turn.
    let header = r#"{"generation":10,"unshared":{"page_size":4096,"turns":[2,1,32,1]}}"#;
    heap_of(header, &[("vm", &[0x1000, 0x2000]), ("global_tbl", &[0x2000])], &things)
}

#[test]
fn knows_all_fields() {
    let heap = few();
    for (filter, ids) in [
        ("class = Session", &[1][..]),
        ("type = string", &[2, 4]),
        ("type = imemo and imemo = iseq", &[3]),
        ("name = fetch", &[3]),
        ("name = Session", &[0]),
        ("value ~ 'user'", &[2]),
        ("length = 7", &[2, 4]),
        ("size > 100", &[1]),
        ("slot = 80", &[2]),
        ("retained >= 240", &[1]),
        ("file ~ rack", &[1]),
        ("line = 5", &[1]),
        ("site = '/gems/rack-3.1.0/lib/rack.rb:5'", &[1]),
        ("method = call", &[1]),
        ("gem = 'rack-3.1.0'", &[1]),
        ("generation = 3", &[1]),
        ("age = 7", &[1]),
        ("tracked", &[1]),
        ("references = 2", &[1]),
        ("referrers = 3", &[2]),
        ("depth = 1", &[0, 1]),
        ("depth = 2", &[2]),
        ("not reachable", &[3, 4]),
        ("root = global_tbl", &[1]),
        ("root = vm", &[0, 1]),
        ("root is none", &[2, 3, 4]),
        ("address = 0x23000", &[2]),
        ("shape = 7", &[1]),
        ("frozen", &[2]),
        ("unshared", &[1, 2]),
        ("not unshared", &[0, 3, 4]),
        ("change is none", &[0, 1, 2, 3, 4]),
        ("singleton or shared or embedded or old", &[]),
    ] {
        assert_eq!(found(&heap, filter), ids, "{filter}");
    }
    assert!(Selection::new(&heap, Some("clas = A")).is_err());
    assert_eq!(Selection::new(&heap, None).map(|all| all.count()).ok(), Some(5));
}

#[test]
fn tells_leaked_blocks_from_those_of_garbage() {
    let block = |address| thing(address, Kind::BLOCK, "");
    let things = [
        thing(0x1000, Kind::OBJECT, "Plan").to("", 0x2000),
        block(0x2000),
        thing(0x3000, Kind::OBJECT, "Plan").to("", 0x4000),
        block(0x4000),
        block(0x5000).to("", 0x6000),
        block(0x6000),
    ];
    let heap = |header| heap_of(header, &[("vm", &[0x1000])], &things);
    let with_blocks = heap(r#"{"blocks":true}"#);
    assert_eq!(found(&with_blocks, "leaked"), [4, 5]);
    assert_eq!(found(&with_blocks, "not leaked"), [0, 1, 2, 3]);
    let without = heap("{}");
    for filter in ["leaked", "type = OBJECT or state = free"] {
        let refused = Selection::new(&without, Some(filter)).err().expect(filter).to_string();
        assert!(refused.contains("the dump has no blocks"), "{refused}");
    }
}

#[test]
fn finds_free_blocks_only_if_asked_for_states() {
    let block = |address| thing(address, Kind::BLOCK, "").size(100);
    let state = |address, state: &str| block(address).fact("state", Fact::Text(state.to_owned()));
    let things = [
        block(0x1000),
        state(0x2000, "free"),
        state(0x3000, "cached"),
        thing(0x4000, Kind::OBJECT, "Plan").fact("state", Fact::Text("free".to_owned())),
        block(0x5000),
    ];
    let heap = heap_of(r#"{"blocks":true}"#, &[("vm", &[0x1000, 0x4000])], &things);
    for (filter, ids) in [
        ("type = BLOCK", &[0, 4][..]),
        ("not reachable", &[4]),
        ("leaked", &[4]),
        ("size > 90", &[0, 4]),
        ("state = free", &[1]),
        ("type = BLOCK and state = cached", &[2]),
        ("state != used", &[1, 2]),
        ("state = used", &[0, 4]),
        ("state is none", &[3]),
        ("state in (free, cached) or leaked", &[1, 2, 4]),
    ] {
        assert_eq!(found(&heap, filter), ids, "{filter}");
        let of_all = Objects::all(&heap).expect("in memory").filter(filter).expect("valid");
        assert_eq!(of_all.ids(), ids, "{filter}");
    }
    let used = Objects::chosen(&heap, "size > 90").and_then(|used| used.filter("state = free"));
    assert_eq!(used.map(|used| used.ids().len()).ok(), Some(0));
    assert_eq!(heap.size().ok(), Some(240));
    let states: Vec<(u32, &str)> = heap.free_blocks().collect();
    assert_eq!(states, [(1, "free"), (2, "cached")]);
    assert_eq!(Selection::new(&heap, None).map(|all| all.count()).ok(), Some(3));
    let error = Selection::new(&heap, Some("state = fre")).err().map(|error| error.to_string());
    assert!(error.is_some_and(|error| error.contains("free")));
}

#[test]
fn finds_what_a_look_at_all_things_finds() {
    for seed in 0..20 {
        let (things, heap) = random(seed, 80);
        let naive = |meets: &dyn Fn(&Thing) -> bool| -> Vec<u32> {
            let ids = things.iter().zip(0..).filter(|(thing, _)| meets(thing));
            ids.map(|(_, id)| id).collect()
        };
        assert_eq!(found(&heap, "size > 1KiB"), naive(&|thing| thing.size > 1024));
        assert_eq!(
            found(&heap, "file ~ app and not frozen"),
            naive(&|thing| thing.site.as_ref().is_some_and(|site| site.0.contains("app"))
                && thing.flags == 0)
        );
        let mut referrers = vec![0; things.len()];
        things.iter().flat_map(|thing| &thing.edges).for_each(|edge| {
            let target = things.iter().position(|thing| thing.address == edge.1);
            referrers[target.expect("an object")] += 1;
        });
        let many: Vec<u32> =
            (0..things.len() as u32).filter(|&id| referrers[id as usize] > 2).collect();
        assert_eq!(found(&heap, "referrers > 2"), many);
        let reached: Vec<u32> = {
            let dominators = heap.dominators().expect("in memory");
            (0..heap.len()).filter(|&id| dominators.reaches(id)).collect()
        };
        assert_eq!(found(&heap, "reachable"), reached);
        assert_eq!(found(&heap, "depth >= 1"), reached);
        assert_eq!(heap.at(address(0)), Some(0));
    }
}

#[test]
fn groups_that_are_out_of_the_question_change_no_answer() {
    let filters = [
        "type = string",
        "type in (string, array) and length > 1",
        "not (type = string)",
        "not (type = string or imemo = iseq) and size > 10",
        "imemo is none and type != object",
        "imemo is not none",
        "class ~ 'S' and class !~ 'Session'",
        "class is none",
        "type = string and (class = String or frozen)",
        "file ~ app",
        "file ~ nowhere",
        "line = 5 or file is none",
        "not tracked and size > 10",
        "not (gem ~ rack)",
        "gem is none",
        "method = call and site ~ ':5' and type = object",
    ];
    let heaps = (1..20).map(|seed| random(seed, 200).1).chain([few()]);
    for heap in heaps {
        for filter in filters {
            // A part joined by `or` cannot exclude groups.
            let slowly = format!("({filter}) or address = 1");
            assert_eq!(found(&heap, filter), found(&heap, &slowly), "{filter}");
        }
    }
}

#[test]
fn finds_addresses_without_asking_objects() {
    let heap = few();
    let addresses: Vec<u64> = (0..heap.len()).map(|id| heap.addresses().of(id)).collect();
    let near = |address: &u64| (address - 9..address + 10).step_by(3);
    let asked: Vec<u64> = (addresses.iter().flat_map(near))
        .chain(addresses.clone())
        .chain([0, 1, u64::MAX - 3, u64::MAX])
        .collect();
    for &one in &asked {
        let all = |holds: &dyn Fn(u64) -> bool| -> Vec<u32> {
            let ids = 0..heap.len();
            ids.filter(|&id| holds(addresses[id as usize])).collect()
        };
        for (operator, holds) in [
            ("=", &(|other| other == one) as &dyn Fn(u64) -> bool),
            ("!=", &|other| other != one),
            ("<", &|other| other < one),
            ("<=", &|other| other <= one),
            (">", &|other| other > one),
            (">=", &|other| other >= one),
        ] {
            let filter = format!("address {operator} {one}");
            assert_eq!(found(&heap, &filter), all(holds), "{filter}");
            let filter = format!("not address {operator} {one} and size > 0");
            let sized = |other| {
                !holds(other) && found(&heap, "size > 0").contains(&heap.at(other).unwrap())
            };
            assert_eq!(found(&heap, &filter), all(&sized), "{filter}");
        }
        let other = addresses[2];
        for (filter, holds) in [
            (
                format!("address in ({one}, {other}, 8, {one})"),
                &(|address| address == one || address == other) as &dyn Fn(u64) -> bool,
            ),
            (format!("address not in ({one}, {other}, 8, 16, 24)"), &|address| {
                address != one && address != other
            }),
            (format!("address in {}..{}", one.min(other), one.max(other)), &|address| {
                (one.min(other)..=one.max(other)).contains(&address)
            }),
            (format!("address not in {}..{}", one.min(other), one.max(other)), &|address| {
                !(one.min(other)..=one.max(other)).contains(&address)
            }),
        ] {
            assert_eq!(found(&heap, &filter), all(holds), "{filter}");
        }
    }
}
