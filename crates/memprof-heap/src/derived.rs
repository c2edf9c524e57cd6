//! Values computed once per heap: dominators, retained sizes, distances from the roots.

use std::io;
use std::sync::OnceLock;

use rustc_hash::FxHashMap;

use super::columns::{Column, Part, SizeColumn};
use super::once::Once;
use super::sizes::Sizes;
use super::{Heap, Label, Packed, own};
use crate::graph::{self, BitSet, Dominators, Graph, Paths, Stop, Ways};
use memprof_dump::record::Kind;

/// The root that retains finalizers.
const FINALIZERS: &str = "finalizers";

/// The computed values. Nodes are objects, then root categories, then the super root.
#[derive(Default)]
pub(super) struct Derived {
    /// Immediate dominators.
    pub dominators: Tree,
    /// Memsize of all nodes that a node dominates, including itself.
    pub retained: SizeColumn,
    /// The preceding node on a shortest path from the super root.
    pub steps: Column<u32>,
    /// The label of the reference from each node's dominator to the node.
    pub labels: Once<Vec<u32>>,
    /// See [`Heap::finalizers`].
    pub finalizers: OnceLock<FxHashMap<u32, Vec<u32>>>,
}

/// The dominator tree, in memory or in an index.
#[derive(Default)]
pub(super) struct Tree {
    tree: Once<Dominators>,
    parts: Option<(Part, Part)>,
    /// The same tree, with each subtree contiguous.
    ordered: Once<graph::Tree>,
}

impl From<Dominators> for Tree {
    fn from(tree: Dominators) -> Tree {
        Tree { tree: Once::from(tree), ..Tree::default() }
    }
}

impl Tree {
    pub fn stored(parent: Part, order: Part) -> Tree {
        Tree { parts: Some((parent, order)), ..Tree::default() }
    }

    pub fn get(&self) -> io::Result<&Dominators> {
        self.tree.get_or(|| {
            Ok(match &self.parts {
                Some((parent, order)) => {
                    Dominators { parent: parent.read()?, order: order.read()? }
                }
                None => Dominators::default(),
            })
        })
    }

    /// The same tree, with each subtree contiguous. Cached, as computing it takes as long as most queries.
    pub fn ordered(&self) -> io::Result<&graph::Tree> {
        self.ordered.get_or(|| Ok(graph::Tree::of(self.get()?)))
    }

    /// Bytes in memory.
    pub fn memsize(&self) -> usize {
        let tree = self.tree.get().map_or(0, |tree| {
            size_of_val(tree.parent.as_slice()) + size_of_val(tree.order.as_slice())
        });
        tree + self.ordered.get().map_or(0, graph::Tree::memsize)
    }
}

impl Derived {
    /// Computes all values, unless it is stopped.
    pub fn of(heap: &Heap, stop: Stop<'_>) -> io::Result<Derived> {
        let classes = heap.group_classes();
        let graph = heap.graph(&classes)?;
        let root = heap.root();
        let memsize = heap.memsizes()?;
        let (steps, tree) = std::thread::scope(|scope| {
            let find = || steps(heap, &graph, stop);
            let other = std::thread::Builder::new().spawn_scoped(scope, find);
            let tree = graph::dominators_unless(&graph, root, stop).and_then(|tree| {
                stop.check()?;
                let retained = graph::retained(&tree, |node| memsize.get(node));
                Ok((tree, retained.into_iter().collect::<Sizes>()))
            });
            // Without memory for another thread, runs one after the other.
            let steps = other.map_or_else(|_| Ok(find()), |other| other.join());
            (steps, tree)
        });
        let (tree, retained) = tree?;
        let steps = steps.map_err(|_| io::Error::other("the search for paths ended early"))?;
        Ok(Derived {
            dominators: tree.into(),
            retained: retained.into(),
            steps: steps?.into(),
            labels: Once::default(),
            finalizers: OnceLock::default(),
        })
    }
}

impl Heap {
    /// The dominator tree of all nodes, from the super root.
    ///
    /// # Errors
    /// See [`Heap::group_numbers`].
    pub fn dominators(&self) -> io::Result<&Dominators> {
        self.derived.dominators.get()
    }

    /// The dominator tree with each subtree contiguous; cached after the first call.
    ///
    /// # Errors
    /// See [`Heap::group_numbers`].
    pub fn tree(&self) -> io::Result<&graph::Tree> {
        self.derived.dominators.ordered()
    }

    /// Retained size of each node.
    ///
    /// # Errors
    /// See [`Heap::group_numbers`].
    pub fn retained(&self) -> io::Result<&Sizes> {
        self.derived.retained.get()
    }

    /// The preceding node on a shortest path from the super root; [`crate::NONE`] for it and unreachable nodes. In a captured
    /// heap, paths avoid the capturing thread ([`Heap::captured_by`]).
    ///
    /// # Errors
    /// See [`Heap::group_numbers`].
    pub fn steps(&self) -> io::Result<&[u32]> {
        match &self.capturing_thread {
            Some(capturing_thread) => capturing_thread.steps(self),
            None => self.all_steps(),
        }
    }

    /// The same, including paths through the thread that captured the heap.
    pub(super) fn all_steps(&self) -> io::Result<&[u32]> {
        self.derived.steps.get()
    }
}

