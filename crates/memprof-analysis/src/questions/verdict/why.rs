//! The reason why growing objects are retained, in a clause, if the heap shows it.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::VecDeque;

use memprof_paths::{is_application, library_path};
use rustc_hash::FxHashMap;

use super::growth::{Growing, Search};
use super::merged::{HIDDEN, KEY, Link, Nature, Node, Tree};
use super::reading::FINALIZER;
use crate::questions::units::thousands;
use memprof_dump::record::Value;
use memprof_heap::{Heap, NONE};

/// The facts about a growing node.
struct Case<'t> {
    tree: &'t Tree,
    search: &'t Search<'t>,
    /// Growth in objects since the first heap.
    more: u64,
    node: &'t Node,
    /// Path from a root to it.
    above: Vec<u32>,
    /// Path from it to where most of its growth is.
    below: &'t [u32],
    /// The number of objects is constant.
    in_place: bool,
    heap: &'t Heap,
}

type Clause = fn(&Case<'_>) -> Option<String>;

/// Maximum bytes of a Hash entry, with its share of the table.
const ENTRY: u64 = 64;

/// Number of nodes above the growing one in which a block can explain it.
const NEAR: usize = 6;

/// The first clause that applies is used.
const CLAUSES: [Clause; 16] = [
    threads,
    at_exit,
    finalizer,
    symbols,
    receiver,
    shared,
    binding,
    singleton_class,
    ancestors,
    block,
    thread_local,
    key,
    capacity,
    appended,
    added,
    block_below,
];

/// A clause for a growing node: `below` leads from it to where most of its growth is.
pub(super) fn why(
    search: &Search<'_>,
    found: &Growing,
    below: &[u32],
    heap: &Heap,
) -> Option<String> {
    let tree = search.tree;
    let case = Case {
        tree,
        search,
        more: found.more(),
        node: &tree.nodes[found.node as usize],
        above: tree.path(found.node),
        below,
        in_place: found.in_place,
        heap,
    };
    CLAUSES.iter().find_map(|clause| clause(&case))
}

impl Case<'_> {
    fn class(&self, node: u32) -> &str {
        self.tree.names.name(self.tree.nodes[node as usize].class)
    }

    fn label(&self, node: u32) -> &str {
        self.tree.names.name(self.tree.nodes[node as usize].label.1)
    }

    fn link(&self, node: u32) -> Link {
        self.tree.nodes[node as usize].label.0
    }

    fn root(&self) -> &str {
        self.above.first().map_or("", |&root| self.class(root))
    }

    /// Steps below: the object, and the reference to the next one.
    fn steps(&self) -> impl Iterator<Item = (&str, Link, &str)> {
        let pairs = self.below.windows(2);
        pairs.map(|pair| (self.class(pair[0]), self.link(pair[1]), self.label(pair[1])))
    }

    /// The frame in which most threads are, and their number: in the application, if any are there.
    fn frame(&self) -> Option<(String, u64)> {
        let name = self.heap.names().find("backtrace")?;
        let node = self.above.last().copied();
        let mut places: FxHashMap<String, u64> = FxHashMap::default();
        for (thread, json) in self.heap.facts().named(name) {
            let Value::Json(json) = json else { continue };
            if self.tree.last.get(thread as usize).copied() != node {
                continue;
            }
            let frames: Vec<String> =
                serde_json::from_str(self.heap.name(json)).unwrap_or_default();
            let of_application =
                |frame: &&String| frame.split(':').next().is_some_and(is_application);
            let place = frames.iter().find(of_application).or(frames.first());
            if let Some(place) = place {
                *places.entry(place.clone()).or_default() += 1;
            }
        }
        let most = |(a, x): &(String, u64), (b, y): &(String, u64)| x.cmp(y).then(b.cmp(a));
        let (place, count) = places.into_iter().max_by(most)?;
        let short = library_path(&place).map(Cow::into_owned);
        Some((short.unwrap_or(place), count))
    }
}

