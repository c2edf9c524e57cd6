//! Zeroed memory straight from the system: inside an allocator call, memory can't come from the allocator.

use std::ptr;

/// Room for this many elements, all bytes zero; null if out of memory.
pub(super) fn map<T>(count: usize) -> *mut T {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    let Some(size) = count.checked_mul(size_of::<T>()).filter(|&size| size > 0) else {
        return ptr::null_mut();
    };
    // SAFETY: maps new pages at any free address; no memory in use is touched.
    let pages = unsafe { libc::mmap(ptr::null_mut(), size, access, flags, -1, 0) };
    if pages == libc::MAP_FAILED {
        return ptr::null_mut();
    }
    pages.cast()
}

/// Releases what [`map`] returned for the same count.
///
/// # Safety
///
/// No reference to it may remain.
pub(super) unsafe fn unmap<T>(place: *mut T, count: usize) {
    if !place.is_null() {
        // SAFETY: the caller's promise.
        unsafe { libc::munmap(place.cast(), count * size_of::<T>()) };
    }
}
