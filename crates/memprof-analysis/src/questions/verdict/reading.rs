//! Merges a heap into the tree.

use std::io;
use std::sync::atomic::{AtomicU32, Ordering};

use rustc_hash::FxHashMap;

use super::alike::without_address;
use super::merged::{HIDDEN, KEY, Link, Nature, Tree};
use crate::questions::words::{ANY, Words, place};
use memprof_dump::record::{Flags, Kind, NameId, Value};
use memprof_heap::graph::{BitSet, in_parts, piece_of};
use memprof_heap::{Heap, Label, NONE, Packed, Sizes};
use memprof_paths::library_path;

/// Bytes up to which a part may share a whole String unnoticed. Dumps without values have no lengths.
const SHORT: u64 = 512;

/// Number of cached nodes.
const MEMO: usize = 4096;

/// Represents the label of any element or entry.
pub(super) const ANY_ENTRY: u32 = NONE;

/// The label of an object's finalizers.
pub(super) const FINALIZER: &str = "finalizer";

/// A heap that is merged into the tree.
pub(super) struct Reading<'t, 'h> {
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
    lengths: &'h [u32],
    sizes: &'h Sizes,
    /// Cache of nodes, by the node above, the label and the group.
    memo: Vec<(u32, u32, u32, (u32, bool))>,
    /// Names of facts about threads and fibers.
    status: Option<NameId>,
    alive: Option<NameId>,
}