fn threads(case: &Case<'_>) -> Option<String> {
    let what = match case.node.nature {
        Nature::Thread => "threads that do not end",
        Nature::Fiber => "fibers that do not end",
        Nature::Ended => return Some("they have ended, and are still referenced".to_owned()),
        _ => return None,
    };
    let frame = case.frame().map(|(frame, count)| match count {
        1 => format!("one is at {frame}"),
        _ => format!("{} are at {frame}", thousands(count)),
    });
    // A single heap does not show whether they end.
    match (case.tree.heaps, frame) {
        (1, frame) => frame,
        (_, Some(frame)) => Some(format!("{what}; {frame}")),
        (_, None) => Some(what.to_owned()),
    }
}

fn at_exit(case: &Case<'_>) -> Option<String> {
    let known = case.root().ends_with("end_proc");
    known.then(|| {
        "at_exit retains its block, and what it captured, until the process ends".to_owned()
    })
}

fn finalizer(case: &Case<'_>) -> Option<String> {
    let of_object = |&node: &u32| (case.link(node), case.label(node)) == (Link::Named, FINALIZER);
    let known = case.root().ends_with("finalizers") || case.above.iter().any(of_object);
    known.then(|| {
        "a finalizer retains its block, and what it captured, as long as its object lives"
            .to_owned()
    })
}

fn symbols(case: &Case<'_>) -> Option<String> {
    let known = case.tree.is_symbol_table(&case.above);
    known.then(|| "symbols that are never freed, as C code or a method name uses them".to_owned())
}

fn receiver(case: &Case<'_>) -> Option<String> {
    let known = case.steps().any(|(class, _, label)| label == HIDDEN && class.ends_with("Error"));
    known.then(|| "an exception retains the object whose method raised it (receiver)".to_owned())
}

fn shared(case: &Case<'_>) -> Option<String> {
    let (class, ..) = case.steps().find(|(.., label)| *label == "shared")?;
    Some(format!("a part of a longer {class} retains all of it (shared)"))
}

fn binding(case: &Case<'_>) -> Option<String> {
    // A root has the binding of the main program, which is never evaluated.
    let below = case.above.iter().skip(2);
    let known = below.copied().any(|node| case.class(node) == "Binding");
    known.then(|| "a Binding retains the local variables of each evaluation".to_owned())
}

fn singleton_class(case: &Case<'_>) -> Option<String> {
    let singleton = |node: &u32| case.class(*node).starts_with("#<singleton of ");
    if let Some(at) = case.above.iter().position(singleton) {
        let method = |&next: &u32| case.label(next).starts_with('#');
        return Some(match case.above.get(at + 1).is_some_and(method) {
            true => "a singleton class retains each method that its object was given".to_owned(),
            false => {
                "a singleton class retains each module that its object was extended with".to_owned()
            }
        });
    }
    // Each class has one.
    let node = *case.above.last()?;
    let is_class = case.node.nature == Nature::Known || case.class(node).starts_with("#<");
    let known = !is_class && case.below.iter().any(singleton);
    known.then(|| "each has a singleton class of its own, with its methods".to_owned())
}

fn ancestors(case: &Case<'_>) -> Option<String> {
    let known = case.label(*case.above.last()?) == "super";
    known.then(|| {
        "a class retains each module that was prepended to it or included in it".to_owned()
    })
}

fn block(case: &Case<'_>) -> Option<String> {
    // A block far above does not explain the growth, and a library's block only explains how the library works.
    let near = &case.above[case.above.len().saturating_sub(NEAR)..];
    let path: Vec<u32> = near.iter().chain(&case.below[1..]).copied().collect();
    let is_cause = |at: usize| {
        let place = case.class(path[at]).strip_prefix("Proc ")?;
        let class = case.tree.nodes[path[at] as usize].class;
        let is_library = case.tree.library_blocks.contains(&class);
        (at + 1 >= near.len() || !is_library).then_some((at, place))
    };
    let (at, place) = (0..path.len()).find_map(is_cause)?;
    let mut labels = path[at + 1..].iter().map(|&node| case.label(node));
    let captured = labels.find(|label| is_captured(label));
    let captured = captured.or_else(|| case.node.is_list().then_some("the one before it"))?;
    Some(format!("the block written at {place} captures {captured}"))
}

