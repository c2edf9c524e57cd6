//! Why objects that grow are retained, in a clause, where the heap shows it.

use std::borrow::Cow;

use memprof_paths::library_path;
use serde_json::Value as Json;

use super::growth::Growing;
use super::merged::{HIDDEN, KEY, Link, Nature, Node, Tree};
use crate::questions::units::thousands;
use memprof_dump::record::Value;
use memprof_heap::{Heap, NONE};

/// What is known of something that grows.
struct Case<'t> {
    tree: &'t Tree,
    node: &'t Node,
    /// From a root to it.
    above: Vec<u32>,
    /// From it to where most of what it gained is.
    below: &'t [u32],
    /// Its number stays the same.
    in_place: bool,
    heap: &'t Heap,
}

type Clause = fn(&Case<'_>) -> Option<String>;

/// Bytes of an entry of a Hash, with its part of the table, at most.
const ENTRY: u64 = 64;

/// The first that applies.
const CLAUSES: [Clause; 13] = [
    threads,
    at_exit,
    finalizer,
    symbols,
    receiver,
    shared,
    binding,
    singleton_class,
    block,
    thread_local,
    key,
    capacity,
    appended,
];

/// A clause for what grows: `below` leads from it to where most of what it gained is.
pub(super) fn why(tree: &Tree, found: &Growing, below: &[u32], heap: &Heap) -> Option<String> {
    let case = Case {
        tree,
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

    /// Steps below: the object, and what leads on from it.
    fn steps(&self) -> impl Iterator<Item = (&str, Link, &str)> {
        let pairs = self.below.windows(2);
        pairs.map(|pair| (self.class(pair[0]), self.link(pair[1]), self.label(pair[1])))
    }

    /// The innermost frame of the largest of the threads.
    fn frame(&self) -> Option<String> {
        let (_, thread) = self.node.example?;
        let name = self.heap.names().find("backtrace")?;
        let Value::Json(json) = self.heap.facts().get(thread, name)? else {
            return None;
        };
        let frames: Json = serde_json::from_str(self.heap.name(json)).ok()?;
        let frame = frames.get(0)?.as_str()?;
        Some(library_path(frame).map_or_else(|| frame.to_owned(), Cow::into_owned))
    }
}

fn threads(case: &Case<'_>) -> Option<String> {
    let what = match case.node.nature {
        Nature::Thread => "threads that do not end",
        Nature::Fiber => "fibers that do not end",
        _ => return None,
    };
    Some(match case.frame() {
        Some(frame) => format!("{what}; one is at {frame}"),
        None => what.to_owned(),
    })
}

fn at_exit(case: &Case<'_>) -> Option<String> {
    let known = case.root().ends_with("end_proc");
    known
        .then(|| "at_exit keeps its block, and what it captured, until the process ends".to_owned())
}

fn finalizer(case: &Case<'_>) -> Option<String> {
    let known = case.root().ends_with("finalizers");
    known.then(|| {
        "a finalizer keeps its block, and what it captured, as long as its object lives".to_owned()
    })
}

fn symbols(case: &Case<'_>) -> Option<String> {
    let known = case.tree.is_symbol_table(&case.above);
    known.then(|| "symbols that are never freed, as C code or a method name uses them".to_owned())
}

fn receiver(case: &Case<'_>) -> Option<String> {
    let known = case
        .steps()
        .any(|(class, _, label)| label == HIDDEN && class.ends_with("Error"));
    known.then(|| "an exception keeps the object whose method raised it (receiver)".to_owned())
}

fn shared(case: &Case<'_>) -> Option<String> {
    let (class, ..) = case.steps().find(|(.., label)| *label == "shared")?;
    Some(format!(
        "a part of a longer {class} keeps all of it (shared)"
    ))
}

fn binding(case: &Case<'_>) -> Option<String> {
    let known = case.above.iter().any(|&node| case.class(node) == "Binding");
    known.then(|| "a Binding keeps the local variables of each evaluation".to_owned())
}

fn singleton_class(case: &Case<'_>) -> Option<String> {
    let singleton = |node: &u32| case.class(*node).starts_with("#<singleton of ");
    if case.above.iter().any(singleton) {
        return Some(
            "a singleton class keeps each module that its object was extended with".to_owned(),
        );
    }
    let known = case.below.iter().any(singleton);
    known.then(|| "each has a singleton class of its own, with its methods".to_owned())
}

fn block(case: &Case<'_>) -> Option<String> {
    let path: Vec<u32> = case
        .above
        .iter()
        .chain(case.below.iter().skip(1))
        .copied()
        .collect();
    let at = path
        .iter()
        .position(|&node| case.class(node).starts_with("Proc "))?;
    let captured = path
        .get(at + 1..)
        .unwrap_or_default()
        .iter()
        .find_map(|&node| {
            let label = case.label(node);
            (label == "self" || label.starts_with("local ")).then_some(label)
        })?;
    let place = case.class(path[at]).strip_prefix("Proc ")?;
    Some(format!("the block written at {place} captures {captured}"))
}

fn thread_local(case: &Case<'_>) -> Option<String> {
    let local = case
        .above
        .iter()
        .find(|&&node| case.link(node) == Link::ThreadLocal);
    if let Some(&local) = local {
        let key = case.label(local);
        return Some(format!(
            "the thread lives on, and its local [{key}] is not reset"
        ));
    }
    // Or a variable that a library has added to it.
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
    (case.label(node) == KEY && !plain)
        .then(|| "each is a key of a Hash that forgets none".to_owned())
}

fn capacity(case: &Case<'_>) -> Option<String> {
    let (size, object) = case.node.example.filter(|_| case.in_place)?;
    let length = u64::from(*case.heap.lengths().ok()?.get(object as usize)?);
    let class = case.class(*case.above.last()?);
    let spare = length != u64::from(NONE) && length.saturating_mul(ENTRY) * 2 < size;
    (spare && class == "Hash").then(|| {
        let entries = thousands(length);
        format!("a Hash keeps the capacity for the most that it ever had, and the largest has {entries} entries")
    })
}

fn appended(case: &Case<'_>) -> Option<String> {
    let class = case.class(*case.above.last()?);
    (case.in_place && class == "String").then(|| "what is appended to it stays".to_owned())
}