/// Shortest paths, lasting references first: those that are the same from dump to dump. Thread-locals come next, as a request may
/// leave application objects there. An object's finalizers last as long as the object, so their path leads through it, and
/// through the finalizer table only if nothing else retains the object. Stacks and call caches retain objects briefly, so they
/// follow. The machine stack and compiled code explain least, so they come last.
fn steps(heap: &Heap, graph: &Graph<'_>, stop: Stop<'_>) -> io::Result<Vec<u32>> {
    let last = heap.last_resorts();
    let table = heap.roots_named(&[FINALIZERS]);
    let Passing { passing, mut lasting, of_threads } = Passing::of(heap)?;
    for (&object, arrays) in heap.finalizers() {
        lasting.entry(object).or_default().extend(arrays);
    }
    let (without_table, nothing) = ([table.as_slice(), &last].concat(), BitSet::default());
    let first = ways(graph, &without_table, &passing, &lasting);
    let mut paths = Paths::find(heap.root(), first, stop)?;
    for (thread, held) in of_threads {
        lasting.entry(thread).or_default().extend(held);
    }
    let then = [
        ways(graph, &without_table, &passing, &lasting),
        ways(graph, &last, &passing, &lasting),
        ways(graph, &last, &nothing, &lasting),
        ways(graph, &heap.silent, &nothing, &lasting),
    ];
    // Where the sets of edges differ.
    let roots = [heap.root()].into_iter().chain(without_table.iter().copied());
    let mut from: Vec<u32> = roots.chain(passing.iter()).collect();
    from.extend(lasting.keys());
    from.sort_unstable();
    from.dedup();
    for ways in then {
        paths.extend(from.clone(), ways, stop)?;
    }
    Ok(paths.parent)
}

fn ways<'a>(
    graph: &Graph<'a>,
    silent: &'a [u32],
    avoid: &'a BitSet,
    more: &'a FxHashMap<u32, Vec<u32>>,
) -> Ways<'a> {
    Ways { graph: graph.without_edges_of(silent), avoid, more }
}

/// Nodes that retain objects briefly, and the objects that they retain permanently.
struct Passing {
    /// Threads and fibers (for their stacks), call caches, classes (for their method caches), blocks of C code, and memprof's own
    /// objects.
    passing: BitSet,
    /// The references of classes except their caches.
    lasting: FxHashMap<u32, Vec<u32>>,
    /// The locals and variables of threads.
    of_threads: FxHashMap<u32, Vec<u32>>,
}

impl Passing {
    fn of(heap: &Heap) -> io::Result<Passing> {
        let is_passing: Vec<bool> = heap
            .groups()
            .iter()
            .map(|group| {
                let name = group.name.map_or("", |name| heap.name(name));
                let class = heap.classes().get(group.shown as usize);
                // memprof references these objects only to inspect them.
                if class.is_some_and(|class| own::is_in_namespace(heap.name(class.name))) {
                    return true;
                }
                match group.kind {
                    Kind::DATA => matches!(name, "VM/thread" | "thread" | "fiber"),
                    Kind::IMEMO => matches!(name, "callcache" | "constcache"),
                    // A reference from C code explains less than one from a constant or a variable.
                    Kind::BLOCK => true,
                    _ => false,
                }
            })
            .collect();
        let groups = heap.group_numbers()?.iter().zip(0..);
        let found = groups.filter(|&(&group, _)| is_passing.get(group as usize) == Some(&true));
        let mut passing = BitSet::of(heap.root() as usize + 1, found.map(|(_, node)| node));
        let (offsets, targets) = (heap.columns.offsets.get()?, heap.columns.targets.get()?);
        let labels = heap.columns.labels.get()?;
        let mut of_threads = FxHashMap::default();
        let mut lasting = FxHashMap::default();
        if labels.is_empty() {
            return Ok(Passing { passing, lasting, of_threads });
        }
        for node in passing.iter() {
            let row = offsets[node as usize] as usize..offsets[node as usize + 1] as usize;
            let held = row.filter(|&edge| match Packed(labels[edge]).label() {
                Label::Under(_) => true,
                Label::Role(name) => heap.name(name) == "locals",
                _ => false,
            });
            let held: Vec<u32> = held.map(|edge| targets[edge]).collect();
            if !held.is_empty() {
                of_threads.insert(node, held);
            }
        }
        if let Some(cache) = heap.names.find("cache") {
            let caches = |edge: &usize| Packed(labels[*edge]).label() == Label::Role(cache);
            let classes = heap.group_classes();
            let graph = heap.graph(&classes)?;
            let groups = heap.group_numbers()?.iter().zip(0..);
            for (&group, node) in groups {
                let row = offsets[node as usize] as usize..offsets[node as usize + 1] as usize;
                let is_class = heap.groups()[group as usize].kind == Kind::CLASS;
                if !is_class || !row.clone().any(|edge| caches(&edge)) {
                    continue;
                }
                // A class's own references last, but not those to other classes' methods that were called.
                let own = row.filter(|edge| !caches(edge)).map(|edge| targets[edge]);
                let own = own.chain(graph.edges(node).skip(graph.row(node).len()));
                lasting.insert(node, own.collect());
                passing.insert(node);
            }
        }
        Ok(Passing { passing, lasting, of_threads })
    }
}
