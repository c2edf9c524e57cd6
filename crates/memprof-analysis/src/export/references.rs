//! The references of a file, with their labels.

use std::borrow::Cow;
use std::io;

use super::choice::Choice;
use super::naming::Naming;
use memprof_heap::NONE;
use memprof_heap::graph::Graph;

/// References between chosen nodes.
pub(super) struct References<'r, 'h> {
    pub graph: Graph<'r>,
    pub choice: &'r Choice,
    pub naming: &'r Naming<'h>,
    /// Includes the reference of each object to its class.
    pub classes: bool,
}

impl<'h> References<'_, 'h> {
    /// Visits each reference of a node: target and label. Stops at the first error.
    pub fn of(
        &self,
        node: u32,
        mut visit: impl FnMut(u32, Cow<'h, str>) -> io::Result<()>,
    ) -> io::Result<()> {
        let nodes = &self.choice.nodes;
        let start = self.graph.offsets.get(node as usize).map_or(0, |&start| start as usize);
        let mut before = NONE;
        for (&target, edge) in self.graph.row(node).iter().zip(start..) {
            if nodes.contains(target) {
                let key = (before != NONE).then_some(before);
                visit(target, self.naming.label_text(edge, key)?)?;
            }
            before = target;
        }
        match self.graph.extra_of(node) {
            Some((_, class)) if self.classes && nodes.contains(class) => {
                visit(class, Cow::Borrowed("class"))
            }
            _ => Ok(()),
        }
    }
}
