//! The execution context of the calling thread, with its frames. The VM has it in a thread-local variable of libruby.
//!
//! Its offset from the thread pointer is the same in all threads if libruby was loaded at program start, which is verified. Up
//! to Ruby 3.2 the variable has a name, `ruby_current_ec`. From 3.3 on it is found by its value: a word that also occurs in the
//! struct of the running thread and points to a stack with frames.

use std::sync::atomic::{AtomicIsize, Ordering};

use super::control_frames::{self, Context};
use super::layouts;
use super::ruby_thread::current_thread;

/// The offset from the thread pointer, or 0 if unknown.
static OFFSET: AtomicIsize = AtomicIsize::new(0);

/// Finds the variable. With the GVL.
pub fn prepare() {
    let known = || layouts::check().ok();
    let found = named().or_else(|| known().and_then(|()| by_contents()));
    OFFSET.store(found.unwrap_or(0), Ordering::Relaxed);
}

/// The context; null if the thread has none, or the variable was not found.
#[inline(always)]
pub fn get() -> *const Context {
    match OFFSET.load(Ordering::Relaxed) {
        0 => std::ptr::null(),
        offset => {
            let place = thread_pointer().wrapping_add_signed(offset);
            // SAFETY: the thread's own variable (`prepare`).
            unsafe { *(place as *const *const Context) }
        }
    }
}

/// Whether the variable was found.
pub fn is_known() -> bool {
    OFFSET.load(Ordering::Relaxed) != 0
}

/// The variable by name, if it has the same offset on another thread.
fn named() -> Option<isize> {
    fn offset() -> Option<isize> {
        // SAFETY: looks up a name; of a thread-local variable it is the calling thread's.
        let place = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"ruby_current_ec".as_ptr()) };
        (!place.is_null()).then(|| (place as isize).wrapping_sub(thread_pointer() as isize))
    }
    offset().filter(|&here| on_another_thread(offset) == Some(here))
}

/// The word of libruby's thread-local storage that also occurs in the struct of this thread, and has frames. Only on a Ruby
/// with known layouts.
fn by_contents() -> Option<isize> {
    let (start, words) = storage()?;
    let offset = (start as isize).wrapping_sub(thread_pointer() as isize);
    if on_another_thread(|| storage().map(|(start, _)| start.wrapping_sub(thread_pointer())))
        != Some(offset as usize)
    {
        return None;
    }
    // SAFETY: a Thread holds a struct of more words than these in all versions (vm_core.h).
    let thread = unsafe { std::slice::from_raw_parts(thread_struct()?, WORDS_OF_THREAD) };
    // SAFETY: the calling thread's own storage, which is this large.
    let storage = unsafe { std::slice::from_raw_parts(start as *const usize, words) };
    let found = storage.iter().position(|word| {
        // SAFETY: words of the struct that are no small numbers are addresses of what the thread has; a context is larger
        // than what is looked at, and so is all else that may be there.
        thread.contains(word) && unsafe { control_frames::is_context(*word as *const Context) }
    })?;
    Some(offset + (found * size_of::<usize>()) as isize)
}

/// Words of struct rb_thread_struct to search: the context is among the first.
const WORDS_OF_THREAD: usize = 16;

/// The struct of the running thread.
fn thread_struct() -> Option<*const usize> {
    /// Word of struct RTypedData with the address of the data, in all versions.
    const DATA: usize = 4;
    let thread = current_thread() as *const *const usize;
    // SAFETY: a Thread is an object with typed data that is not embedded, in all versions.
    let data = unsafe { *thread.add(DATA) };
    (!data.is_null()).then_some(data)
}

/// Also None if there is no memory for another thread.
fn on_another_thread<T: Send + 'static>(look: fn() -> Option<T>) -> Option<T> {
    let thread = std::thread::Builder::new().spawn(look).ok()?;
    thread.join().ok().flatten()
}

/// The calling thread's storage for the object that defines the VM: address and number of words. None if it does not exist yet:
/// then it is allocated per thread on first use.
#[cfg(target_os = "linux")]
fn storage() -> Option<(usize, usize)> {
    struct Search {
        code: usize,
        found: Option<(usize, usize)>,
    }
    unsafe extern "C" fn look(
        info: *mut libc::dl_phdr_info,
        _: usize,
        search: *mut libc::c_void,
    ) -> libc::c_int {
        // SAFETY: the loader's description of an object, and what was passed below.
        let (info, search) = unsafe { (&*info, &mut *search.cast::<Search>()) };
        // SAFETY: the object's program headers.
        let headers =
            unsafe { std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) };
        let is_here = headers.iter().any(|header| {
            let start = (info.dlpi_addr + header.p_vaddr) as usize;
            header.p_type == libc::PT_LOAD
                && (start..start + header.p_memsz as usize).contains(&search.code)
        });
        if !is_here {
            return 0;
        }
        let storage = headers.iter().find(|header| header.p_type == libc::PT_TLS);
        search.found = storage
            .filter(|_| !info.dlpi_tls_data.is_null())
            .map(|header| (info.dlpi_tls_data as usize, header.p_memsz as usize / 8));
        1
    }
    let mut search = Search { code: rb_sys::rb_gc_count as *const () as usize, found: None };
    // SAFETY: a callback of that type, and its argument, which outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(look), std::ptr::from_mut(&mut search).cast()) };
    search.found.filter(|(start, _)| start % 8 == 0)
}

#[cfg(not(target_os = "linux"))]
fn storage() -> Option<(usize, usize)> {
    None
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn thread_pointer() -> usize {
    let pointer;
    // SAFETY: the first word of a thread's storage is its own address.
    unsafe {
        std::arch::asm!("mov {}, qword ptr fs:[0]", out(reg) pointer, options(nostack, preserves_flags, readonly));
    }
    pointer
}

#[cfg(target_arch = "aarch64")]
#[inline(always)]
fn thread_pointer() -> usize {
    let pointer;
    // SAFETY: reads a register.
    unsafe {
        std::arch::asm!("mrs {}, tpidr_el0", out(reg) pointer, options(nostack, nomem, preserves_flags))
    };
    pointer
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn thread_pointer() -> usize {
    0
}
