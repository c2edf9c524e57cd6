//! Runs work that doesn't need Ruby while other Ruby threads run.

use std::any::Any;
use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

struct Call<W, T> {
    work: Option<W>,
    outcome: Option<Result<T, Box<dyn Any + Send>>>,
}

/// Calls `work` without the GVL. `work` must not touch Ruby objects and cannot be interrupted, so it should be short. `None` if
/// the thread is already interrupted, by a signal or by the timer that switches threads: the caller handles interrupts, and
/// tries again.
pub fn without<W: FnOnce() -> T + Send, T: Send>(work: W) -> Option<T> {
    let mut call = Call { work: Some(work), outcome: None };
    let data: *mut c_void = (&raw mut call).cast();
    // Fail: unlike rb_thread_call_without_gvl it doesn't raise, which would jump over Rust frames.
    let flags = rb_sys::RB_NOGVL_INTR_FAIL;
    // SAFETY: called with the GVL. `call` outlives the call.
    unsafe { rb_sys::rb_nogvl(Some(run::<W, T>), data, None, std::ptr::null_mut(), flags as _) };
    match call.outcome? {
        Ok(value) => Some(value),
        Err(panic) => resume_unwind(panic),
    }
}

unsafe extern "C" fn run<W: FnOnce() -> T, T>(call: *mut c_void) -> *mut c_void {
    // SAFETY: `without` passed the call, and waits for this. Nothing else refers to it meanwhile.
    let call = unsafe { &mut *call.cast::<Call<W, T>>() };
    if let Some(work) = call.work.take() {
        call.outcome = Some(catch_unwind(AssertUnwindSafe(work)));
    }
    std::ptr::null_mut()
}
