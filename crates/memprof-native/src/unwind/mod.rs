//! Native stacks of the calling thread, inside a call of the allocator: return addresses, innermost first.
//!
//! Frames have no pointers to each other as compilers build code today; where a frame begins is looked up in the tables
//! that every object has for exceptions (`.eh_frame`), by framehop. Nothing is allocated on the way and no lock is taken: the
//! tables are copied when they are prepared, so that an object may be unloaded meanwhile, and the memory of the
//! stack is only read where it is known to be mapped.

mod eh_frame_hdr;
mod jit_code;
mod loaded_objects;
mod mappings;
mod stack_memory;
pub(crate) mod walker;

use std::ops::Range;

/// What stands for the frame of code that a JIT has written, behind which a stack can't be followed. No code is there.
pub const JIT: usize = 1;

pub use loaded_objects::prepare;
pub(crate) use loaded_objects::refresh;
pub(crate) use mappings::each_mapping;
pub(crate) use walker::Walker;

/// The function that an address lies in; None if no object's tables say.
///
/// These are the pieces that a compiler cut a function into: a rarely used part of it is a function of its own.
#[must_use]
pub fn function(address: usize) -> Option<Range<usize>> {
    loaded_objects::current()?.function(address)
}

/// Return addresses of the calling thread, innermost first, from the first that is not in this library on. For those that
/// learn from them where the functions of an interpreter are. Allocates.
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
