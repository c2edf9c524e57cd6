//! Each object's properties, as a row for tables.

use std::io;

use super::naming::Naming;
use memprof_dump::record::Flags;
use memprof_heap::graph::Dominators;
use memprof_heap::{Heap, NONE, Site, Sizes};

/// One object.
#[derive(Clone, Debug)]
pub struct Row<'h> {
    /// Number.
    pub id: u32,
    /// Address.
    pub address: u64,
    /// Type, such as `string`.
    pub kind: &'static str,
    /// Name of the class or a substitute.
    pub class: &'h str,
    /// Memsize.
    pub size: u64,
    /// Retained size: memory freed together with the object.
    pub retained: u64,
    /// The immediate dominator.
    pub dominator: Option<u32>,
    /// Whether a root reaches it.
    pub reachable: bool,
    /// Number of GC runs before it was allocated.
    pub generation: Option<u32>,
    /// Allocation site.
    pub site: Option<Site>,
    /// Boolean properties.
    pub flags: Flags,
    /// Number of elements, or bytes of a text.
    pub length: Option<u32>,
}

/// Creates rows.
pub struct Rows<'h> {
    heap: &'h Heap,
    naming: Naming<'h>,
    memsizes: &'h Sizes,
    retained: &'h Sizes,
    tree: &'h Dominators,
    sites: &'h [u32],
    generations: &'h [u32],
    flags: &'h [u32],
}

impl<'h> Rows<'h> {
    /// Rows of a heap.
    ///
    /// # Errors
    /// If the index cannot be read.
    pub fn new(heap: &'h Heap) -> io::Result<Rows<'h>> {
        Ok(Rows {
            heap,
            naming: Naming::new(heap)?,
            memsizes: heap.memsizes()?,
            retained: heap.retained()?,
            tree: heap.dominators()?,
            sites: heap.site_numbers()?,
            generations: heap.generations()?,
            flags: heap.flag_words()?,
        })
    }

    /// The row of an object.
    pub fn get(&self, id: u32) -> Row<'h> {
        let known =
            |column: &[u32]| column.get(id as usize).copied().filter(|&value| value != NONE);
        let site = known(self.sites).and_then(|site| self.heap.sites().get(site as usize));
        Row {
            id,
            address: self.heap.addresses().of(id),
            kind: self.naming.kind(id).name(),
            class: self.naming.class(id),
            size: self.memsizes.get(id),
            retained: self.retained.get(id),
            dominator: self.tree.parent_of(id).filter(|&node| node < self.heap.len()),
            reachable: self.tree.reaches(id),
            generation: known(self.generations),
            site: site.copied(),
            flags: Flags(known(self.flags).unwrap_or(0) & 0x1ffff),
            length: self.naming.length(id),
        }
    }
}
