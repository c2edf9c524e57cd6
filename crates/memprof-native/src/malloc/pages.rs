//! Zeroed memory straight from the system: what is needed inside an allocator's call can't come from the allocator.

use std::ptr;

/// Room for that many elements, all bytes zero; null if the system has none.
pub(super) fn map<T>(count: usize) -> *mut T {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    let Some(size) = count.checked_mul(size_of::<T>()).filter(|&size| size > 0) else {
        return ptr::null_mut();
    };
    // SAFETY: asks for new pages wherever there is room; no memory in use is touched.
    let pages = unsafe { libc::mmap(ptr::null_mut(), size, access, flags, -1, 0) };
    if pages == libc::MAP_FAILED {
        return ptr::null_mut();
    }
    pages.cast()
}

/// Gives back what [`map`] returned for the same count.
///
/// # Safety
///
/// Nothing refers to it any more.
pub(super) unsafe fn unmap<T>(place: *mut T, count: usize) {
    if !place.is_null() {
        // SAFETY: the caller's.
        unsafe { libc::munmap(place.cast(), count * size_of::<T>()) };
    }
}
