//! The thread that compresses and writes a dump.

use std::thread::Builder;

/// The thread that compresses and writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Worker {
    /// A second thread; if it cannot be started (process limits, no memory), the dumping thread.
    Thread,
    /// A second thread in a forked child.
    ThreadOfChild,
    /// The dumping thread: under a debugger it may be the only one that runs.
    Inline,
}

/// Compressors keep large data on the heap. A larger stack would count as address space of the process.
const STACK: usize = 512 << 10;

/// In a forked child glibc would reuse the stack of a thread that the child does not have, on which Ruby keeps the thread's
/// frames, which the walk still reads. None of those stacks is as large as this.
const STACK_OF_CHILD: usize = 64 << 20;

impl Worker {
    /// The builder of the thread; `None` if there is to be none.
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
