//! Heaps of one process as one tree: objects whose paths are alike are one node of it, with their number and size in each heap.
//!
//! A path is alike if its steps are: what leads to an object, without indices and keys, and its class. A step that repeats is
//! one node, so a list of any length is one, too. LeakCanary's Shark finds growing objects in such a tree (`ObjectGrowthDetector`).

use std::io;

use rustc_hash::FxHashMap;

use crate::questions::words::{Words, place};
use memprof_dump::record::{Flags, Kind, NameId, Tables};
use memprof_heap::{FOLDED, Heap, Label, NONE, Packed};

/// What leads to elements and entries, whichever they are.
const ANY: &str = "[*]";

/// What leads to keys.
pub(super) const KEY: &str = "[key]";

/// What leads to an instance variable that has no name in Ruby.
pub(super) const HIDDEN: &str = "@(hidden)";

/// Nodes above among which a step is looked for that repeats: `{ item:, next: [..] }` has two.
const LONGEST_LINK: usize = 4;

/// So many objects, each held by the one before, are a list.
const LIST: u64 = 100;

/// Levels of the tree: below, objects count for the last.
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

/// What a node's objects are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Nature {
    /// A root.
    Root,
    /// A class or module that has a name.
    Known,
    /// A thread.
    Thread,
    /// A fiber.
    Fiber,
    /// A cache of the VM, which fills as code runs.
    Cache,
    /// Anything else.
    Object,
}

/// Objects with paths that are alike.
pub(super) struct Node {
    pub parent: u32,
    /// Steps from the root.
    pub depth: u32,
    /// What leads to them: a number of [`Tree::names`], as the class.
    pub label: (Link, NameId),
    pub class: NameId,
    pub nature: Nature,
    /// How many of the last heap's objects are below one of this node that is below another.
    pub nested: u64,
    /// In each heap; those without are left out at the end.
    pub sums: Vec<Sum>,
    /// The largest of the last heap.
    pub example: Option<(u64, u32)>,
}

impl Node {
    /// Whether its objects are chains rather than a heap of collections in collections.
    pub fn is_list(&self) -> bool {
        let count = self.sums.last().map_or(0, |sum| sum.count);
        self.nested >= LIST && count <= self.nested + self.nested / LIST
    }
}

/// What leads from a node to one below.
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

/// The merged tree. Nodes come behind their parents; the first stands above all.
#[derive(Default)]
pub(super) struct Tree {
    pub names: Tables,
    pub nodes: Vec<Node>,
    pub heaps: usize,
    /// What each node's objects were allocated by, in each heap.
    pub lines: FxHashMap<(u32, Line), Vec<Sum>>,
    by_key: FxHashMap<(u32, (Link, NameId), NameId, Nature), u32>,
}

impl Tree {
    /// Adds the next heap, or one of another process at the same time as the last.
    pub fn add(&mut self, heap: &Heap, beside: bool) -> io::Result<()> {
        if self.nodes.is_empty() {
            let nothing = self.names.intern("");
            self.nodes.push(Node {
                parent: NONE,
                depth: 0,
                label: (Link::None, nothing),
                class: nothing,
                nature: Nature::Root,
                nested: 0,
                sums: Vec::new(),
                example: None,
            });
        }
        for node in &mut self.nodes {
            node.example = None;
            node.nested = 0;
        }
        if !beside || self.heaps == 0 {
            self.heaps += 1;
        }
        let number = self.heaps - 1;
        let reading = Reading::new(self, heap)?;
        let of = reading.merge()?;
        let sizes = heap.memsizes()?;
        let flags = heap.flag_words()?;
        let sites = heap.site_numbers()?;
        let mut lines: FxHashMap<u32, Line> = FxHashMap::default();
        for id in 0..heap.len() {
            let at = of[id as usize];
            if at == NONE
                || flags
                    .get(id as usize)
                    .is_none_or(|flags| flags & FOLDED.0 != 0)
            {
                continue;
            }
            let node = &mut self.nodes[at as usize];
            let size = sizes.get(id);
            let one = Sum { count: 1, size };
            grown(&mut node.sums, number).add(one);
            node.example = node.example.max(Some((size, id)));
            let Some(site) = sites.get(id as usize).filter(|&&site| site != NONE) else {
                continue;
            };
            let names = &mut self.names;
            let line = *lines.entry(*site).or_insert_with(|| {
                let site = heap.sites().get(*site as usize);
                Line {
                    file: names.intern(site.map_or("", |site| heap.name(site.file))),
                    line: site.map_or(0, |site| site.line),
                    method: site
                        .and_then(|site| site.method)
                        .map(|name| names.intern(heap.name(name))),
                }
            });
            grown(self.lines.entry((at, line)).or_default(), number).add(one);
        }
        Ok(())
    }

