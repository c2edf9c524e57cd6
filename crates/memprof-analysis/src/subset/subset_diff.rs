//! Objects of one dump that are missing in another.

use std::ops::Deref;

use super::Subset;
use crate::questions::{Changes, Error};
use memprof_heap::Heap;
use memprof_heap::graph::BitSet;

impl<H: Deref<Target = Heap> + Clone> Subset<H> {
    /// Members of `to` that are not members here. Across two heaps, objects are the same according to [`Changes`], and root
    /// categories if they have the same name.
    ///
    /// # Errors
    /// See [`Subset::all`].
    pub fn diff(&self, to: &Subset<H>) -> Result<Subset<H>, Error> {
        if std::ptr::eq(self.heap(), to.heap()) {
            return Ok(to.difference(self));
        }
        let changes = Changes::between(self.heap(), to.heap())?;
        let before = |node: u32| match to.heap().category(node) {
            Some(category) => self.root_at(&category.name),
            None => changes.origin(node),
        };
        let new = to
            .iter()
            .filter(|&node| !before(node).is_some_and(|node| self.contains(node)));
        let members = BitSet::of(to.members.length(), new);
        Ok(to.with(members))
    }
}
