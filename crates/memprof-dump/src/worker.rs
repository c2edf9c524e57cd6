//! Who compresses and writes what a dump consists of.

use std::thread::Builder;

/// Who compresses and writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Worker {
    /// A second thread; without one (limits of the process, no memory) the thread that makes the dump.
    Thread,
    /// The same in a forked child.
    ThreadOfChild,
    /// The thread that makes the dump: under a debugger it may be the only one that runs.
    Inline,
}

/// Compressors keep what is large on the heap. Room for more would count as address space of the process.
const STACK: usize = 512 << 10;

/// In a forked child glibc would hand out the stack of a thread that the child does not have, and Ruby keeps a thread's
/// frames on it, which the walk still reads. None of those stacks is as large as this.
const STACK_OF_CHILD: usize = 64 << 20;

impl Worker {
    /// What makes the thread; `None` if there is to be none.
    pub(super) fn builder(self) -> Option<Builder> {
        let size = match self {
            Worker::Thread => STACK,
            Worker::ThreadOfChild => STACK_OF_CHILD,
            Worker::Inline => return None,
        };
        let builder = Builder::new().name("memprof-dump".to_owned());
        Some(builder.stack_size(size))
    }
}
