//! The extension of the memprof gem: allocation hooks in the Ruby VM, and `Memprof::Native`, the private API wrapped by
//! `lib/memprof`.

// `magnus::init` generates the function that Ruby calls, without a comment; nothing else here is public.
#![allow(missing_docs)]

mod binding;
mod os_errors;
mod ruby_values;
#[allow(unsafe_code)]
mod vm;

#[cfg(feature = "shared")]
extern crate memprof_core as _;

use magnus::{Error, Ruby};

#[magnus::init]
fn init(ruby: &Ruby) -> Result<(), Error> {
    binding::init(ruby)
}
