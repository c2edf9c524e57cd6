//! What is memprof's own: its data, classes, code and threads. A program that is looked at has them because it is looked
//! at, so they are in no total: they keep their references, and have no size.

use std::io;

use serde::{Deserialize, Serialize};

use super::{FOLDED, Heap, Sizes};
use crate::dump::record::{Flags, Kind, Value};
use crate::graph::{BitSet, Graph, Stop, reachable_without};

/// memprof's namespace.
const NAMESPACE: &str = "Memprof";

/// How many objects are memprof's own, and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Own {
    /// Objects.
    pub count: u64,
    /// Sum of their memsizes.
    pub size: u64,
}

/// Leaves memprof's own objects out of all totals, unless it is stopped.
pub(super) fn leave_out(heap: &mut Heap, stop: Stop<'_>) -> io::Result<()> {
    stop.check()?;
    let own = Search::new(heap)?.own()?;
    if own.iter().next().is_none() {
        return Ok(());
    }
    stop.check()?;
    let mut flags = heap.columns.flags.get()?.to_vec();
    let sizes = heap.columns.memsize.get()?;
    let mut left_out = Own::default();
    for id in own.iter().filter(|&id| flags[id as usize] & FOLDED.0 == 0) {
        left_out.count += 1;
        left_out.size = left_out.size.saturating_add(sizes.get(id));
    }
    let kept = |id| if own.contains(id) { 0 } else { sizes.get(id) };
    let sizes: Sizes = (0..heap.objects).map(kept).collect();
    own.iter().for_each(|id| flags[id as usize] |= FOLDED.0);
    heap.columns.flags = flags.into();
    heap.columns.memsize = sizes.into();
    heap.source.own = left_out;
    Ok(())
}

struct Search<'h> {
    heap: &'h Heap,
    groups: &'h [u32],
    flags: &'h [u32],
    graph: Graph<'h>,
}

impl<'h> Search<'h> {
    fn new(heap: &'h Heap) -> io::Result<Search<'h>> {
        Ok(Search {
            heap,
            groups: heap.group_numbers()?,
            flags: heap.flag_words()?,
            graph: heap.graph(&[])?,
        })
    }

    fn own(&self) -> io::Result<BitSet> {
        let mut own = self.named();
        if own.iter().next().is_none() {
            return Ok(own);
        }
        self.add_singleton_classes(&mut own);
        if !self.heap.categories().is_empty() {
            self.add_parts(&mut own);
        }
        for id in self.threads() {
            own.insert(id);
        }
        Ok(own)
    }

    /// Objects by their class or the type of their data, and classes and modules by their name.
    fn named(&self) -> BitSet {
        let is_own: Vec<bool> = self
            .heap
            .groups()
            .iter()
            .map(|group| {
                let class = self.heap.classes().get(group.shown as usize);
                let data = group.name.filter(|_| group.kind == Kind::DATA);
                let names = [class.map(|class| class.name), data];
                let mut names = names.into_iter().flatten().map(|name| self.heap.name(name));
                names.any(is_in_namespace)
            })
            .collect();
        let is_own = |group: u32| is_own.get(group as usize) == Some(&true);
        let objects = self.groups.iter().zip(0..);
        let objects = objects.filter(|&(&group, _)| is_own(group));
        let classes = self.heap.class_objects().iter().filter(|class| {
            let name = class.name.map(|name| self.heap.name(name));
            name.is_some_and(is_in_namespace)
        });
        let objects = objects.map(|(_, id)| id);
        BitSet::of(
            self.graph.len(),
            objects.chain(classes.map(|class| class.object)),
        )
    }

    fn group(&self, id: u32) -> Option<&'h super::Group> {
        let group = *self.groups.get(id as usize)?;
        self.heap.groups().get(group as usize)
    }

    fn kind(&self, id: u32) -> Option<Kind> {
        self.group(id).map(|group| group.kind)
    }

