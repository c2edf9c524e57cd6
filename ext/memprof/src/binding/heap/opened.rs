//! A heap, and cached data for queries on single objects.

use std::io;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use memprof_heap::graph::{self, Inbound};
use memprof_heap::{FOLDED, Heap};

/// Number of full scans for single objects' referrers before all references are inverted for good.
const SCANS: u32 = 8;

/// An open heap.
pub struct Opened {
    pub heap: Arc<Heap>,
    inbound: OnceLock<Inbound>,
    scans: AtomicU32,
}

impl Opened {
    pub fn new(heap: Heap) -> Opened {
        Opened { heap: Arc::new(heap), inbound: OnceLock::new(), scans: AtomicU32::new(0) }
    }

    /// Approximate bytes in memory: loaded columns and cached data.
    pub fn memsize(&self) -> usize {
        let inbound = self.inbound.get().map_or(0, |_| 16 * self.heap.len() as usize);
        size_of::<Opened>() + self.heap.memsize() + inbound
    }

    /// Number of objects, without folded ones.
    pub fn size(&self) -> io::Result<usize> {
        let flags = self.heap.flag_words()?.iter();
        Ok(flags.filter(|flags| **flags & FOLDED.0 == 0).count())
    }

    /// Referrers of a node, without duplicates.
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
