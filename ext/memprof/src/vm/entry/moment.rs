//! Checks whether the heap can be read at the moment chosen by a debugger.

use std::ffi::c_int;
use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};

use magnus::Ruby;

use super::gvl_owner;
use crate::vm::protect::protect;
use crate::vm::symbols::symbols;
use crate::vm::tracker;

/// Set while the VM is up.
static VM_UP: AtomicBool = AtomicBool::new(false);

/// Enables the functions until the VM ends.
pub fn init(ruby: &Ruby) {
    extern "C" fn down(_: *mut rb_sys::ruby_vm_t) {
        VM_UP.store(false, Ordering::Relaxed);
    }
    // SAFETY: called while the extension is loaded; the hook sets a variable.
    unsafe { rb_sys::ruby_vm_at_exit(Some(down)) };
    VM_UP.store(true, Ordering::Relaxed);
    gvl_owner::find(ruby);
}

/// Runs `work`, or prints on stderr why that is impossible, and returns `refused`.
// Inlining would give its caller a debugging entry without types, and a debugger would assume that the function returns
// nothing.
#[inline(never)]
pub fn when_safe<T>(name: &str, refused: T, work: impl FnOnce() -> Result<T, String>) -> T {
    let outcome = catch_unwind(AssertUnwindSafe(|| match obstacle() {
        Some(why) => Err(why.to_owned()),
        // The caller above is a debugger, which does not rescue.
        None => protect(work).unwrap_or_else(|raised| Err(raised.to_string())),
    }));
    let why = match outcome {
        Ok(Ok(value)) => return value,
        Ok(Err(why)) => why,
        Err(_) => "internal error in memprof (please report it)".into(),
    };
    // If stderr is closed, the message is lost.
    let _ = writeln!(io::stderr(), "memprof: {name}: {why}");
    refused
}

/// The reason why the heap cannot be read now.
fn obstacle() -> Option<&'static str> {
    if !VM_UP.load(Ordering::Relaxed) {
        return Some("not now: Ruby is not running");
    }
    let says_no = |question: Option<unsafe extern "C" fn() -> c_int>| {
        // SAFETY: both functions may be called on any thread while the VM is up.
        question.is_some_and(|question| unsafe { question() } == 0)
    };
    if says_no(symbols().native_thread_p) {
        return Some("not now: this thread is not a Ruby thread; choose another one");
    }
    if says_no(symbols().thread_has_gvl_p) || gvl_owner::has_gvl() == Some(false) {
        return Some(
            "not now: this thread waits, or runs C code, without Ruby's lock (GVL); choose another one",
        );
    }
    // SAFETY: the VM is up, and this thread is one of its own.
    if unsafe { rb_sys::rb_during_gc() } != 0 {
        return Some("not now: a garbage collection is running");
    }
    if tracker::with(|_| ()).is_none() {
        return Some("not now: memprof is recording an object");
    }
    None
}
