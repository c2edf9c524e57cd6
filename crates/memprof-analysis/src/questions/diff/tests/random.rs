//! Random heaps, compared with results found object by object.

use rustc_hash::FxHashMap;
use serde_json::{Value, json};

use super::Diff;
use crate::subset::sample_subsets::{Made, Random, closure, heap, random_objects};
use memprof_heap::Heap;

const ROUNDS: u64 = 300;

/// The objects some time later: some are gone, some slots are reused, some are new.
fn aged(random: &mut Random, objects: &[Made], generation: u64) -> Vec<Made> {
    let mut aged = objects.to_vec();
    aged.retain(|_| !random.one_in(4));
    for object in &mut aged {
        if random.one_in(4) {
            object.allocated = Some((generation, 1 + random.below(3) as u32));
        }
        if random.one_in(4) {
            object.size += 100;
        }
    }
    for index in 0..random.below(6) {
        let address = 0x4000 * generation + 0x40 * index;
        let references =
            aged.iter().filter(|_| random.one_in(3)).map(|object| object.address).collect();
        let line = 1 + random.below(3) as u32;
        aged.push(
            Made {
                address,
                references,
                class: "Plan",
                ..aged.first().cloned().unwrap_or_else(|| objects[0].clone())
            }
            .allocated(generation, line),
        );
        let count = aged.len() as u64;
        let holder = random.below(count) as usize;
        aged[holder].references.push(address);
    }
    aged
}

fn roots(random: &mut Random, objects: &[Made]) -> Vec<u64> {
    objects.iter().filter(|_| random.one_in(3)).map(|object| object.address).collect()
}

struct Round {
    before: Vec<Made>,
    after: Vec<Made>,
    later: Vec<Made>,
    heaps: [Heap; 3],
}

fn rounds(mut test: impl FnMut(Round)) {
    for seed in 1..=ROUNDS {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let before = random_objects(&mut random);
        let after = aged(&mut random, &before, 5);
        let later = aged(&mut random, &after, 9);
        let heaps = [&before, &after, &later].map(|objects| {
            let roots = roots(&mut random, objects);
            heap(&roots, objects)
        });
        test(Round { before, after, later, heaps });
    }
}

fn same(left: &Made, right: &Made) -> bool {
    left.address == right.address
        && left.class == right.class
        && left.kind == right.kind
        && left.allocated == right.allocated
}

/// Objects of `of` that are not in `other`.
fn only<'m>(of: &'m [Made], other: &[Made]) -> Vec<&'m Made> {
    of.iter().filter(|object| !other.iter().any(|there| same(object, there))).collect()
}

fn sum<'m>(objects: impl IntoIterator<Item = &'m Made>) -> Value {
    let sizes: Vec<u64> = objects.into_iter().map(|object| object.size).collect();
    json!({ "count": sizes.len(), "size": sizes.iter().sum::<u64>() })
}

impl Round {
    fn diff(&self) -> Diff<&Heap> {
        let [before, after, later] = &self.heaps;
        Diff::new(before, after, Some(later)).expect("in memory")
    }

    fn survived(&self) -> Vec<&Made> {
        let new = only(&self.after, &self.before);
        new.into_iter()
            .filter(|object| self.later.iter().any(|there| same(object, there)))
            .collect()
    }
}

#[test]
fn totals_are_sums_over_objects() {
    rounds(|round| {
        let totals = round.diff().answer_to("totals", json!({}));
        assert_eq!(totals["before"], sum(&round.before));
        assert_eq!(totals["after"], sum(&round.after));
        assert_eq!(totals["new"], sum(only(&round.after, &round.before)));
        assert_eq!(totals["gone"], sum(only(&round.before, &round.after)));
        assert_eq!(totals["survived"], sum(round.survived()));
        let number = |key: &str, part: &str| totals[key][part].as_i64().expect("a number");
        for part in ["count", "size"] {
            assert_eq!(number("change", part), number("after", part) - number("before", part));
            assert_eq!(number("new", part), number("survived", part) + number("temporary", part));
            assert_eq!(number("after", part), number("new", part) + number("kept", part));
        }
        let grown = totals["grown"].as_i64().expect("a number");
        assert_eq!(
            number("change", "size"),
            number("new", "size") - number("gone", "size") + grown
        );
    });
}

