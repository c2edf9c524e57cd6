//! A heap, and what was computed of it for single objects.

use std::io;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use memprof_heap::graph::{self, Inbound};
use memprof_heap::{FOLDED, Heap};

/// Times that all references are looked through for one object's referrers, before they are turned round for good.
const SCANS: u32 = 8;

/// A heap that is open.
pub struct Opened {
    pub heap: Arc<Heap>,
    inbound: OnceLock<Inbound>,
    scans: AtomicU32,
}

impl Opened {
    pub fn new(heap: Heap) -> Opened {
        Opened {
            heap: Arc::new(heap),
            inbound: OnceLock::new(),
            scans: AtomicU32::new(0),
        }
    }

    /// Bytes, about: what is in memory of the columns, and what was computed.
    pub fn memsize(&self) -> usize {
        let inbound = self
            .inbound
            .get()
            .map_or(0, |_| 16 * self.heap.len() as usize);
        size_of::<Opened>() + self.heap.memsize() + inbound
    }

    /// How many objects count.
    pub fn size(&self) -> io::Result<usize> {
        let flags = self.heap.flag_words()?.iter();
        Ok(flags.filter(|flags| **flags & FOLDED.0 == 0).count())
    }

    /// What refers to a node, each once.
    pub fn referrers(&self, node: u32) -> io::Result<Vec<u32>> {
        let classes = self.heap.group_classes();
        let graph = self.heap.graph(&classes)?;
        if self.inbound.get().is_none() && self.scans.fetch_add(1, Ordering::Relaxed) < SCANS {
            return Ok(graph::referrers_of(&graph, node));
        }
        let inbound = match self.inbound.get() {
            Some(inbound) => inbound,
            None => {
                let inbound = Inbound::of(&graph);
                self.inbound.get_or_init(|| inbound)
            }
        };
        let mut referrers: Vec<u32> = inbound.edges(node).collect();
        referrers.sort_unstable();
        referrers.dedup();
        Ok(referrers)
    }
}
