//! Heaps of one process as one tree: objects with similar paths are one node of it, with their number and size in each heap.
//!
//! Paths are similar if their steps are: label without index or key, and class. A repeated step is one node, so a list of any
//! length is one, too. LeakCanary's Shark finds growing objects in such a tree (`ObjectGrowthDetector`).

use std::io;

use rustc_hash::{FxHashMap, FxHashSet};

use super::alike::Names;
use super::reading::Reading;
use super::turnover::Turnover;
use memprof_dump::record::{Kind, NameId};
use memprof_heap::graph::BitSet;
use memprof_heap::{FOLDED, Heap, NONE, Site};

/// The label of keys.
pub(super) const KEY: &str = "[key]";

/// The label of an instance variable without a name in Ruby.
pub(super) const HIDDEN: &str = "@(hidden)";

/// Number of nodes above that are searched for a repeated step: `{ item:, next: [..] }` has two.
const LONGEST_LINK: usize = 4;

/// This many objects, each referenced by the one before, are a list.
const LIST: u64 = 100;

/// Maximum depth of the tree: objects below count for the last level.
const DEEPEST: u32 = 64;

/// Objects, and the sum of their memsizes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Sum {
    /// Objects.
    pub count: u64,
    /// Bytes.
    pub size: u64,
}

impl Sum {
    pub(super) fn add(&mut self, other: Sum) {
        self.count += other.count;
        self.size = self.size.saturating_add(other.size);
    }
}

/// The nature of a node's objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Nature {
    /// A root.
    Root,
    /// A named class or module.
    Known,
    /// A thread.
    Thread,
    /// A fiber.
    Fiber,
    /// A thread or fiber that has ended.
    Ended,
    /// A VM cache, which fills as code runs.
    Cache,
    /// A malloc block.
    Block,
    /// Anything else.
    Object,
}

/// Objects with similar paths.
pub(super) struct Node {
    pub parent: u32,
    /// Steps from the root.
    pub depth: u32,
    /// Label of the references to them: a number in [`Tree::names`], like the class.
    pub label: (Link, NameId),
    pub class: NameId,
    pub nature: Nature,
    /// Some of its objects are below others.
    pub repeats: bool,
    /// Number of the last heap's objects that are below one of this node that is below another.
    pub nested: u64,
    /// Sum in each heap; trailing heaps without objects are missing.
    pub sums: Vec<Sum>,
    /// Bytes of the contents of strings and collections in each heap: their memsizes grow in jumps.
    pub contents: Vec<u64>,
    /// The largest object of the last heap.
    pub example: Option<(u64, u32)>,
    /// First and last generation of the tracked objects of the last heap.
    pub generations: Option<(u32, u32)>,
}

impl Node {
    /// Whether its objects are chains rather than nested collections.
    pub fn is_list(&self) -> bool {
        let count = self.sums.last().map_or(0, |sum| sum.count);
        self.nested >= LIST && count <= self.nested + self.nested / LIST
    }
}

/// The kind of reference from a node to one below.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Link {
    None,
    /// An element or entry.
    Any,
    /// An instance or class variable, or a member.
    Variable,
    Constant,
    Global,
    /// The key of a thread-local.
    ThreadLocal,
    /// The name of a thread variable.
    ThreadVariable,
    /// Anything else that has a name.
    Named,
}

/// Where objects were allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Line {
    pub file: NameId,
    pub line: u32,
    pub method: Option<NameId>,
}

impl Line {
    fn of(names: &mut Names, heap: &Heap, site: Option<&Site>) -> Line {
        let method = site.and_then(|site| site.method);
        Line {
            file: names.intern(site.map_or("", |site| heap.name(site.file))),
            line: site.map_or(0, |site| site.line),
            method: method.map(|name| names.intern(heap.name(name))),
        }
    }
}

/// The allocation of objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Made {
    /// The line that allocated them.
    pub at: Line,
    /// The application line that called it, if it is in a library.
    pub caller: Option<Line>,
}

/// The merged tree. Nodes follow their parents; the first node is the top.
#[derive(Default)]
pub(super) struct Tree {
    pub names: Names,
    pub nodes: Vec<Node>,
    pub heaps: usize,
    /// Allocations of each node's objects, in each heap.
    pub lines: FxHashMap<(u32, Made), Vec<Sum>>,
    pub turnover: Turnover,
    /// Blocks defined in libraries, by the name of their nodes.
    pub library_blocks: FxHashSet<NameId>,
    /// The node of each object of the last heap, as returned by [`Tree::nodes_of`].
    pub last: Vec<u32>,
    by_key: FxHashMap<(u32, (Link, NameId), NameId, Nature), u32>,
}