#[test]
fn rows_are_sums_over_their_objects() {
    let class = |object: &Made| json!({ "class": object.class });
    let kind = |object: &Made| json!({ "type": object.kind.name() });
    let site = |object: &Made| match object.allocated {
        Some((_, line)) => json!({ "file": "app/cache.rb", "line": line }),
        None => json!({ "file": null, "line": null }),
    };
    let file = |object: &Made| json!({ "file": object.allocated.map(|_| "app/cache.rb") });
    type Key = fn(&Made) -> Value;
    let keys: [(&str, Key); 4] = [("class", class), ("type", kind), ("site", site), ("file", file)];
    rounds(|round| {
        let diff = round.diff();
        for (by, key) in keys {
            let answer = diff.answer_to("rows", json!({ "by": by }));
            let rows = answer["rows"].as_array().expect("rows");
            let mut keys: Vec<Value> = round.before.iter().chain(&round.after).map(key).collect();
            keys.sort_by_key(Value::to_string);
            keys.dedup();
            assert_eq!(rows.len(), keys.len());
            for row in rows {
                let is_here = |object: &&Made| {
                    key(object)
                        .as_object()
                        .expect("a key")
                        .iter()
                        .all(|(key, value)| row[key] == *value)
                };
                assert_eq!(row["before"], sum(round.before.iter().filter(is_here)));
                assert_eq!(row["after"], sum(round.after.iter().filter(is_here)));
                assert_eq!(
                    row["new"],
                    sum(only(&round.after, &round.before).into_iter().filter(is_here))
                );
                assert_eq!(
                    row["gone"],
                    sum(only(&round.before, &round.after).into_iter().filter(is_here))
                );
                assert_eq!(row["survived"], sum(round.survived().into_iter().filter(is_here)));
            }
            let growth = |row: &Value| row["reachable"]["size"].as_i64();
            assert!(rows.windows(2).all(|pair| growth(&pair[0]) >= growth(&pair[1])));
            assert_eq!(
                rows.iter().filter_map(growth).sum::<i64>(),
                reachable(diff.after()) - reachable(diff.before())
            );
        }
    });
}

/// Reachable bytes, found reference by reference.
fn reachable(heap: &Heap) -> i64 {
    if heap.categories().is_empty() {
        return heap.memsizes().expect("sizes").sum() as i64;
    }
    let edges = edges(heap);
    let mut open = vec![heap.root()];
    let mut reached: Vec<u32> = open.clone();
    while let Some(node) = open.pop() {
        for &target in edges.get(&node).into_iter().flatten() {
            if !reached.contains(&target) {
                reached.push(target);
                open.push(target);
            }
        }
    }
    let sizes = heap.memsizes().expect("sizes");
    let objects = reached.iter().filter(|&&node| node < heap.len());
    objects.map(|&node| sizes.get(node) as i64).sum()
}

/// References by node, those of the heap after.
fn edges(heap: &Heap) -> FxHashMap<u32, Vec<u32>> {
    let classes = heap.group_classes();
    let graph = heap.graph(&classes).expect("in memory");
    graph.nodes().map(|node| (node, graph.edges(node).collect())).collect()
}

#[test]
fn owners_are_the_nearest_old_dominators() {
    rounds(|round| {
        let diff = round.diff();
        let heap: &Heap = diff.after();
        let edges = edges(heap);
        let reached = closure(&edges, &[heap.root()]);
        let new: Vec<u32> = diff.changes().new.iter().filter(|id| reached.contains(id)).collect();
        // Dominated nodes of each node, found by removing it.
        let dominated: FxHashMap<u32, Vec<u32>> = reached
            .iter()
            .map(|&node| {
                let mut without = edges.clone();
                without.remove(&node);
                let left = closure(&without, &[heap.root()]);
                (node, reached.iter().copied().filter(|other| !left.contains(other)).collect())
            })
            .collect();
        let is_new = |node: &u32| diff.changes().new.contains(*node);
        let owner = |id: u32| {
            let old = dominated.iter().filter(|(node, row)| row.contains(&id) && !is_new(node));
            old.min_by_key(|(_, row)| row.len()).map(|(&node, _)| node).expect("the root")
        };
        let answer = diff.answer_to("owners", json!({ "limit": 1000 }));
        let sizes = heap.memsizes().expect("in memory");
        let mut owned = 0;
        for row in answer["owners"].as_array().expect("owners") {
            let id = row["id"].as_u64().expect("a number") as u32;
            let held: Vec<u32> = new.iter().copied().filter(|&node| owner(node) == id).collect();
            let size: u64 = held.iter().map(|&node| sizes.get(node)).sum();
            assert_eq!(row["new"], json!({ "count": held.len(), "size": size }));
            let mut kept: Vec<u32> = held.iter().flat_map(|node| dominated[node].clone()).collect();
            kept.sort_unstable();
            kept.dedup();
            let retained: u64 = kept.iter().map(|&node| sizes.get(node)).sum();
            assert_eq!(row["retained_by_new"], json!(retained));
            owned += held.len();
        }
        assert_eq!(owned, new.len());
        let unreachable = answer["unreachable"]["count"].as_u64().expect("a number") as usize;
        assert_eq!(unreachable + new.len(), diff.changes().new.count());
    });
}

