//! Paths in words.

use super::Words;
use crate::dump::record::Kind;
use crate::heap::{Label, Packed};

/// The classes whose constants everybody can see.
const GLOBAL_SCOPE: &str = "Object";

impl Words<'_> {
    /// A step of a path: an object with the reference that the path takes on from it: `Hash["user:42"]`, `Session@user`.
    pub fn step(&self, from: u32, to: u32) -> String {
        let holder = self.short(from);
        let kind = self
            .edge(from, to)
            .and_then(|edge| self.labels.get(edge))
            .map(|&label| Packed(label).label());
        let Some(label) = self.label(from, to) else {
            return holder;
        };
        match kind {
            // The singleton class and the copies of a module have its constants, too.
            Some(Label::Constant(_)) if holder == GLOBAL_SCOPE || holder.starts_with('#') => label,
            Some(Label::Constant(_)) => format!("{holder}::{label}"),
            Some(Label::Global(_)) => label,
            Some(
                Label::Ivar(_)
                | Label::ClassVariable(_)
                | Label::Index(_)
                | Label::Entry
                | Label::Under(_)
                | Label::Member(_)
                | Label::Method(_),
            ) => format!("{holder}{label}"),
            _ => format!("{holder}({label})"),
        }
    }

    /// Whether everybody knows an object by its name: a class, a module.
    fn is_known(&self, node: u32) -> bool {
        let is_class = self
            .group(node)
            .is_some_and(|group| matches!(group.kind, Kind::CLASS | Kind::MODULE));
        is_class
            && self
                .heap
                .class_object(node)
                .is_some_and(|facts| facts.name.is_some())
    }

    /// Where a path begins for a person: at the last class or module that it leads through, or at a global variable, as
    /// these need no explanation.
    fn beginning(&self, nodes: &[u32]) -> usize {
        let before = &nodes[..nodes.len().saturating_sub(1)];
        before
            .iter()
            .rposition(|&node| self.is_known(node))
            .unwrap_or(0)
    }

    /// A path in words, from where everybody knows it.
    pub fn path(&self, nodes: &[u32]) -> String {
        let nodes = &nodes[self.beginning(nodes)..];
        let mut steps: Vec<String> = Vec::with_capacity(nodes.len());
        for pair in nodes.windows(2) {
            // The super root says nothing.
            if self.heap.root() != pair[0] {
                steps.push(self.step(pair[0], pair[1]));
            }
        }
        steps.extend(nodes.last().map(|&last| self.object(last)));
        steps.join(" -> ")
    }
}
