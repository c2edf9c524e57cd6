//! Paths in words.

use super::{ARROW, Words};
use crate::questions::Phrase;
use crate::questions::path::{ENDS, omitted};
use memprof_dump::record::Kind;
use memprof_heap::{Label, Packed};

/// The class whose constants are visible everywhere.
const GLOBAL_SCOPE: &str = "Object";

impl Words<'_> {
    /// A step of a path, an object with its reference to the next one: `Hash["user:42"]`, `Session@user`.
    pub fn step(&self, from: u32, to: u32) -> Phrase {
        let holder = self.holding(from);
        let kind = self
            .edge(from, to)
            .and_then(|edge| self.labels.get(edge))
            .map(|&label| Packed(label).label());
        let Some(label) = self.label(from, to) else {
            return holder;
        };
        match kind {
            // The singleton class and the copies of a module have its constants, too.
            Some(Label::Constant(_)) if self.is_global_scope(from) => label.into(),
            Some(Label::Constant(_)) => holder.text("::").text(label),
            Some(Label::Global(_)) => label.into(),
            Some(
                Label::Ivar(_)
                | Label::ClassVariable(_)
                | Label::Index(_)
                | Label::Entry
                | Label::Under(_)
                | Label::Member(_)
                | Label::Method(_),
            ) => holder.text(label),
            _ => holder.text(format!("({label})")),
        }
    }

    /// The referrer in a step. Blocks are identified by their line.
    fn holding(&self, node: u32) -> Phrase {
        let name = self.short(node);
        let is_proc = self.internal_name(node) == Some("proc");
        match self.source(node).filter(|_| is_proc) {
            Some((file, line)) => Phrase::from(name).text(" ").place(&file, line),
            None => name.into(),
        }
    }

    fn is_global_scope(&self, node: u32) -> bool {
        let name = self.short(node);
        name == GLOBAL_SCOPE || name.starts_with('#')
    }

    /// Whether an object is well known by its name: a class or module.
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

    /// Where a path begins for people: at the last class or module on it, or at a global variable, as these need no
    /// explanation.
    fn beginning(&self, nodes: &[u32]) -> usize {
        let before = &nodes[..nodes.len().saturating_sub(1)];
        before
            .iter()
            .rposition(|&node| self.is_known(node))
            .unwrap_or(0)
    }

    /// A path in words, from its last well-known step on.
    pub fn path(&self, nodes: &[u32]) -> Phrase {
        let holder = self.holder(nodes);
        let Some(&last) = nodes.last() else {
            return holder;
        };
        let arrow = if holder.is_empty() { "" } else { ARROW };
        holder.text(arrow).phrase(self.object_phrase(last))
    }

    /// The same without the object at its end.
    pub fn holder(&self, nodes: &[u32]) -> Phrase {
        let nodes = &nodes[self.beginning(nodes)..];
        // The super root is not worth mentioning.
        let nodes = match nodes.split_first() {
            Some((&first, rest)) if first == self.heap.root() => rest,
            _ => nodes,
        };
        let omitted = omitted(nodes);
        let (start, end) = match omitted {
            0 => (nodes, &[][..]),
            _ => (&nodes[..=ENDS], &nodes[nodes.len() - ENDS..]),
        };
        let mut steps = Steps::default();
        for pair in start.windows(2) {
            steps.add(self.step(pair[0], pair[1]));
        }
        steps.omit(omitted);
        for pair in end.windows(2) {
            steps.add(self.step(pair[0], pair[1]));
        }
        steps.finish()
    }
}

/// If more equal steps than this follow each other, as in a linked list, only the first is shown.
const RUN: usize = 4;

/// Steps of a path, with runs of equal ones folded.
#[derive(Default)]
struct Steps {
    shown: Vec<Phrase>,
    last: Phrase,
    /// Number of trailing steps that equal the last one, including omitted ones in between.
    run: usize,
    /// Whether some of them were omitted.
    is_cut: bool,
    /// Number of steps omitted after the last one.
    omitted: usize,
}

impl Steps {
    fn add(&mut self, step: Phrase) {
        if self.run > 0 && self.last == step {
            self.is_cut |= self.omitted > 0;
            self.run += 1 + std::mem::take(&mut self.omitted);
            return;
        }
        self.end_run();
        self.last = step;
        self.run = 1;
    }

    fn omit(&mut self, steps: usize) {
        self.omitted = steps;
    }

    fn end_run(&mut self) {
        let run = std::mem::take(&mut self.run);
        let is_cut = std::mem::take(&mut self.is_cut);
        let last = std::mem::take(&mut self.last);
        if run <= RUN && !is_cut {
            self.shown.extend(std::iter::repeat_n(last, run));
        } else {
            let more = Phrase::default().text(format!("… {} more ", run - 1));
            let more = if is_cut {
                more
            } else {
                more.phrase(last.clone()).text(" ")
            };
            self.shown.extend([last, more.text("…")]);
        }
        match std::mem::take(&mut self.omitted) {
            0 => {}
            omitted => self.shown.push(format!("… {omitted} more …").into()),
        }
    }

    fn finish(mut self) -> Phrase {
        self.end_run();
        Phrase::default().steps(self.shown)
    }
}