#[test]
fn the_interface_is_where_old_refers_to_new() {
    rounds(|round| {
        let diff = round.diff();
        let heap: &Heap = diff.after();
        let mut edges = edges(heap);
        edges.remove(&heap.root());
        let is_new = |node: u32| diff.changes().new.contains(node);
        let answer = diff.answer_to("interface", json!({ "limit": 1000 }));
        let crossing: Vec<(u32, u32)> = edges
            .iter()
            .filter(|(from, _)| !is_new(**from))
            .flat_map(|(&from, row)| row.iter().map(move |&to| (from, to)))
            .filter(|&(_, to)| is_new(to))
            .collect();
        let only_new: FxHashMap<u32, Vec<u32>> = edges
            .iter()
            .filter(|(node, _)| is_new(**node))
            .map(|(&node, row)| (node, row.clone()))
            .collect();
        let objects = answer["objects"].as_array().expect("objects");
        for object in objects {
            let id = object["id"].as_u64().expect("a number") as u32;
            let references = crossing.iter().filter(|(_, to)| *to == id).count();
            assert_eq!(object["references"], json!(references));
            assert_eq!(object["keepalive_count"], json!(closure(&only_new, &[id]).len()));
        }
        let mut inside: Vec<u32> = crossing.iter().map(|&(_, to)| to).collect();
        inside.sort_unstable();
        inside.dedup();
        assert_eq!(
            (objects.len(), answer["count"].as_u64()),
            (inside.len(), Some(inside.len() as u64))
        );
        let mut border: Vec<u32> = crossing.iter().map(|&(from, _)| from).collect();
        border.sort_unstable();
        border.dedup();
        assert_eq!(answer["border"].as_u64(), Some(border.len() as u64));
        let rows = answer["crossings"].as_array().expect("rows");
        let sum: u64 = rows.iter().filter_map(|row| row["references"].as_u64()).sum();
        assert_eq!(sum as usize, crossing.len());
    });
}

#[test]
fn objects_are_those_of_a_change() {
    rounds(|round| {
        let diff = round.diff();
        let new = only(&round.after, &round.before);
        let survived = round.survived();
        let temporary =
            new.iter().copied().filter(|object| !survived.iter().any(|there| same(object, there)));
        let expected = [
            ("new", new.iter().map(|object| object.address).collect::<Vec<u64>>()),
            (
                "gone",
                only(&round.before, &round.after).iter().map(|object| object.address).collect(),
            ),
            ("survived", survived.iter().map(|object| object.address).collect()),
            ("temporary", temporary.map(|object| object.address).collect()),
        ];
        for (change, mut addresses) in expected {
            addresses.sort_unstable();
            let question = json!({ "change": change, "sort": "address", "limit": 1000 });
            let answer = diff.answer_to("objects", question);
            let found: Vec<String> = answer["objects"]
                .as_array()
                .expect("objects")
                .iter()
                .map(|object| object["address"].as_str().expect("an address").to_owned())
                .collect();
            let addresses: Vec<String> =
                addresses.iter().map(|address| format!("{address:#x}")).collect();
            assert_eq!(found, addresses);
            if change != "gone" {
                // The same through a query.
                let filter = if change == "temporary" {
                    "change = new and change != survived".to_owned()
                } else {
                    format!("change = {change}")
                };
                let totals = diff.answer_to("totals", json!({ "where": filter }));
                assert_eq!(totals["after"]["count"], json!(addresses.len()));
                let answer =
                    diff.answer_to("totals", json!({ "where": format!("not ({filter})") }));
                assert_eq!(answer["after"]["count"], json!(round.after.len() - addresses.len()));
            }
        }
    });
}
