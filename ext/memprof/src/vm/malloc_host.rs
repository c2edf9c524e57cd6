//! What the recorder of malloc asks of the VM, inside a call of the allocator, on any thread and at any moment.
//!
//! Only functions that every supported Ruby exports are called, and of these only such as read. While the collector runs
//! no frame is read, as compaction may be about to move what it refers to. A thread that starts has no frames yet, and up
//! to Ruby 3.2 no execution context; the functions crash without one, so the variable is read that has it.

use std::ffi::{c_char, c_int};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use memprof_native::malloc::{Host, Line, Location};

use super::quiet::Quiet;
use super::symbols::{Symbols, symbols};

/// The host that a recording is started with.
pub static HOST: Host = Host {
    line,
    generation,
    is_quiet,
};

/// Whether the VM is there. It is asked nothing any more once it is being torn down.
static ALIVE: AtomicBool = AtomicBool::new(false);

/// Looks up what the hooks need, with the GVL held. False if Ruby's lines can't be told on this Ruby.
pub fn prepare() -> bool {
    static ONCE: OnceLock<bool> = OnceLock::new();
    *ONCE.get_or_init(|| {
        extern "C" fn torn_down(_: *mut rb_sys::ruby_vm_t) {
            ALIVE.store(false, Ordering::Relaxed);
        }
        let known = symbols().thread_has_gvl_p.is_some() && context::prepare();
        // SAFETY: a function of that signature, of a library that is not unloaded.
        unsafe { rb_sys::ruby_vm_at_exit(Some(torn_down)) };
        ALIVE.store(known, Ordering::Relaxed);
        known
    })
}

fn has_gvl(symbols: &Symbols) -> bool {
    // SAFETY: may be called on any thread; reads a word of the thread's own.
    (symbols.thread_has_gvl_p).is_some_and(|has_gvl| unsafe { has_gvl() } != 0)
}

/// Whether the calling thread runs Ruby code: it has the GVL, or is about to wait for it, and so frames of its own.
fn runs_ruby() -> bool {
    ALIVE.load(Ordering::Relaxed) && has_gvl(symbols()) && context::is_set()
}

fn line() -> Option<Line> {
    if !runs_ruby() {
        return None;
    }
    // SAFETY: the thread has an execution context, whose frames nobody else changes; outside of a collection, what they
    // refer to is where they say.
    unsafe {
        if rb_sys::rb_during_gc() != 0 {
            return None;
        }
        let path: *const c_char = rb_sys::rb_sourcefile();
        let line: c_int = rb_sys::rb_sourceline();
        (!path.is_null()).then_some(Line {
            path,
            line: line as u32,
        })
    }
}

/// What a location is called: `file:line`, or native code.
pub fn name(location: &Location) -> String {
    match location {
        Location::Line { path, line } => format!("{}:{line}", path.to_string_lossy()),
        Location::Native(address) => memprof_native::malloc::describe(*address),
    }
}

fn generation() -> u32 {
    if !ALIVE.load(Ordering::Relaxed) {
        return 0;
    }
    // SAFETY: reads a counter of the VM, which is there.
    unsafe { rb_sys::rb_gc_count() as u32 }
}

static QUIET: Mutex<Option<Quiet>> = Mutex::new(None);

fn with_quiet<T>(work: impl FnOnce(&mut Quiet) -> T) -> T {
    let mut quiet = QUIET.lock().unwrap_or_else(PoisonError::into_inner);
    work(quiet.get_or_insert_default())
}

fn is_quiet() -> bool {
    runs_ruby() && with_quiet(|quiet| quiet.contains(super::ruby_thread::current_thread()))
}

/// Calls `work` with the depth, 1 for the outermost call. What the Ruby thread allocates in it is not recorded.
pub fn quietly<T>(work: impl FnOnce(usize) -> T) -> T {
    struct Left(u64);
    impl Drop for Left {
        fn drop(&mut self) {
            with_quiet(|quiet| {
                quiet.leave(self.0);
                memprof_native::malloc::set_quiet(!quiet.is_empty());
            });
        }
    }
    // On the machine stack, where the collector finds it, and so does not move the thread.
    let thread = std::hint::black_box(Left(super::ruby_thread::current_thread()));
    let depth = with_quiet(|quiet| {
        quiet.enter(thread.0);
        memprof_native::malloc::set_quiet(true);
        quiet.depth(thread.0)
    });
    work(depth)
}

/// Up to Ruby 3.2 the functions that read frames need `ruby_current_ec`, which a starting thread has not got yet. It is a
/// thread-local variable of libruby; its place relative to the thread's own is the same in all threads where libruby was
/// there when the program started, which is tried out.
#[cfg(not(ruby_gte_3_3))]
mod context {
    use std::sync::atomic::{AtomicIsize, Ordering};

    static OFFSET: AtomicIsize = AtomicIsize::new(0);

    pub fn prepare() -> bool {
        let here = offset();
        let there = std::thread::spawn(offset).join().unwrap_or_default();
        let known = here != 0 && here == there;
        if known {
            OFFSET.store(here, Ordering::Relaxed);
        }
        known
    }

    pub fn is_set() -> bool {
        let place = thread_pointer().wrapping_add_signed(OFFSET.load(Ordering::Relaxed));
        // SAFETY: the thread's own variable (`prepare`).
        unsafe { *(place as *const usize) != 0 }
    }

    fn offset() -> isize {
        // SAFETY: looks up a name; of a thread-local variable it is the calling thread's.
        let place = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"ruby_current_ec".as_ptr()) };
        if place.is_null() {
            return 0;
        }
        (place as isize).wrapping_sub(thread_pointer() as isize)
    }

    #[cfg(target_arch = "x86_64")]
    fn thread_pointer() -> usize {
        let pointer;
        // SAFETY: the first word of a thread's storage is its own address.
        unsafe {
            std::arch::asm!("mov {}, qword ptr fs:[0]", out(reg) pointer, options(nostack, preserves_flags, readonly));
        }
        pointer
    }

    #[cfg(target_arch = "aarch64")]
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
}

/// From Ruby 3.3 on a thread has a context as soon as it is one of Ruby's, and no frames are found before it has some.
#[cfg(ruby_gte_3_3)]
mod context {
    pub fn prepare() -> bool {
        true
    }

    pub fn is_set() -> bool {
        true
    }
}
