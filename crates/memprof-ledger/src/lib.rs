//! Where the memory of a process goes.
//!
//! [`Facts`] are measurements: mappings by kind, malloc's own statistics, the pages of Ruby's heap, the limit of the cgroup.
//! Dumps store them. A [`Ledger`] divides the RSS among them and the results of the heap walk, so that its items add up to the
//! RSS; a [`Growth`] compares two ledgers. A [`Cluster`] is a process with its workers.

mod cgroup;
mod cluster;
mod facts;
mod growth;
mod items;
mod malloc_info;
mod mapping_kinds;
mod pagemap;
mod process_stat;
mod sharing;
mod smaps;

pub use cgroup::Cgroup;
pub use cluster::{Cluster, Member, Others, cluster, master_of};
pub use facts::{Facts, HeapPages, RubyHeap, measure};
pub use growth::{Growth, ItemGrowth};
pub use items::{Accuracy, HeapSizes, Item, Ledger};
pub use malloc_info::{Allocator, Arena, parse as parse_malloc_info};
pub use mapping_kinds::Kinds;
pub use pagemap::merged;
pub use sharing::{Sharing, UnsharedPages, compare, forked_from};