    /// Nodes from a root to this one.
    pub fn path(&self, node: u32) -> Vec<u32> {
        let above = |at: &u32| {
            let parent = self.nodes[*at as usize].parent;
            (parent != 0 && parent != NONE).then_some(parent)
        };
        let mut path: Vec<u32> = std::iter::successors(Some(node), above).collect();
        path.reverse();
        path
    }

    /// Whether a path leads through the tables of symbols: arrays of the VM that no object knows.
    pub fn is_symbol_table(&self, path: &[u32]) -> bool {
        let class = |&node: &u32| self.names.name(self.nodes[node as usize].class);
        let tables = path
            .iter()
            .skip(1)
            .map(class)
            .take_while(|&class| class == "<array>");
        let rest = path.len() - 1 - tables.clone().count().min(path.len() - 1);
        path.first()
            .map(class)
            .is_some_and(|root| root.ends_with("vm"))
            && tables.count() > 0
            && (rest == 0
                || path
                    .last()
                    .map(class)
                    .is_some_and(|last| matches!(last, "String" | "Symbol")))
    }

    /// The node of an object below one of `parent`, and whether that is a node above.
    fn below(
        &mut self,
        parent: u32,
        label: (Link, NameId),
        class: NameId,
        nature: Nature,
    ) -> (u32, bool) {
        if let Some(&known) = self.by_key.get(&(parent, label, class, nature)) {
            return (known, false);
        }
        let mut above = parent;
        for _ in 0..LONGEST_LINK {
            let node = &self.nodes[above as usize];
            if above == 0 {
                break;
            }
            if (node.label, node.class, node.nature) == (label, class, nature) {
                return (above, true);
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
            nested: 0,
            sums: Vec::new(),
            example: None,
        });
        self.by_key.insert((parent, label, class, nature), number);
        (number, false)
    }
}

/// The sum for a heap, which is the last so far.
fn grown(sums: &mut Vec<Sum>, number: usize) -> &mut Sum {
    if sums.len() <= number {
        sums.resize(number + 1, Sum::default());
    }
    &mut sums[number]
}

/// A heap while it is merged into the tree.
struct Reading<'t, 'h> {
    tree: &'t mut Tree,
    heap: &'h Heap,
    words: Words<'h>,
    steps: &'h [u32],
    labels: &'h [u32],
    groups: &'h [u32],
    flags: &'h [u32],
    /// Class and nature of each group of objects, once they are known.
    known: Vec<Option<(NameId, Nature)>>,
    links: FxHashMap<u32, (Link, NameId)>,
}

impl<'t, 'h> Reading<'t, 'h> {
    fn new(tree: &'t mut Tree, heap: &'h Heap) -> io::Result<Reading<'t, 'h>> {
        Ok(Reading {
            tree,
            heap,
            words: Words::new(heap)?,
            steps: heap.steps()?,
            labels: heap.labels()?,
            groups: heap.group_numbers()?,
            flags: heap.flag_words()?,
            known: vec![None; heap.groups().len()],
            links: FxHashMap::default(),
        })
    }

    /// The node of each object; `NONE` for garbage.
    fn merge(mut self) -> io::Result<Vec<u32>> {
        let edges = self.edges()?;
        let mut of = vec![NONE; self.steps.len()];
        let root = self.heap.root();
        of[root as usize] = 0;
        // How often the path to each object comes back to a node.
        let mut levels = vec![0_u8; of.len()];
        let mut open = Vec::new();
        for object in 0..root {
            let mut at = object;
            // A broken index may lead in circles.
            while at != NONE && of[at as usize] == NONE && open.len() <= of.len() {
                open.push(at);
                at = self.steps[at as usize];
            }
            if at == NONE || of[at as usize] == NONE {
                open.clear();
                continue;
            }
            while let Some(next) = open.pop() {
                let before = self.steps[next as usize] as usize;
                let (node, again) = self.node(of[before], next, edges[next as usize]);
                of[next as usize] = node;
                levels[next as usize] = levels[before].saturating_add(u8::from(again));
                if again && levels[next as usize] > 1 {
                    self.tree.nodes[node as usize].nested += 1;
                }
            }
        }
        Ok(of)
    }

    /// The reference that leads to each object from the one before it, the first that has a label.
    fn edges(&self) -> io::Result<Vec<u32>> {
        let graph = self.heap.graph(&[])?;
        let mut edges = vec![NONE; self.steps.len()];
        for node in graph.nodes() {
            let Some(row) = self.words.row(node) else {
                continue;
            };
            for edge in row {
                let target = graph.targets[edge] as usize;
                if self.steps.get(target) != Some(&node) {
                    continue;
                }
                let known = edges[target];
                if known == NONE || self.labels.get(known as usize) == Some(&Packed::NONE.0) {
                    edges[target] = edge as u32;
                }
            }
        }
        Ok(edges)
    }

