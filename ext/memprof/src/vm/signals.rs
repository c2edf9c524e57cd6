//! Owner of a signal's handler. `Signal.trap` is useless here: for a handler of C code it returns nil, after replacing it.

use std::ffi::{c_int, c_void};
use std::io;
use std::mem::MaybeUninit;
use std::ptr;

/// The disposition of a signal.
#[derive(Debug, PartialEq, Eq)]
pub enum Disposition {
    Default,
    Ignored,
    /// Ruby's own handler: a trap of the program, or Ruby's default.
    Ruby,
    /// A handler installed by C code with sigaction(2).
    Other,
}

/// The disposition of a signal, which is left unchanged.
pub fn disposition(signal: c_int) -> io::Result<Disposition> {
    let mut current = MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: installs nothing; if it succeeds, it has filled in `current`.
    let handler = unsafe {
        if libc::sigaction(signal, ptr::null(), current.as_mut_ptr()) != 0 {
            return Err(io::Error::last_os_error());
        }
        current.assume_init().sa_sigaction
    };
    Ok(match handler {
        libc::SIG_DFL => Disposition::Default,
        libc::SIG_IGN => Disposition::Ignored,
        _ if is_of_ruby(handler) => Disposition::Ruby,
        _ => Disposition::Other,
    })
}

/// Whether a function is in the same file as Ruby's signal.c, whose handler has no public name.
fn is_of_ruby(handler: usize) -> bool {
    let anchor = rb_sys::rb_f_kill as *const c_void;
    let base = base(handler as *const c_void);
    base.is_some() && base == self::base(anchor)
}

/// Base address of the file that contains an address.
fn base(address: *const c_void) -> Option<*mut c_void> {
    let mut found = MaybeUninit::<libc::Dl_info>::uninit();
    // SAFETY: dladdr takes any address; it has filled in `found` if it does not return 0.
    unsafe {
        (libc::dladdr(address, found.as_mut_ptr()) != 0).then(|| found.assume_init().dli_fbase)
    }
}
