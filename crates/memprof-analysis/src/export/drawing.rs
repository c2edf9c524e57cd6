//! The graph that GML, GEXF and DOT draw: titled nodes, and at most one edge from one node to another.

use std::borrow::Cow;
use std::io;

use super::choice::{Choice, More};
use super::naming::{Naming, shown};
use super::references::References;
use super::{Counts, Options};
use memprof_heap::Heap;

/// Labels returned for references between the same two objects; there may be thousands.
const LABELS: usize = 3;

/// A node.
pub(super) struct Node<'n> {
    pub id: u32,
    /// Short, unique, without control characters.
    pub title: &'n str,
    pub class: &'n str,
    pub kind: &'static str,
    pub size: u64,
    pub retained: u64,
}

/// An edge; `way` if it represents a path through objects that are not drawn.
pub(super) struct Edge<'e> {
    pub id: u64,
    pub from: u32,
    pub to: u32,
    pub label: &'e str,
    pub way: bool,
}

/// The part of a heap that is drawn.
pub(super) struct Drawing<'h> {
    heap: &'h Heap,
    choice: Choice,
    naming: Naming<'h>,
    with_ways: bool,
}

impl<'h> Drawing<'h> {
    /// Draws at most `limit` objects, or as many as the options say.
    pub fn new(heap: &'h Heap, options: &Options<'_>, limit: usize) -> io::Result<Drawing<'h>> {
        let mut choice = Choice::new(heap, options, limit)?;
        // The super root would be one more dot, connected to all shared objects.
        choice.nodes.remove(heap.root());
        let (drawn, lost): (Vec<More>, Vec<More>) =
            choice.more.iter().partition(|more| more.owner != heap.root());
        choice.left_out += lost.iter().map(|more| more.objects).sum::<u64>();
        choice.more = drawn;
        Ok(Drawing {
            heap,
            choice,
            naming: Naming::new(heap)?,
            with_ways: options.members.is_none(),
        })
    }

    /// The largest retained size of a node.
    pub fn most(&self) -> io::Result<u64> {
        let retained = self.heap.retained()?;
        Ok(self.choice.nodes.iter().map(|node| retained.get(node)).max().unwrap_or(0))
    }

    /// Visits all nodes.
    pub fn nodes(&self, mut visit: impl FnMut(&Node<'_>) -> io::Result<()>) -> io::Result<()> {
        let (memsizes, retained) = (self.heap.memsizes()?, self.heap.retained()?);
        for id in self.choice.nodes.iter() {
            let mut title = self.naming.title(id)?;
            if id < self.heap.len() {
                title.push_str(&format!(" {:#x}", self.heap.addresses().of(id)));
            }
            visit(&Node {
                id,
                title: &title,
                class: &shown(self.naming.class(id)),
                kind: self.naming.kind_name(id),
                size: memsizes.get(id),
                retained: retained.get(id),
            })?;
        }
        for (more, id) in self.choice.more.iter().zip(self.first_more()..) {
            let of = match more.owner.checked_sub(self.heap.len()) {
                None => format!("{:#x}", self.heap.addresses().of(more.owner)),
                Some(_) => self.naming.title(more.owner)?,
            };
            let title = format!("({} more) {of}", more.objects);
            visit(&Node {
                id,
                title: &title,
                class: "",
                kind: "more",
                size: more.size,
                retained: more.size,
            })?;
        }
        Ok(())
    }

    fn first_more(&self) -> u32 {
        self.heap.root() + 1
    }

    /// Visits all edges; the references from one object to another are one edge.
    pub fn edges(&self, mut visit: impl FnMut(&Edge<'_>) -> io::Result<()>) -> io::Result<Counts> {
        let classes = self.heap.group_classes();
        let references = References {
            graph: self.heap.graph(&classes)?,
            choice: &self.choice,
            naming: &self.naming,
            classes: false,
        };
        let mut id = 0;
        let mut count = 0;
        let mut row: Vec<(u32, Cow<'_, str>)> = Vec::new();
        for from in self.choice.nodes.iter() {
            row.clear();
            references.of(from, |target, label| {
                row.push((target, label));
                Ok(())
            })?;
            count += row.len() as u64;
            row.sort_by_key(|&(target, _)| target);
            for same in row.chunk_by(|one, other| one.0 == other.0) {
                visit(&Edge { id, from, to: same[0].0, label: &joined(same), way: false })?;
                id += 1;
            }
        }
        let ways = self
            .choice
            .links
            .iter()
            .filter(|&&(from, _)| self.with_ways && from != self.heap.root());
        for &(from, to) in ways {
            visit(&Edge { id, from, to, label: "(through others)", way: true })?;
            id += 1;
        }
        for (more, to) in self.choice.more.iter().zip(self.first_more()..) {
            visit(&Edge { id, from: more.owner, to, label: "(more)", way: true })?;
            id += 1;
        }
        Ok(Counts { references: count, ..self.choice.counts() })
    }
}

fn joined(same: &[(u32, Cow<'_, str>)]) -> String {
    let labels = same.iter().map(|(_, label)| shown(label)).filter(|label| !label.is_empty());
    let mut text = labels.take(LABELS).collect::<Vec<_>>().join(", ");
    if same.len() > LABELS {
        text.push_str(&format!(" and {} more", same.len() - LABELS));
    }
    text
}
