//! The memory used by a heap.

use super::Heap;
use super::Site;
use super::capturing_thread::CapturingThread;
use memprof_dump::record::Shape;

impl Heap {
    /// Approximate bytes: the columns read so far, and the tables.
    pub fn memsize(&self) -> usize {
        let columns = &self.columns;
        let numbers = [
            &columns.group,
            &columns.flags,
            &columns.length,
            &columns.shape,
            &columns.site,
            &columns.generation,
            &columns.text,
            &columns.offsets,
            &columns.targets,
            &columns.labels,
            &self.derived.steps,
        ];
        let numbers: usize = numbers.iter().map(|column| column.memsize()).sum();
        let sizes = columns.memsize.memsize()
            + self.derived.retained.memsize()
            + self.derived.dominators.memsize()
            + (self.derived.labels.get()).map_or(0, |labels| size_of_val(labels.as_slice()))
            + self.cache.memsize()
            + self.capturing_thread.as_ref().map_or(0, CapturingThread::memsize);
        let tables = self.addresses.starts.len() * 12 + self.addresses.places.len() * 2;
        let tables =
            tables + self.sites.len() * size_of::<Site>() + self.shapes.len() * size_of::<Shape>();
        size_of::<Heap>() + numbers + sizes + tables + self.names.len() * 48
    }
}
