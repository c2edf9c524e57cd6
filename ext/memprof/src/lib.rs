//! The extension of the memprof gem: allocation hooks into the Ruby VM, and `Memprof::Native`, the private API that
//! `lib/memprof` wraps.

// The function that Ruby calls is written by `magnus::init`, without a comment; nothing else here is public.
#![allow(missing_docs)]

mod binding;
mod os_errors;
mod ruby_values;
#[allow(unsafe_code)]
mod vm;

use magnus::{Error, Ruby};

#[magnus::init]
fn init(ruby: &Ruby) -> Result<(), Error> {
    binding::init(ruby)
}