impl<'t, 'h> Reading<'t, 'h> {
    pub fn new(tree: &'t mut Tree, heap: &'h Heap) -> io::Result<Reading<'t, 'h>> {
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
            lengths: heap.lengths()?,
            sizes: heap.memsizes()?,
            memo: vec![(NONE, 0, 0, (0, false)); MEMO],
            status: (heap.names().find("status"))
                .filter(|&name| heap.facts().named(name).next().is_some()),
            alive: heap.names().find("alive"),
        })
    }

    /// The node of each object, `NONE` for garbage; and the objects that are parts of the previous one.
    pub fn merge(mut self) -> io::Result<(Vec<u32>, BitSet)> {
        let edges = self.edges()?;
        let mut of = vec![NONE; self.steps.len()];
        let mut parts = BitSet::of(of.len(), []);
        let root = self.heap.root();
        of[root as usize] = 0;
        let pending = self.pending_finalizers();
        // How often the path to each object returns to a node.
        let mut levels = vec![0_u8; of.len()];
        let mut open = Vec::new();
        for object in 0..root {
            let mut at = object;
            // A broken index may contain cycles.
            while at != NONE
                && of[at as usize] == NONE
                && open.len() <= of.len()
                && !pending.contains(at)
            {
                open.push(at);
                at = self.steps[at as usize];
            }
            if at == NONE || of[at as usize] == NONE {
                open.clear();
                continue;
            }
            while let Some(next) = open.pop() {
                let before = self.steps[next as usize] as usize;
                let edge = edges[next as usize];
                if self.is_part(before as u32, next, edge) {
                    parts.insert(next);
                    of[next as usize] = of[before];
                    levels[next as usize] = levels[before];
                    continue;
                }
                let (node, again) = self.node(of[before], before as u32, next, edge);
                of[next as usize] = node;
                levels[next as usize] = levels[before].saturating_add(u8::from(again));
                self.tree.nodes[node as usize].repeats |= again;
                if again && levels[next as usize] > 1 {
                    self.tree.nodes[node as usize].nested += 1;
                }
            }
        }
        Ok((of, parts))
    }

    /// The finalizers of garbage, which run when it is swept. A finalizer that retains its object prevents it from
    /// becoming garbage.
    fn pending_finalizers(&self) -> BitSet {
        let is_garbage = |object: u32| self.steps.get(object as usize) == Some(&NONE);
        let of_garbage = self.heap.finalizers().iter().filter(|(object, _)| is_garbage(**object));
        BitSet::of(self.steps.len(), of_garbage.flat_map(|(_, arrays)| arrays.iter().copied()))
    }

    /// Whether people see an object as a part of its referrer: the shared contents of an Array or String if they are not much
    /// longer, the Hash with a thread's variables, and malloc blocks with contents. Arrays begin to share their contents when
    /// they are shifted.
    fn is_part(&self, holder: u32, object: u32, edge: u32) -> bool {
        let label = self.labels.get(edge as usize).map(|&label| Packed(label).label());
        let Some(Label::Role(role)) = label else {
            return false;
        };
        let length =
            |id: u32| self.lengths.get(id as usize).copied().filter(|&length| length != NONE);
        match (self.heap.name(role), self.kind(holder), self.kind(object)) {
            ("shared", Kind::ARRAY, Kind::ARRAY) => {
                let shown = length(holder).unwrap_or(0) as usize;
                let row = self.words.row(object).unwrap_or_default();
                // Arrays that were prepended to may contain some twice.
                let mut elements: Vec<u32> = row.map(|edge| self.words.target(edge)).collect();
                elements.sort_unstable();
                elements.dedup();
                elements.len() <= shown
            }
            ("shared", Kind::STRING, Kind::STRING) => {
                let about_as_long = (length(holder).zip(length(object)))
                    .is_some_and(|(shown, whole)| u64::from(shown) * 2 >= u64::from(whole));
                about_as_long || self.sizes.get(object) < SHORT
            }
            ("locals", Kind::DATA, Kind::HASH) => true,
            // The object's memory outside its slot.
            ("contents", _, Kind::BLOCK) => true,
            _ => false,
        }
    }

    fn kind(&self, object: u32) -> Kind {
        let group = self.groups.get(object as usize);
        let group = group.and_then(|&group| self.heap.groups().get(group as usize));
        group.map_or(Kind::NONE, |group| group.kind)
    }

    /// The reference to each object from the previous one, preferably one with a label.
    fn edges(&self) -> io::Result<Vec<u32>> {
        let graph = self.heap.graph(&[])?;
        let edges: Vec<AtomicU32> =
            std::iter::repeat_with(|| AtomicU32::new(NONE)).take(self.steps.len()).collect();
        let (steps, labels) = (self.steps, self.labels);
        let look = |node: u32| {
            let start = graph.offsets.get(node as usize).copied().unwrap_or(0);
            for (&target, edge) in graph.row(node).iter().zip(start..) {
                if steps.get(target as usize) != Some(&node) {
                    continue;
                }
                // Each object has one previous node, so no other thread writes here.
                let place = &edges[target as usize];
                let known = place.load(Ordering::Relaxed);
                if known == NONE || labels.get(known as usize) == Some(&Packed::NONE.0) {
                    place.store(edge, Ordering::Relaxed);
                }
            }
        };
        let nodes = graph.nodes().len();
        in_parts(
            nodes,
            piece_of(nodes),
            || (),
            |(), part| {
                part.for_each(|node| look(node as u32));
            },
        );
        Ok(edges.into_iter().map(AtomicU32::into_inner).collect())
    }

    /// The node of an object, and whether it is one above. Most objects come with others of their class and label.
    fn node(&mut self, parent: u32, before: u32, object: u32, edge: u32) -> (u32, bool) {
        let group = self.groups.get(object as usize).copied().unwrap_or(NONE);
        let label = match self.labels.get(edge as usize) {
            Some(&packed) if self.known.get(group as usize).is_some_and(Option::is_some) => packed,
            _ => return self.find_node(parent, before, object, edge),
        };
        let label = without_key(label);
        let of_thread =
            matches!(self.tree.nodes[parent as usize].nature, Nature::Thread | Nature::Fiber);
        if of_thread {
            return self.find_node(parent, before, object, edge);
        }
        let place = (parent ^ group.rotate_left(9) ^ label.rotate_left(18)) as usize % MEMO;
        let memo = self.memo[place];
        if (memo.0, memo.1, memo.2) == (parent, label, group) {
            return memo.3;
        }
        let found = self.find_node(parent, before, object, edge);
        self.memo[place] = (parent, label, group, found);
        found
    }

    fn find_node(&mut self, parent: u32, before: u32, object: u32, edge: u32) -> (u32, bool) {
        let (class, mut nature) = self.class(object);
        let held_by = self.tree.nodes[parent as usize].class;
        if nature == Nature::Ended && self.tree.names.name(held_by) == "Ractor" {
            // A thread of a Ractor that could not be inspected.
            nature = Nature::Thread;
        }
        if edge == NONE {
            // The object does not reference it itself.
            let role = match self.heap.is_finalizer(before, object) {
                true => FINALIZER,
                false => "class",
            };
            let label = (Link::Named, self.tree.names.intern(role));
            return self.tree.below(parent, label, class, nature);
        }
        let of_thread =
            matches!(self.tree.nodes[parent as usize].nature, Nature::Thread | Nature::Fiber);
        let of_hash = of_thread && self.kind(before) == Kind::HASH;
        let label = match self.link(edge, of_thread) {
            (Link::ThreadLocal, name) if of_hash => (Link::ThreadVariable, name),
            link => link,
        };
        self.tree.below(parent, label, class, nature)
    }

    fn link(&mut self, edge: u32, of_thread: bool) -> (Link, NameId) {
        let packed = self.labels.get(edge as usize).copied().unwrap_or(0);
        let label = Packed(packed).label();
        if of_thread {
            let key = match label {
                Label::Under(key) => Some(self.heap.name(key).to_owned()),
                Label::Entry => self.key(edge),
                _ => None,
            };
            if let Some(key) = key {
                return (Link::ThreadLocal, self.tree.names.alike(&key));
            }
        }
        if let Some(&known) = self.links.get(&packed) {
            return known;
        }
        let (link, name) = named(self.heap, label);
        let known = (
            link,
            match label {
                Label::Constant(_) | Label::Method(_) | Label::Ivar(_) => {
                    self.tree.names.alike(&name)
                }
                _ => self.tree.names.intern(&name),
            },
        );
        self.links.insert(packed, known);
        known
    }

    /// A Symbol created from a String, which is an object.
    fn key(&self, edge: u32) -> Option<String> {
        let key = self.words.target((edge as usize).checked_sub(1)?);
        let text = self.words.text(key).filter(|_| self.kind(key) == Kind::SYMBOL)?;
        Some(format!(":{}", text.trim_matches('"').trim_start_matches(':')))
    }

    fn class(&mut self, object: u32) -> (NameId, Nature) {
        let Some(&number) = self.groups.get(object as usize) else {
            let text = self.words.short(object);
            return (self.tree.names.intern(&text), Nature::Root);
        };
        let kind = self.kind(object);
        if matches!(kind, Kind::CLASS | Kind::MODULE | Kind::ICLASS) {
            return self.class_itself(object, kind);
        }
        let internal = self.words.internal_name(object);
        let is_proc = internal == Some("proc");
        let source = is_proc.then(|| self.words.source(object)).flatten();
        if let Some((file, line)) = source {
            let library = library_path(&file);
            let shown = place(library.as_deref().unwrap_or(&file), line);
            let name = (self.tree.names).intern(&format!("{} {shown}", self.words.class(object)));
            if library.is_some() {
                self.tree.library_blocks.insert(name);
            }
            return (name, Nature::Object);
        }
        if let Some(known) = self.known[number as usize] {
            return known;
        }
        let nature = match internal {
            Some("VM/thread" | "thread") => Nature::Thread,
            Some("fiber") => Nature::Fiber,
            Some("callcache" | "constcache" | "callinfo" | "VM/cc_table") => Nature::Cache,
            _ if kind == Kind::BLOCK => Nature::Block,
            _ => Nature::Object,
        };
        let class = without_address(self.words.class(object));
        let class = self.tree.names.intern(&class);
        if matches!(nature, Nature::Thread | Nature::Fiber) {
            return (class, if self.has_ended(object, nature) { Nature::Ended } else { nature });
        }
        // Blocks without a place are not like the others.
        if internal != Some("proc") {
            self.known[number as usize] = Some((class, nature));
        }
        (class, nature)
    }

    /// Only running threads have a status; in a dump without any, it is unknown.
    fn has_ended(&self, object: u32, nature: Nature) -> bool {
        let fact = |name| self.heap.facts().get(object, name);
        match nature {
            Nature::Thread => self.status.is_some_and(|status| fact(status).is_none()),
            _ => self.alive.and_then(fact) == Some(Value::False),
        }
    }

    /// A class or module, by its name if it has one.
    fn class_itself(&mut self, object: u32, kind: Kind) -> (NameId, Nature) {
        let named = (self.heap.class_object(object)).is_some_and(|class| class.name.is_some());
        let singleton =
            (self.flags.get(object as usize)).is_some_and(|flags| flags & Flags::SINGLETON.0 != 0);
        let text = self.words.short(object);
        let is_known = named && !singleton && kind != Kind::ICLASS;
        let nature = if is_known { Nature::Known } else { Nature::Object };
        (self.tree.names.alike(&text), nature)
    }
}

