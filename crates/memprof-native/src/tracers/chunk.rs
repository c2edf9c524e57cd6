//! The size of a block, from the word before it.
//!
//! glibc stores a block's size there. `malloc_usable_size` just reads that word, but calling it for each allocation and each
//! free doubles the tracer's cost. The word's meaning is verified first, and the shortcut is only used for glibc's own
//! allocator.

use std::ffi::c_void;
use std::sync::OnceLock;
use std::sync::atomic::{
    AtomicU64, AtomicUsize,
    Ordering::{Relaxed, Release},
};

const IS_MAPPED: u64 = 2;
const FLAGS: u64 = 7;

/// The address of the `malloc_usable_size` that need not be called; 0 if there is none.
static KNOWN: AtomicUsize = AtomicUsize::new(0);

/// Whether blocks of the allocator with this `malloc_usable_size` can be read.
#[inline(always)]
pub(super) fn is_readable(usable_size: usize) -> bool {
    KNOWN.load(Relaxed) == usable_size
}

/// # Safety
///
/// The block must belong to an allocator for which [`is_readable`] holds, and must not be freed.
#[inline(always)]
pub(super) unsafe fn size(block: *mut c_void) -> u64 {
    // SAFETY: glibc has the word in front of every block. Other threads may set its flags meanwhile.
    let word = unsafe { AtomicU64::from_ptr(block.cast::<u64>().sub(1)) }.load(Relaxed);
    (word & !FLAGS) - if word & IS_MAPPED == 0 { 8 } else { 16 }
}

/// Verifies the word's meaning, once.
pub(super) fn prepare() {
    static ONCE: OnceLock<()> = OnceLock::new();
    ONCE.get_or_init(|| {
        if let Some(address) = glibc_usable_size().filter(|_| is_as_expected()) {
            KNOWN.store(address, Release);
        }
    });
}

/// glibc's own function, if the process uses its allocator.
#[cfg(target_env = "gnu")]
fn glibc_usable_size() -> Option<usize> {
    let object_of = |address: *const c_void| {
        let mut info = std::mem::MaybeUninit::<libc::Dl_info>::zeroed();
        // SAFETY: any address is allowed; the structure is there to be written.
        let found = unsafe { libc::dladdr(address, info.as_mut_ptr()) } != 0;
        // SAFETY: zeroes, or values written by the loader: addresses.
        found.then(|| unsafe { info.assume_init() }.dli_fbase)
    };
    let address = libc::malloc_usable_size as *const c_void;
    let is_glibc = object_of(address)? == object_of(libc::gnu_get_libc_version as *const c_void)?;
    let is_in_use = object_of(address)? == object_of(libc::malloc as *const c_void)?;
    (is_glibc && is_in_use).then_some(address as usize)
}

#[cfg(not(target_env = "gnu"))]
fn glibc_usable_size() -> Option<usize> {
    None
}

/// Compares both ways for blocks of all kinds: from bins, from the top, mapped.
fn is_as_expected() -> bool {
    [1, 24, 25, 40, 100, 1000, 5000, 130_000, 1 << 20, 1 << 25].into_iter().all(|bytes| {
        // SAFETY: the block is read before it is freed, and freed once; its allocator is glibc's.
        unsafe {
            let block = libc::malloc(bytes);
            let is_same = block.is_null() || size(block) == libc::malloc_usable_size(block) as u64;
            libc::free(block);
            is_same
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_allocator_of_this_process() {
        prepare();
        let known = KNOWN.load(Relaxed);
        assert_eq!(
            known != 0,
            glibc_usable_size().is_some(),
            "glibc's blocks are as they were when this was written"
        );
    }
}
