//! A heap while it is merged into the tree.

use std::io;

use rustc_hash::FxHashMap;

use super::alike::without_address;
use super::merged::{HIDDEN, KEY, Link, Nature, Tree};
use crate::questions::words::{Words, place};
use memprof_dump::record::{Flags, Kind, NameId};
use memprof_heap::{Heap, Label, NONE, Packed};

/// What leads to elements and entries, whichever they are.
const ANY: &str = "[*]";

/// A heap while it is merged into the tree.
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
        })
    }

    /// The node of each object; `NONE` for garbage.
    pub fn merge(mut self) -> io::Result<Vec<u32>> {
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
            return (Link::ThreadLocal, self.tree.names.alike(key));
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
            Label::Constant(name) => (Link::Constant, self.heap.name(name).to_owned()),
            Label::Global(name) => (Link::Global, self.heap.name(name).to_owned()),
            Label::Local(name) => (Link::Named, format!("local {}", self.heap.name(name))),
            Label::Method(name) => (Link::Variable, format!("#{}", self.heap.name(name))),
            Label::Role(name) => (Link::Named, self.heap.name(name).to_owned()),
        };
        let known = (
            link,
            match label {
                Label::Constant(_) | Label::Method(_) => self.tree.names.alike(&name),
                _ => self.tree.names.intern(&name),
            },
        );
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
        let text = self.words.short(object);
        let is_known = named && !singleton && kind != Kind::ICLASS;
        let nature = if is_known {
            Nature::Known
        } else {
            Nature::Object
        };
        (self.tree.names.alike(&text), nature)
    }
}
