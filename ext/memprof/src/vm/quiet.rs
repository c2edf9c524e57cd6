//! Threads on which memprof itself allocates: their allocations are not recorded meanwhile.
//!
//! By Ruby thread: with Ruby's own scheduler (`RUBY_MN_THREADS`) a native thread serves many of them, and while one waits,
//! another runs on it.

/// Quiet Ruby threads and their nesting depth. There are few at a time, mostly one.
#[derive(Default)]
pub struct Quiet {
    threads: Vec<(u64, u32)>,
}

impl Quiet {
    /// Increments the thread's depth.
    pub fn enter(&mut self, thread: u64) {
        match self.position(thread) {
            Some(at) => self.threads[at].1 += 1,
            None => self.threads.push((thread, 1)),
        }
    }

    /// Decrements the thread's depth.
    pub fn leave(&mut self, thread: u64) {
        if let Some(at) = self.position(thread) {
            self.threads[at].1 -= 1;
            if self.threads[at].1 == 0 {
                self.threads.swap_remove(at);
            }
        }
    }

    /// Whether the thread is quiet.
    #[inline]
    pub fn contains(&self, thread: u64) -> bool {
        self.position(thread).is_some()
    }

    /// Depth of the thread; 0 if it is not quiet.
    pub fn depth(&self, thread: u64) -> usize {
        let at = self.position(thread);
        at.map_or(0, |at| self.threads[at].1 as usize)
    }

    /// Whether no thread is quiet.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.threads.is_empty()
    }

    /// The object at this address was freed or replaced: a thread that ended while quiet (in a fiber that was never resumed, or
    /// in the parent of a fork) is not the next one at its address.
    #[inline]
    pub fn forget(&mut self, object: u64) {
        if !self.threads.is_empty() {
            self.threads.retain(|(thread, _)| *thread != object);
        }
    }

    /// Keeps one thread: the others belong to the parent process.
    pub fn keep_only(&mut self, thread: u64) {
        self.threads.retain(|(other, _)| *other == thread);
    }

    /// Objects were moved.
    pub fn relocate(&mut self, moved: impl Fn(u64) -> Option<u64>) {
        self.threads
            .retain_mut(|(thread, _)| moved(*thread).map(|address| *thread = address).is_some());
    }

    fn position(&self, thread: u64) -> Option<usize> {
        self.threads.iter().position(|(other, _)| *other == thread)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_thread_has_its_own_depth() {
        let mut quiet = Quiet::default();
        for thread in [1, 1, 2] {
            quiet.enter(thread);
        }
        quiet.leave(1);
        quiet.leave(2);
        assert!(quiet.contains(1) && !quiet.contains(2));
        quiet.leave(1);
        quiet.leave(1);
        assert!(quiet.is_empty());
    }

    #[test]
    fn a_thread_that_is_gone_leaves_nothing_to_the_next_at_its_address() {
        let mut quiet = Quiet::default();
        for thread in 1..=4 {
            quiet.enter(thread);
        }
        quiet.forget(1);
        quiet.relocate(|thread| (thread != 2).then_some(thread + 10));
        assert!(quiet.contains(13) && quiet.contains(14) && !quiet.contains(2));
        quiet.keep_only(14);
        assert_eq!(quiet.threads, [(14, 1)]);
    }
}