impl Tree {
    /// The node of each object of a heap, `NONE` for garbage; creates missing nodes. Also returns the objects that are parts
    /// of the previous one on their path and share its node.
    pub fn nodes_of(&mut self, heap: &Heap) -> io::Result<(Vec<u32>, BitSet)> {
        if self.nodes.is_empty() {
            let nothing = self.names.intern("");
            self.nodes.push(Node {
                parent: NONE,
                depth: 0,
                label: (Link::None, nothing),
                class: nothing,
                nature: Nature::Root,
                repeats: false,
                nested: 0,
                sums: Vec::new(),
                contents: Vec::new(),
                example: None,
                generations: None,
            });
        }
        Reading::new(self, heap)?.merge()
    }

    /// Adds the next heap, or that of another process at the same time as the last.
    pub fn add(&mut self, heap: &Heap, beside: bool) -> io::Result<()> {
        for node in &mut self.nodes {
            node.example = None;
            node.nested = 0;
            node.generations = None;
        }
        if !beside || self.heaps == 0 {
            self.heaps += 1;
        }
        let number = self.heaps - 1;
        let (of, parts) = self.nodes_of(heap)?;
        // For worker processes, the objects of one suffice.
        if !beside {
            self.turnover.note(&self.nodes, &of, heap)?;
        }
        let sizes = heap.memsizes()?;
        let flags = heap.flag_words()?;
        let sites = heap.site_numbers()?;
        let lengths = heap.lengths()?;
        let groups = heap.group_numbers()?;
        let generations = heap.generations()?;
        // Weak maps retain nothing, and their tables also count garbage.
        let weak = groups_of(heap, &["ObjectSpace::WeakMap", "ObjectSpace::WeakKeyMap"]);
        // By node, and by node and site: hashes and nested vectors are slow with millions of objects.
        let mut sums = vec![(Sum::default(), 0_u64); self.nodes.len()];
        let mut by_site: FxHashMap<(u32, u32), Sum> = FxHashMap::default();
        for id in 0..heap.len() {
            let at = of[id as usize];
            if at == NONE || flags.get(id as usize).is_none_or(|flags| flags & FOLDED.0 != 0) {
                continue;
            }
            let (sum, contents) = &mut sums[at as usize];
            let size = match groups.get(id as usize) {
                Some(group) if weak.contains(group) => u64::from(heap.slot_size(id)),
                _ => sizes.get(id),
            };
            if parts.contains(id) {
                sum.add(Sum { count: 0, size });
                continue;
            }
            let one = Sum { count: 1, size };
            sum.add(one);
            let length = lengths.get(id as usize).filter(|&&length| length != NONE);
            let group =
                (groups.get(id as usize)).and_then(|&group| heap.groups().get(group as usize));
            if let (Some(&length), Some(group)) = (length, group) {
                *contents += u64::from(length) * element(group.kind);
            }
            let node = &mut self.nodes[at as usize];
            node.example = node.example.max(Some((size, id)));
            if let Some(&site) = sites.get(id as usize).filter(|&&site| site != NONE) {
                by_site.entry((at, site)).or_default().add(one);
                let born = generations.get(id as usize).copied();
                if let Some(born) = born.filter(|&born| born != NONE) {
                    let (first, last) = node.generations.unwrap_or((born, born));
                    node.generations = Some((first.min(born), last.max(born)));
                }
            }
        }
        for (node, (sum, contents)) in self.nodes.iter_mut().zip(sums) {
            if sum != Sum::default() {
                grown(&mut node.sums, number).add(sum);
            }
            if contents != 0 {
                *grown(&mut node.contents, number) += contents;
            }
        }
        self.add_lines(heap, number, by_site);
        self.last = of;
        Ok(())
    }

    fn add_lines(&mut self, heap: &Heap, number: usize, by_site: FxHashMap<(u32, u32), Sum>) {
        let mut known: FxHashMap<u32, Made> = FxHashMap::default();
        for ((at, site), sum) in by_site {
            let names = &mut self.names;
            let made = *known.entry(site).or_insert_with(|| {
                let known = heap.sites().get(site as usize);
                let caller = known.and_then(|site| heap.caller(site));
                Made {
                    at: Line::of(names, heap, known),
                    caller: caller.map(|site| Line::of(names, heap, Some(site))),
                }
            });
            grown(self.lines.entry((at, made)).or_default(), number).add(sum);
        }
    }

    /// The nodes from a root to this one.
    pub fn path(&self, node: u32) -> Vec<u32> {
        let above = |at: &u32| {
            let parent = self.nodes[*at as usize].parent;
            (parent != 0 && parent != NONE).then_some(parent)
        };
        let mut path: Vec<u32> = std::iter::successors(Some(node), above).collect();
        path.reverse();
        path
    }