    /// Type of data, kind of imemo.
    fn name(&self, id: u32) -> &'h str {
        let name = self.group(id).and_then(|group| group.name);
        name.map_or("", |name| self.heap.name(name))
    }

    /// The singleton classes of classes and modules that are memprof's.
    fn add_singleton_classes(&self, own: &mut BitSet) {
        let classes: Vec<u32> = own.iter().filter_map(|id| self.singleton_of(id)).collect();
        for class in classes {
            own.insert(class);
        }
    }

    fn singleton_of(&self, id: u32) -> Option<u32> {
        let group = self.group(id)?;
        if !matches!(group.kind, Kind::CLASS | Kind::MODULE) {
            return None;
        }
        let flags = self.flags.get(group.class as usize)?;
        (flags & Flags::SINGLETON.0 != 0).then_some(group.class)
    }

    /// memprof's threads, by their names, and their stacks. What is on a stack may be anybody's.
    fn threads(&self) -> Vec<u32> {
        let Some(name) = self.heap.names().find("name") else {
            return Vec::new();
        };
        let named = self.heap.facts().named(name);
        let threads = named.filter(|&(id, name)| self.is_thread(id) && self.is_own_name(name));
        let mut own = Vec::new();
        for (thread, _) in threads {
            own.push(thread);
            let held = self.graph.row(thread).iter().copied();
            own.extend(held.filter(|&id| self.is_data(id, &["fiber"])));
        }
        own
    }

    fn is_thread(&self, id: u32) -> bool {
        self.is_data(id, &["VM/thread", "thread"])
    }

    fn is_data(&self, id: u32, names: &[&str]) -> bool {
        self.kind(id) == Some(Kind::DATA) && names.contains(&self.name(id))
    }

    /// The names of threads are facts in JSON.
    fn is_own_name(&self, name: Value) -> bool {
        let name = match name {
            Value::Name(text) | Value::Json(text) => self.heap.name(text).trim_matches('"'),
            _ => return false,
        };
        let rest = name.strip_prefix("memprof");
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', ':']))
    }

    /// Code, texts and collections that only memprof's objects hold. What a program handed to memprof (the application
    /// behind the middleware, a block with what it captured) is the program's.
    fn add_parts(&self, own: &mut BitSet) {
        let classes = self.heap.group_classes();
        let graph = Graph {
            extra: crate::graph::Extra {
                class: &classes,
                ..self.graph.extra
            },
            ..self.graph
        };
        let others = reachable_without(&graph, &[self.heap.root()], own);
        let mut open: Vec<u32> = own.iter().collect();
        while let Some(node) = open.pop() {
            for &held in self.graph.row(node) {
                if self.is_part(held) && !others.contains(held) && own.insert(held) {
                    open.push(held);
                }
            }
        }
    }

    fn is_part(&self, id: u32) -> bool {
        match self.kind(id) {
            Some(Kind::IMEMO) => self.name(id) != "env",
            Some(kind) => matches!(
                kind,
                Kind::STRING
                    | Kind::SYMBOL
                    | Kind::REGEXP
                    | Kind::ARRAY
                    | Kind::HASH
                    | Kind::BIGNUM
                    | Kind::FLOAT
                    | Kind::ICLASS
            ),
            None => false,
        }
    }
}

