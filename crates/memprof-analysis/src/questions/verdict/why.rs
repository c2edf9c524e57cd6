//! The reason why growing objects are retained, if the heap shows it.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::VecDeque;

use memprof_paths::{is_application, library_path};
use rustc_hash::FxHashMap;
use serde::Serialize;

use super::growth::{Growing, Search};
use super::merged::{HIDDEN, KEY, Link, Nature, Node, Tree};
use super::reading::FINALIZER;
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

/// The mechanism that retains objects. Ruby has the clauses (`lib/memprof/heap/sentences.rb`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "mechanism", rename_all = "snake_case")]
pub enum Why {
    /// Threads or fibers that do not end.
    Running {
        /// `threads` or `fibers`; null for one heap, which does not show whether they end.
        unended: Option<&'static str>,
        /// The frame in which most of them are.
        frame: Option<String>,
        /// Number of them there.
        count: u64,
    },
    /// Threads or fibers that have ended.
    Ended,
    /// A block of `at_exit`.
    AtExit,
    /// The block of a finalizer.
    Finalizer,
    /// Symbols that are never freed.
    Symbols,
    /// The receiver of an exception.
    Receiver,
    /// A part of a longer String or Array shares all of it.
    Shared {
        /// Class of both.
        class: String,
    },
    /// Local variables of evaluations.
    Binding,
    /// A singleton class has the methods that its object was given.
    SingletonMethods,
    /// A singleton class has the modules that its object was extended with.
    SingletonModules,
    /// Each object has a singleton class.
    SingletonClasses,
    /// A class has the modules included in it or prepended to it.
    Ancestors,
    /// A block captures variables.
    Block {
        /// Where it is written.
        place: String,
        /// `self` or `local NAME`; null if each captures the one before it.
        captured: Option<String>,
    },
    /// A fiber-local variable of a thread.
    ThreadLocal {
        /// Its key.
        key: String,
    },
    /// A thread variable.
    ThreadVariable {
        /// Its name.
        name: String,
    },
    /// An instance variable of a thread.
    ThreadField {
        /// Its name.
        name: String,
    },
    /// Each is a key of a Hash.
    Key,
    /// A Hash retains the capacity for more entries than it has.
    Capacity {
        /// Entries of the largest.
        entries: u64,
    },
    /// A String is appended to.
    Appended,
    /// Methods, constants or variables are added to a class.
    Added,
}