/// A packed label, the same for all elements and entries.
pub(super) fn without_key(label: u32) -> u32 {
    match Packed(label).label() {
        Label::Index(_) | Label::Entry | Label::Under(_) => ANY_ENTRY,
        _ => label,
    }
}

/// The label of a reference, without index or key.
pub(super) fn named(heap: &Heap, label: Label) -> (Link, String) {
    match label {
        Label::None => (Link::None, String::new()),
        Label::Index(_) | Label::Entry | Label::Under(_) => (Link::Any, ANY.to_owned()),
        Label::Key => (Link::Any, KEY.to_owned()),
        Label::Ivar(name) | Label::ClassVariable(name) => {
            let name = heap.name(name);
            let hidden = !name.starts_with(['@', '_']) && name.contains('(');
            (Link::Variable, if hidden { HIDDEN } else { name }.to_owned())
        }
        Label::Member(name) => (Link::Variable, format!(".{}", heap.name(name))),
        Label::Constant(name) => (Link::Constant, heap.name(name).to_owned()),
        Label::Global(name) => (Link::Global, heap.name(name).to_owned()),
        Label::Local(name) => (Link::Named, format!("local {}", heap.name(name))),
        Label::Method(name) => (Link::Variable, format!("#{}", heap.name(name))),
        Label::Role(name) => (Link::Named, heap.name(name).to_owned()),
    }
}
