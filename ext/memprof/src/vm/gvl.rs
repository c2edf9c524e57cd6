//! Work that needs no Ruby, done while other threads of Ruby run.

use std::any::Any;
use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

struct Call<W, T> {
    work: Option<W>,
    /// Ruby wants the thread back: somebody kills it, or the program is interrupted.
    cancelled: Arc<AtomicBool>,
    outcome: Option<Result<T, Box<dyn Any + Send>>>,
}

/// Calls `work` without the GVL. `work` may touch no Ruby object, and should end soon when its argument becomes true.
/// `None` if the thread is interrupted already; the caller handles interrupts afterwards.
pub fn without<W: FnOnce(Arc<AtomicBool>) -> T + Send, T: Send>(work: W) -> Option<T> {
    let mut call = Call {
        work: Some(work),
        cancelled: Arc::default(),
        outcome: None,
    };
    let data: *mut c_void = (&raw mut call).cast();
    // SAFETY: called with the GVL. `call` outlives the call; `cancel` touches only its flag, which is atomic. Unlike
    // rb_thread_call_without_gvl, this function raises nothing, which would jump over the frames of Rust.
    unsafe {
        rb_sys::rb_thread_call_without_gvl2(Some(run::<W, T>), data, Some(cancel::<W, T>), data)
    };
    match call.outcome? {
        Ok(value) => Some(value),
        Err(panic) => resume_unwind(panic),
    }
}

unsafe extern "C" fn run<W: FnOnce(Arc<AtomicBool>) -> T, T>(call: *mut c_void) -> *mut c_void {
    let call = call.cast::<Call<W, T>>();
    // SAFETY: `without` passed the call, and waits for this. No other reference to these fields exists.
    let (work, outcome) = unsafe { (&mut (*call).work, &mut (*call).outcome) };
    // SAFETY: as above; `cancel` only reads this field, too.
    let cancelled = Arc::clone(unsafe { &(*call).cancelled });
    if let Some(work) = work.take() {
        *outcome = Some(catch_unwind(AssertUnwindSafe(|| work(cancelled))));
    }
    std::ptr::null_mut()
}

unsafe extern "C" fn cancel<W, T>(call: *mut c_void) {
    let call = call.cast::<Call<W, T>>();
    // SAFETY: called only while `without` waits.
    let cancelled = unsafe { &(*call).cancelled };
    cancelled.store(true, Ordering::Relaxed);
}
