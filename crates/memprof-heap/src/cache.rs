//! Caches values that other crates compute from a heap.

use std::any::{Any, TypeId};
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use rustc_hash::FxHashMap;

use super::Heap;
use super::once::Once;

/// One value of each type.
#[derive(Default)]
pub(super) struct Cache {
    entries: Mutex<FxHashMap<TypeId, Arc<Once<Entry>>>>,
}

struct Entry {
    value: Arc<dyn Any + Send + Sync>,
    bytes: usize,
}

impl Cache {
    /// Bytes in memory.
    pub fn memsize(&self) -> usize {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.values().filter_map(|entry| Some(entry.get()?.bytes)).sum()
    }

    fn entry(&self, of: TypeId) -> Arc<Once<Entry>> {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(entries.entry(of).or_default())
    }
}

impl Heap {
    /// The value of this type that `compute` returned on the first call, with its size in bytes. The heap caches it for its
    /// lifetime.
    ///
    /// # Errors
    /// Any error of `compute`; the next call tries again.
    pub fn cached<T: Any + Send + Sync>(
        &self,
        compute: impl FnOnce() -> io::Result<(T, usize)>,
    ) -> io::Result<Arc<T>> {
        let entry = self.cache.entry(TypeId::of::<T>());
        let entry = entry.get_or(|| {
            let (value, bytes) = compute()?;
            let value: Arc<dyn Any + Send + Sync> = Arc::new(value);
            io::Result::Ok(Entry { value, bytes })
        })?;
        let value = Arc::clone(&entry.value).downcast();
        value.map_err(|_| io::Error::other("the cache has another type under this one"))
    }
}