fn is_in_namespace(name: &str) -> bool {
    let rest = name.strip_prefix(NAMESPACE);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Fact, Thing, address, class, heap, string, thing};
    use super::*;
    use crate::analysis::ask;
    use serde_json::json;

    fn module(at: u64, name: &str) -> Thing {
        thing(address(at), Kind::MODULE, "Module").named(name)
    }

    /// A program whose application stands behind memprof's middleware, with a native object and a thread of memprof's.
    fn tracked() -> Heap {
        let things = [
            class(address(0), "Object", 0)
                .to("Memprof", address(1))
                .to("App", address(4)),
            module(1, "Memprof")
                .to("Middleware", address(2))
                .to("", address(9)),
            class(address(2), "Memprof::Middleware", 0),
            thing(address(3), Kind::OBJECT, "Memprof::Middleware")
                .to("@app", address(5))
                .to("@options", address(8)),
            class(address(4), "App", 0),
            thing(address(5), Kind::OBJECT, "App")
                .to("@cache", address(6))
                .to("@title", address(10)),
            thing(address(6), Kind::ARRAY, "Array").size(5000),
            thing(address(7), Kind::DATA, "Memprof::Native::Guard")
                .named("Memprof::Native::Guard")
                .size(90_000),
            thing(address(8), Kind::HASH, "Hash").to("", address(10)),
            thing(address(9), Kind::IMEMO, "").named("iseq").size(700),
            string(address(10), "shared"),
            thing(address(11), Kind::DATA, "Thread")
                .named("VM/thread")
                .fact("name", Fact::Text("memprof".to_owned()))
                .size(1 << 20)
                .to("", address(12))
                .to("", address(19)),
            thing(address(12), Kind::DATA, "Fiber")
                .named("fiber")
                .size(1 << 18),
            thing(address(13), Kind::DATA, "Thread")
                .named("VM/thread")
                .size(1000)
                .fact("name", Fact::Text("memprofiler".to_owned()))
                .to("", address(14)),
            thing(address(14), Kind::DATA, "Proc")
                .named("proc")
                .to("self", address(3)),
            thing(address(15), Kind::DATA, "Thread")
                .named("VM/thread")
                .size(2000)
                .to("", address(16)),
            thing(address(16), Kind::DATA, "Proc")
                .named("proc")
                .to("self", address(5)),
            class(address(17), "MemprofLookalike", 0),
            thing(address(18), Kind::OBJECT, "MemprofLookalike"),
            string(address(19), "on the stack"),
        ];
        let roots = [
            address(0),
            address(3),
            address(7),
            address(11),
            address(13),
            address(15),
            address(18),
        ];
        heap(&[("vm", &roots)], &things)
    }

    fn is_left_out(heap: &Heap, number: u64) -> bool {
        let id = heap.at(address(number)).expect("an object");
        heap.flag_words().expect("flags")[id as usize] & FOLDED.0 != 0
    }

    #[test]
    fn own_objects_are_known_by_class_data_name_and_what_only_they_hold() {
        let heap = tracked();
        let left_out: Vec<u64> = (0..20).filter(|&id| is_left_out(&heap, id)).collect();
        assert_eq!(left_out, [1, 2, 3, 7, 8, 9, 11, 12]);
    }

    #[test]
    fn they_are_in_no_total_and_their_sum_is_known() {
        let heap = tracked();
        let own = [40, 40, 40, 90_000, 40, 700, 1 << 20, 1 << 18];
        assert_eq!(
            heap.source.own,
            Own {
                count: 8,
                size: own.iter().sum()
            }
        );
        let whole = 9 * 40 + 5000 + 1000 + 2000;
        assert_eq!(heap.memsizes().expect("sizes").sum(), whole);
        let overview = ask(&heap, "overview", json!({})).expect("an answer");
        assert_eq!(overview["objects"]["size"], whole);
        assert_eq!(overview["objects"]["count"], 12);
        let rows = ask(&heap, "histogram", json!({ "sort": "size" })).expect("an answer");
        let names = rows["rows"].as_array().expect("rows").iter();
        assert!(
            !names
                .map(|row| row["key"].to_string())
                .any(|name| name.contains("Memprof::"))
        );
        let tree = ask(&heap, "tree", json!({ "least": 1, "depth": 1 })).expect("an answer");
        assert!(!tree.to_string().contains("Guard"));
    }

    #[test]
    fn what_the_program_handed_over_is_still_held() {
        let heap = tracked();
        let cache = heap.at(address(6)).expect("an object");
        let path = crate::analysis::path::to(&heap, cache).expect("a path");
        assert!(path.contains(&heap.at(address(3)).expect("an object")));
        let retained = heap.retained().expect("sizes");
        let app = heap.at(address(5)).expect("an object");
        assert!(retained.get(app) >= 5000);
    }

    #[test]
    fn a_heap_without_memprof_has_nothing_left_out() {
        let (_, heap) = super::super::testing::random(3, 200);
        assert_eq!(heap.source.own, Own::default());
        assert!(
            heap.flag_words()
                .expect("flags")
                .iter()
                .all(|flags| flags & FOLDED.0 == 0)
        );
    }
}
