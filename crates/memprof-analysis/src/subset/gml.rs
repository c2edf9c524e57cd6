//! Subsets as GML, for Gephi, yEd and networkx.

use std::io::Write;
use std::ops::Deref;

use rustc_hash::FxHashSet;

use super::Subset;
use crate::export::Gml;
use crate::questions::{Error, Words};
use memprof_heap::Heap;

impl<H: Deref<Target = Heap> + Clone> Subset<H> {
    /// Writes the graph as GML: a node for each member, an edge for each member that it references. Annotations become
    /// node attributes. Labels are unique, as networkx identifies nodes by label.
    ///
    /// # Errors
    /// If writing fails; also see [`Subset::all`].
    pub fn to_gml(&self, out: &mut dyn Write) -> Result<(), Error> {
        let words = Words::new(&self.heap)?;
        let sizes = self.heap.memsizes()?;
        let view = self.view()?;
        let mut labels = Labels { heap: &self.heap, taken: FxHashSet::default() };
        let mut gml = Gml::new(out);
        for node in self.iter() {
            let group = self.grouped(node);
            let label = labels.of(node, group.map(|group| &*group.name), words.object(node));
            let class = group.map_or(words.class(node), |group| &group.name);
            let size = group.map_or_else(|| sizes.get(node), |group| group.size);
            gml.node(node);
            gml.text("label", &label);
            gml.text("class", class);
            gml.text("type", words.type_name(node));
            if node < self.heap.len() {
                let address = self.heap.addresses().of(node);
                gml.text("address", &format!("{address:#x}"));
            }
            gml.number("memsize", size);
            for (name, marks) in self.annotations() {
                if let Some(&mark) = marks.get(&node) {
                    gml.number(&key(name), mark);
                }
            }
            gml.end()?;
        }
        let mut targets = Vec::new();
        for node in self.iter() {
            view.distinct(node, &mut targets);
            for &target in targets.iter().filter(|&&target| self.contains(target)) {
                gml.edge(node, target);
                gml.end()?;
            }
        }
        gml.finish()?;
        Ok(())
    }
}

/// Unique labels of nodes.
struct Labels<'h> {
    heap: &'h Heap,
    /// Labels of roots and groups.
    taken: FxHashSet<String>,
}

impl Labels<'_> {
    fn of(&mut self, node: u32, group: Option<&str>, words: String) -> String {
        if node < self.heap.len() {
            return format!("{words} {:#x}", self.heap.addresses().of(node));
        }
        let mut label = group.map_or(words, str::to_owned);
        if !self.taken.insert(label.clone()) {
            label = format!("{label} (node {node})");
        }
        label
    }
}

/// A name as a valid GML key: letters and digits, beginning with a letter.
fn key(name: &str) -> String {
    let clean = name.chars().filter(char::is_ascii_alphanumeric);
    let clean: String = clean.collect();
    if clean.starts_with(|first: char| first.is_ascii_alphabetic()) {
        clean
    } else {
        format!("x{clean}")
    }
}