    fn node(&mut self, parent: u32, object: u32, edge: u32) -> (u32, bool) {
        let (class, nature) = self.class(object);
        let of_thread = matches!(
            self.tree.nodes[parent as usize].nature,
            Nature::Thread | Nature::Fiber
        );
        let label = self.link(edge, of_thread);
        self.tree.below(parent, label, class, nature)
    }

    fn link(&mut self, edge: u32, of_thread: bool) -> (Link, NameId) {
        let packed = match edge {
            // No edge: it is its class.
            NONE => return (Link::Named, self.tree.names.intern("class")),
            _ => self.labels.get(edge as usize).copied().unwrap_or(0),
        };
        let label = Packed(packed).label();
        if let Label::Under(key) = label
            && of_thread
        {
            let key = self.heap.name(key);
            return (Link::ThreadLocal, self.tree.names.intern(key));
        }
        if let Some(&known) = self.links.get(&packed) {
            return known;
        }
        let (link, name) = match label {
            Label::None => (Link::None, String::new()),
            Label::Index(_) | Label::Entry | Label::Under(_) => (Link::Any, ANY.to_owned()),
            Label::Key => (Link::Any, KEY.to_owned()),
            Label::Ivar(name) | Label::ClassVariable(name) => {
                let name = self.heap.name(name);
                let hidden = !name.starts_with(['@', '_']) && name.contains('(');
                (
                    Link::Variable,
                    if hidden { HIDDEN } else { name }.to_owned(),
                )
            }
            Label::Member(name) => (Link::Variable, format!(".{}", self.heap.name(name))),
            Label::Constant(name) => (Link::Constant, without_digits(self.heap.name(name))),
            Label::Global(name) => (Link::Global, self.heap.name(name).to_owned()),
            Label::Local(name) => (Link::Named, format!("local {}", self.heap.name(name))),
            Label::Method(name) => (
                Link::Variable,
                format!("#{}", without_digits(self.heap.name(name))),
            ),
            Label::Role(name) => (Link::Named, self.heap.name(name).to_owned()),
        };
        let known = (link, self.tree.names.intern(&name));
        self.links.insert(packed, known);
        known
    }

    fn class(&mut self, object: u32) -> (NameId, Nature) {
        let Some(&number) = self.groups.get(object as usize) else {
            let text = self.words.short(object);
            return (self.tree.names.intern(&text), Nature::Root);
        };
        let group = self.heap.groups().get(number as usize);
        let kind = group.map_or(Kind::NONE, |group| group.kind);
        if matches!(kind, Kind::CLASS | Kind::MODULE | Kind::ICLASS) {
            return self.class_itself(object, kind);
        }
        let internal = self.words.internal_name(object);
        if internal == Some("proc")
            && let Some((file, line)) = self.words.source(object)
        {
            let text = format!("{} {}", self.words.class(object), place(&file, line));
            return (self.tree.names.intern(&text), Nature::Object);
        }
        if let Some(known) = self.known[number as usize] {
            return known;
        }
        let nature = match internal {
            Some("VM/thread" | "thread") => Nature::Thread,
            Some("fiber") => Nature::Fiber,
            Some("callcache" | "constcache" | "callinfo" | "VM/cc_table") => Nature::Cache,
            _ => Nature::Object,
        };
        let class = without_address(self.words.class(object));
        let known = (self.tree.names.intern(&class), nature);
        self.known[number as usize] = Some(known);
        known
    }

    /// A class or module: by its name, as far as it has one.
    fn class_itself(&mut self, object: u32, kind: Kind) -> (NameId, Nature) {
        let named = (self.heap.class_object(object)).is_some_and(|class| class.name.is_some());
        let singleton =
            (self.flags.get(object as usize)).is_some_and(|flags| flags & Flags::SINGLETON.0 != 0);
        let text = without_digits(&without_address(&self.words.short(object)));
        let is_known = named && !singleton && kind != Kind::ICLASS;
        let nature = if is_known {
            Nature::Known
        } else {
            Nature::Object
        };
        (self.tree.names.intern(&text), nature)
    }
}

/// Anonymous classes differ by their addresses.
fn without_address(text: &str) -> String {
    match text.split_once(":0x") {
        Some((before, rest)) => {
            let rest = rest.trim_start_matches(|digit: char| digit.is_ascii_hexdigit());
            format!("{before}{rest}")
        }
        None => text.to_owned(),
    }
}

/// `Row17` and `Row18` are alike.
fn without_digits(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for one in text.chars() {
        match one {
            '0'..='9' if shown.ends_with('#') => {}
            '0'..='9' => shown.push('#'),
            _ => shown.push(one),
        }
    }
    shown
}