fn is_captured(label: &str) -> bool {
    label == "self" || label.starts_with("local ")
}

/// An application block that each of them references, whatever else takes more memory.
fn block_below(case: &Case<'_>) -> Option<String> {
    let mut open = VecDeque::from([*case.above.last()?]);
    let below = |at: u32| case.search.below[at as usize].iter().copied();
    while let Some(at) = open.pop_front() {
        let class = case.tree.nodes[at as usize].class;
        let place = case
            .class(at)
            .strip_prefix("Proc ")
            .filter(|_| !case.tree.library_blocks.contains(&class))
            .filter(|_| case.search.more(at).count * 2 >= case.more);
        if let Some(place) = place {
            let captured = |&at: &u32| is_captured(case.label(at));
            let inner = below(at).flat_map(|at| std::iter::once(at).chain(below(at)));
            let largest =
                inner.filter(captured).max_by_key(|&at| (case.search.gained(at), Reverse(at)))?;
            let captured = case.label(largest);
            return Some(format!("the block written at {place} captures {captured}"));
        }
        open.extend(below(at));
    }
    None
}

fn thread_local(case: &Case<'_>) -> Option<String> {
    let local = case.above.iter().find(|&&node| case.link(node) == Link::ThreadLocal);
    if let Some(&local) = local {
        let key = case.label(local);
        return Some(format!("the thread lives on, and its local [{key}] is not reset"));
    }
    let variable = |&&node: &&u32| case.link(node) == Link::ThreadVariable;
    if let Some(&variable) = case.above.iter().find(variable) {
        let name = case.label(variable);
        return Some(format!("the thread lives on, and its variable {name} is not reset"));
    }
    // Or an instance variable that a library has added to it.
    let held = case.above.windows(2).find(|pair| {
        let holder = case.tree.nodes[pair[0] as usize].nature;
        holder == Nature::Thread && case.link(pair[1]) == Link::Variable
    })?;
    let name = case.label(held[1]);
    Some(format!("the thread lives on, and its {name} is not reset"))
}

fn key(case: &Case<'_>) -> Option<String> {
    let node = *case.above.last()?;
    let plain = matches!(case.class(node), "String" | "Symbol" | "Integer");
    (case.tree.heaps > 1 && case.label(node) == KEY && !plain)
        .then(|| "each is a key of a Hash that forgets none".to_owned())
}

fn capacity(case: &Case<'_>) -> Option<String> {
    let (size, object) = case.node.example.filter(|_| case.in_place)?;
    let length = u64::from(*case.heap.lengths().ok()?.get(object as usize)?);
    let class = case.class(*case.above.last()?);
    let spare = length != u64::from(NONE) && length.saturating_mul(ENTRY) * 2 < size;
    (spare && class == "Hash").then(|| {
        let entries = thousands(length);
        format!("a Hash retains the capacity for the most entries that it ever had, and the largest has {entries} entries")
    })
}

fn added(case: &Case<'_>) -> Option<String> {
    let class = case.tree.names.name(case.node.class);
    let is_class = case.node.nature == Nature::Known || is_nameless_class(class);
    let why = "methods, constants or variables are added to it";
    (case.in_place && is_class).then(|| why.to_owned())
}

/// Whether this is the name of an anonymous class or a singleton class: it cannot be an object's class.
pub(super) fn is_nameless_class(class: &str) -> bool {
    matches!(class, "#<Class>" | "#<Module>") || class.starts_with("#<Class:")
}

fn appended(case: &Case<'_>) -> Option<String> {
    let class = case.class(*case.above.last()?);
    (case.in_place && class == "String").then(|| "what is appended to it stays".to_owned())
}
