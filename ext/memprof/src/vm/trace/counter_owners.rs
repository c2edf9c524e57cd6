//! Owners of counters: one set per followed thread, and one for the process.

use rb_sys::VALUE;

use crate::vm::ruby_thread::current_thread;

/// The target of a trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Owner {
    /// Every thread.
    Process,
    /// A thread's object. It is alive and doesn't move while the thread runs, as the VM pins it.
    Thread(VALUE),
}

impl Owner {
    /// The process, or the calling thread.
    pub fn new(process: bool) -> Self {
        if process { Owner::Process } else { Owner::Thread(current_thread() as VALUE) }
    }
}

/// Counters of the followed threads and of the process.
pub struct Owners<C> {
    entries: Vec<Entry<C>>,
    /// Distinguishes the counters of this process from those in snapshots taken before a fork.
    pub epoch: u64,
}

struct Entry<C> {
    owner: Owner,
    users: usize,
    counters: C,
}

impl<C: Clone + Default> Owners<C> {
    /// No thread is followed.
    pub const fn new() -> Self {
        Owners { entries: Vec::new(), epoch: 0 }
    }

    /// Whether no thread is followed.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Starts following, and returns the current counters.
    pub fn follow(&mut self, owner: Owner) -> C {
        if let Some(entry) = self.entries.iter_mut().find(|entry| entry.owner == owner) {
            entry.users += 1;
            return entry.counters.clone();
        }
        self.entries.push(Entry { owner, users: 1, counters: C::default() });
        C::default()
    }

    /// Stops following, and returns the current counters.
    pub fn leave(&mut self, owner: Owner) -> Option<C> {
        let index = (self.entries.iter()).position(|entry| entry.owner == owner)?;
        let entry = self.entries.get_mut(index)?;
        entry.users -= 1;
        if entry.users > 0 {
            return Some(entry.counters.clone());
        }
        Some(self.entries.swap_remove(index).counters)
    }

    /// Clears everything: this is another process now.
    pub fn forget(&mut self) {
        self.entries.clear();
        self.epoch += 1;
    }

    /// Counts for the thread and for the process, if they are followed.
    #[inline]
    pub fn count(&mut self, thread: VALUE, mut count: impl FnMut(&mut C)) {
        for entry in &mut self.entries {
            if entry.owner == Owner::Process || entry.owner == Owner::Thread(thread) {
                count(&mut entry.counters);
            }
        }
    }
}
