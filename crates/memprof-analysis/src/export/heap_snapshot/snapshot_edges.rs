//! The edges of a snapshot, in the order of its nodes.

use std::io;

use super::super::naming;
use super::Snapshot;
use memprof_dump::record::Kind;
use memprof_heap::{Label, NONE};

/// Numbers per node.
const FIELDS: u32 = 7;

/// Types of edges, by their position in the header. Elements and hidden edges have a number as name.
mod types {
    pub const ELEMENT: u8 = 1;
    pub const PROPERTY: u8 = 2;
    pub const INTERNAL: u8 = 3;
    pub const HIDDEN: u8 = 4;
    pub const WEAK: u8 = 6;
}

impl Snapshot<'_, '_> {
    pub(super) fn edges(&mut self) -> io::Result<()> {
        self.out.push("],\n\"edges\":[");
        let choice = self.choice;
        let mut first = true;
        self.edge(&mut first, types::ELEMENT, 1, 1);
        self.edge(&mut first, types::ELEMENT, 2, self.loose());
        let root = self.heap.root();
        if self.has_roots() {
            self.extras(&mut first, root);
            for category in 0..self.categories() {
                self.edge(&mut first, types::ELEMENT, category + 1, 2 + category);
            }
            for category in self.heap.len()..root {
                self.row(&mut first, category)?;
                self.extras(&mut first, category);
            }
        }
        for (&id, index) in choice.tops.iter().zip(1..) {
            self.edge(&mut first, types::ELEMENT, index, self.positions[id as usize]);
            self.out.flush_if_full()?;
        }
        for id in choice.nodes.iter().take_while(|&id| id < self.heap.len()) {
            self.row(&mut first, id)?;
            self.extras(&mut first, id);
            self.out.flush_if_full()?;
        }
        Ok(())
    }

    /// The references of a node. Those of unreachable objects retain nothing, so they are weak.
    fn row(&mut self, first: &mut bool, node: u32) -> io::Result<()> {
        let graph = self.graph;
        let start = graph.offsets[node as usize];
        let is_array = self.naming.kind(node) == Kind::ARRAY;
        let is_weak = !self.tree.reaches(node);
        let mut before = NONE;
        for (&target, at) in graph.row(node).iter().zip(0..) {
            let position = self.positions[target as usize];
            if position != NONE {
                let (mut kind, mut name) = self.label((start + at) as usize, at, before, is_array);
                if is_weak {
                    if matches!(kind, types::ELEMENT | types::HIDDEN) {
                        name = self.strings.text(&format!("[{name}]"));
                    }
                    kind = types::WEAK;
                }
                self.edge(first, kind, name, position);
                self.out.flush_if_full()?;
            }
            before = position;
        }
        if let Some((_, class)) = graph.extra_of(node) {
            let position = self.positions[class as usize];
            if position != NONE {
                let name = self.strings.text("class");
                self.edge(
                    first,
                    if is_weak { types::WEAK } else { types::INTERNAL },
                    name,
                    position,
                );
            }
        }
        Ok(())
    }

    /// Edges for paths through objects that are not in the file.
    fn extras(&mut self, first: &mut bool, node: u32) {
        let choice = self.choice;
        for (_, &(_, target)) in of_node(&choice.links, node, |link| link.0) {
            let name = self.strings.text("(through others)");
            self.edge(first, types::INTERNAL, name, self.positions[target as usize]);
        }
        for (index, _) in of_node(&choice.more, node, |more| more.owner) {
            let name = self.strings.text("(more)");
            self.edge(first, types::INTERNAL, name, self.first_more() + index as u32);
        }
    }

    /// Type and name of an edge; `before` is the position of the previous edge's target.
    fn label(&mut self, edge: usize, index: u32, before: u32, is_array: bool) -> (u8, u32) {
        let name = match self.naming.label(edge) {
            Label::Index(index) => return (types::ELEMENT, index),
            Label::None if is_array => return (types::ELEMENT, index),
            Label::None => return (types::HIDDEN, index),
            Label::Key => return (types::INTERNAL, self.strings.text("key")),
            // The value of a hash is named by its key, as in JavaScript.
            Label::Entry => {
                let key = before
                    .checked_sub(self.first_object())
                    .and_then(|at| self.names.get(at as usize));
                return match key {
                    Some(&name) => (types::PROPERTY, name),
                    None => (types::HIDDEN, index),
                };
            }
            Label::Role(name) => {
                return (types::INTERNAL, self.strings.name(name, self.heap.name(name)));
            }
            Label::Method(name) => format!("#{}", self.heap.name(name)),
            Label::Ivar(name)
            | Label::ClassVariable(name)
            | Label::Constant(name)
            | Label::Member(name)
            | Label::Local(name)
            | Label::Global(name)
            | Label::Under(name) => {
                return (types::PROPERTY, self.strings.name(name, self.heap.name(name)));
            }
        };
        (types::PROPERTY, self.strings.text(&naming::shown(&name)))
    }

    #[inline]
    fn edge(&mut self, first: &mut bool, kind: u8, name: u32, to: u32) {
        self.out.push(if *first { "" } else { ",\n" });
        *first = false;
        self.out.text.push(b'0' + kind);
        self.out.text.push(b',');
        self.out.number(name);
        self.out.text.push(b',');
        self.out.number(u64::from(to) * u64::from(FIELDS));
    }
}

/// The entries of a node, with their positions; entries are ordered by node.
fn of_node<T>(
    entries: &[T],
    node: u32,
    key: impl Fn(&T) -> u32,
) -> impl Iterator<Item = (usize, &T)> {
    let begin = entries.partition_point(|entry| key(entry) < node);
    (begin..).zip(&entries[begin..]).take_while(move |(_, entry)| key(entry) == node)
}