    /// The part of a path from its last well-known step on.
    pub fn known<'p>(&self, path: &'p [u32]) -> &'p [u32] {
        let start = path.windows(2).rposition(|pair| self.is_known(pair[0], pair[1]));
        &path[start.unwrap_or(0)..]
    }

    /// Whether a path can begin with this step for people: at a class or module, a global variable, a global constant.
    fn is_known(&self, from: u32, to: u32) -> bool {
        let (from, to) = (&self.nodes[from as usize], &self.nodes[to as usize]);
        match to.label.0 {
            Link::Global => true,
            Link::Constant if is_global_scope(self.names.name(from.class)) => true,
            _ => from.nature == Nature::Known,
        }
    }

    /// Whether a path leads through the symbol tables: VM arrays that objects do not reference.
    pub fn is_symbol_table(&self, path: &[u32]) -> bool {
        let class = |&node: &u32| self.names.name(self.nodes[node as usize].class);
        let is_table = |class: &str| matches!(class, "<array>" | "<VM/pin_array_list>");
        let mut below = path.iter().skip(1).map(class).peekable();
        let has_table = below.peek().is_some_and(|class| is_table(class));
        let is_text = |class| matches!(class, "String" | "Symbol");
        // Since Ruby 4.0 the tables are a separate root. In the dump of an image, variables of libruby reference them.
        let is_root = |root: &u32| {
            let root = class(root);
            matches!(root, "root vm" | "root global_symbols") || root.starts_with("root static ")
        };
        path.first().is_some_and(is_root)
            && has_table
            && below.skip_while(|class| is_table(class)).all(is_text)
    }

    /// The node of an object below one of `parent`, and whether that is a node above.
    pub fn below(
        &mut self,
        parent: u32,
        label: (Link, NameId),
        class: NameId,
        nature: Nature,
    ) -> (u32, bool) {
        if let Some(&known) = self.by_key.get(&(parent, label, class, nature)) {
            return (known, false);
        }
        // Nested collections are levels of data, and only a list if the step repeats once more.
        let mut times = if label.0 == Link::Any { 2 } else { 1 };
        let holder = self.nodes[parent as usize].class;
        let mut nearest = None;
        let mut above = parent;
        for _ in 0..times * LONGEST_LINK {
            let node = &self.nodes[above as usize];
            if above == 0 {
                break;
            }
            // Blocks below an object do not continue a chain of blocks above it.
            if nature == Nature::Block && node.nature != Nature::Block {
                break;
            }
            let same_step = (node.label, node.class, node.nature) == (label, class, nature);
            if same_step && self.nodes[node.parent as usize].class == holder {
                nearest = nearest.or(Some(above));
                times -= 1;
            }
            if times == 0 {
                return (nearest.unwrap_or(above), true);
            }
            above = node.parent;
        }
        let depth = self.nodes[parent as usize].depth + 1;
        if depth > DEEPEST {
            return (parent, false);
        }
        let number = self.nodes.len() as u32;
        self.nodes.push(Node {
            parent,
            depth,
            label,
            class,
            nature,
            repeats: false,
            nested: 0,
            sums: Vec::new(),
            contents: Vec::new(),
            example: None,
            generations: None,
        });
        self.by_key.insert((parent, label, class, nature), number);
        (number, false)
    }
}

/// The singleton class and the copies of a module have the constants of `Object`, too.
pub(super) fn is_global_scope(holder: &str) -> bool {
    let of_object = |rest: &str| matches!(rest, "Object>" | "Kernel>" | "BasicObject>");
    let name = holder.rsplit([' ', ':']).next();
    holder == "Object" || holder.starts_with('#') && name.is_some_and(of_object)
}

/// The groups of the objects of some classes.
fn groups_of(heap: &Heap, classes: &[&str]) -> Vec<u32> {
    let named = |group: &memprof_heap::Group| {
        let class = heap.classes().get(group.shown as usize);
        class.is_some_and(|class| classes.contains(&heap.name(class.name)))
    };
    let groups = heap.groups().iter().zip(0..);
    groups.filter(|(group, _)| named(group)).map(|(_, number)| number).collect()
}

/// The sum for a heap, the last one so far.
fn grown<S: Copy + Default>(sums: &mut Vec<S>, number: usize) -> &mut S {
    if sums.len() <= number {
        sums.resize(number + 1, S::default());
    }
    &mut sums[number]
}

/// Minimum bytes per element.
fn element(kind: Kind) -> u64 {
    match kind {
        Kind::STRING => 1,
        Kind::ARRAY => 8,
        Kind::HASH => 16,
        _ => 0,
    }
}
