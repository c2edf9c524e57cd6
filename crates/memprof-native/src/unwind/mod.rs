//! Native stacks of the calling thread, inside an allocator call: return addresses, innermost first.
//!
//! Compilers no longer link frames by pointers; framehop finds the start of each frame in the tables that every object has
//! for exceptions (`.eh_frame`). It allocates nothing and takes no lock: the tables are copied in advance, so an object may
//! be unloaded meanwhile, and stack memory is only read where it is known to be mapped.

mod eh_frame_hdr;
mod jit_code;
mod loaded_objects;
mod mappings;
mod stack_memory;
pub(crate) mod walker;

use std::ops::Range;

/// Stands for a frame of JIT code, beyond which a stack can't be followed. No code has this address.
pub const JIT: usize = 1;

pub use loaded_objects::prepare;
pub(crate) use loaded_objects::refresh;
pub(crate) use mappings::each_mapping;
pub(crate) use walker::Walker;

/// The function at an address; None if no object's tables cover it.
///
/// Functions here are the pieces that a compiler split them into: a rarely used part is a function of its own.
#[must_use]
pub fn function(address: usize) -> Option<Range<usize>> {
    loaded_objects::current()?.function(address)
}

/// Return addresses of the calling thread, innermost first, starting at the first one outside of this library. Used to find
/// the functions of an interpreter. Allocates.
#[must_use]
pub fn stack() -> Vec<usize> {
    let mut walker = Box::<Walker>::default();
    let mut addresses = vec![0; 512];
    let count = walker.walk(&mut addresses, None);
    addresses.truncate(count);
    let own =
        loaded_objects::current().and_then(|objects| objects.code_of(stack as *const () as usize));
    let is_own = |address: &usize| own.as_ref().is_some_and(|own| own.contains(address));
    addresses.into_iter().skip_while(is_own).collect()
}
