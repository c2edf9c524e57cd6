//! The running Ruby thread.

/// The Ruby thread, not the native one: with M:N scheduling a thread may change its native thread.
pub fn current_thread() -> u64 {
    // SAFETY: returns the object of the running thread; called with the GVL or under the VM lock.
    unsafe { rb_sys::rb_thread_current() as u64 }
}
