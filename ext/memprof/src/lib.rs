//! The extension of the memprof gem: allocation hooks into the Ruby VM, and `Memprof::Native`, the private API that
//! `lib/memprof` wraps.

mod binding;
mod convert;
#[allow(unsafe_code)]
mod vm;

use magnus::{Error, Ruby};

#[allow(
    missing_docs,
    reason = "the attribute writes the function that Ruby calls"
)]
#[magnus::init]
fn init(ruby: &Ruby) -> Result<(), Error> {
    binding::init(ruby)
}