type Clause = fn(&Case<'_>) -> Option<Why>;

/// Maximum bytes of a Hash entry, with its share of the table.
const ENTRY: u64 = 64;

/// Number of nodes above the growing one in which a block can explain it.
const NEAR: usize = 6;

/// The first that applies is used.
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

/// The mechanism behind a growing node: `below` leads from it to where most of its growth is.
pub(super) fn why(search: &Search<'_>, found: &Growing, below: &[u32], heap: &Heap) -> Option<Why> {
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

fn threads(case: &Case<'_>) -> Option<Why> {
    let unended = match case.node.nature {
        Nature::Thread => "threads",
        Nature::Fiber => "fibers",
        Nature::Ended => return Some(Why::Ended),
        _ => return None,
    };
    let unended = (case.tree.heaps > 1).then_some(unended);
    let (frame, count) = case.frame().map_or((None, 0), |(frame, count)| (Some(frame), count));
    (unended.is_some() || frame.is_some()).then_some(Why::Running { unended, frame, count })
}

fn at_exit(case: &Case<'_>) -> Option<Why> {
    case.root().ends_with("end_proc").then_some(Why::AtExit)
}

fn finalizer(case: &Case<'_>) -> Option<Why> {
    let of_object = |&node: &u32| (case.link(node), case.label(node)) == (Link::Named, FINALIZER);
    let known = case.root().ends_with("finalizers") || case.above.iter().any(of_object);
    known.then_some(Why::Finalizer)
}

fn symbols(case: &Case<'_>) -> Option<Why> {
    case.tree.is_symbol_table(&case.above).then_some(Why::Symbols)
}

fn receiver(case: &Case<'_>) -> Option<Why> {
    let known = case.steps().any(|(class, _, label)| label == HIDDEN && class.ends_with("Error"));
    known.then_some(Why::Receiver)
}

fn shared(case: &Case<'_>) -> Option<Why> {
    let (class, ..) = case.steps().find(|(.., label)| *label == "shared")?;
    Some(Why::Shared { class: class.to_owned() })
}

fn binding(case: &Case<'_>) -> Option<Why> {
    // A root has the binding of the main program, which is never evaluated.
    let below = case.above.iter().skip(2);
    let known = below.copied().any(|node| case.class(node) == "Binding");
    known.then_some(Why::Binding)
}

fn singleton_class(case: &Case<'_>) -> Option<Why> {
    let singleton = |node: &u32| case.class(*node).starts_with("#<singleton of ");
    if let Some(at) = case.above.iter().position(singleton) {
        let method = |&next: &u32| case.label(next).starts_with('#');
        return Some(match case.above.get(at + 1).is_some_and(method) {
            true => Why::SingletonMethods,
            false => Why::SingletonModules,
        });
    }
    // Each class has one.
    let node = *case.above.last()?;
    let is_class = case.node.nature == Nature::Known || case.class(node).starts_with("#<");
    let known = !is_class && case.below.iter().any(singleton);
    known.then_some(Why::SingletonClasses)
}

fn ancestors(case: &Case<'_>) -> Option<Why> {
    (case.label(*case.above.last()?) == "super").then_some(Why::Ancestors)
}

fn block(case: &Case<'_>) -> Option<Why> {
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
    let known = captured.is_some() || case.node.is_list();
    known.then(|| Why::Block { place: place.to_owned(), captured: captured.map(str::to_owned) })
}

fn is_captured(label: &str) -> bool {
    label == "self" || label.starts_with("local ")
}

/// An application block that each of them references, whatever else takes more memory.
fn block_below(case: &Case<'_>) -> Option<Why> {
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
            let captured = Some(case.label(largest).to_owned());
            return Some(Why::Block { place: place.to_owned(), captured });
        }
        open.extend(below(at));
    }
    None
}

fn thread_local(case: &Case<'_>) -> Option<Why> {
    let local = case.above.iter().find(|&&node| case.link(node) == Link::ThreadLocal);
    if let Some(&local) = local {
        return Some(Why::ThreadLocal { key: case.label(local).to_owned() });
    }
    let variable = |&&node: &&u32| case.link(node) == Link::ThreadVariable;
    if let Some(&variable) = case.above.iter().find(variable) {
        return Some(Why::ThreadVariable { name: case.label(variable).to_owned() });
    }
    // Or an instance variable that a library has added to it.
    let held = case.above.windows(2).find(|pair| {
        let holder = case.tree.nodes[pair[0] as usize].nature;
        holder == Nature::Thread && case.link(pair[1]) == Link::Variable
    })?;
    Some(Why::ThreadField { name: case.label(held[1]).to_owned() })
}

fn key(case: &Case<'_>) -> Option<Why> {
    let node = *case.above.last()?;
    let plain = matches!(case.class(node), "String" | "Symbol" | "Integer");
    (case.tree.heaps > 1 && case.label(node) == KEY && !plain).then_some(Why::Key)
}

fn capacity(case: &Case<'_>) -> Option<Why> {
    let (size, object) = case.node.example.filter(|_| case.in_place)?;
    let length = u64::from(*case.heap.lengths().ok()?.get(object as usize)?);
    let class = case.class(*case.above.last()?);
    let spare = length != u64::from(NONE) && length.saturating_mul(ENTRY) * 2 < size;
    (spare && class == "Hash").then_some(Why::Capacity { entries: length })
}

fn added(case: &Case<'_>) -> Option<Why> {
    let class = case.tree.names.name(case.node.class);
    let is_class = case.node.nature == Nature::Known || is_nameless_class(class);
    (case.in_place && is_class).then_some(Why::Added)
}

/// Whether this is the name of an anonymous class or a singleton class: it cannot be an object's class.
pub(super) fn is_nameless_class(class: &str) -> bool {
    matches!(class, "#<Class>" | "#<Module>") || class.starts_with("#<Class:")
}

fn appended(case: &Case<'_>) -> Option<Why> {
    let class = case.class(*case.above.last()?);
    (case.in_place && class == "String").then_some(Why::Appended)
}
