//! A program whose current lines are set by the test: each thread sets its own.

use std::cell::Cell;
use std::ffi::{c_char, c_void};
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use memprof_native::malloc::{Host, Line, Position, Settings};

use super::{Library, Workshop};

thread_local! {
    pub static LINE: Cell<Option<u32>> = const { Cell::new(None) };
    pub static QUIET: Cell<bool> = const { Cell::new(false) };
}
pub static GENERATION: AtomicU32 = AtomicU32::new(0);

pub static HOST: Host = Host {
    position: || Position::Line,
    code_block: |_| None,
    line: || LINE.get().map(|line| Line { path: c"/app/test.rb".as_ptr(), line }),
    frames: |_| 0,
    follow: |_, _, _| (0, 0),
    described: |_| None,
    generation: || GENERATION.load(Relaxed),
    is_own: |_| false,
    is_quiet: || QUIET.get(),
};

pub type Realloc = unsafe extern "C" fn(*mut c_void, usize) -> *mut c_void;
pub type Calloc = unsafe extern "C" fn(usize, usize) -> *mut c_void;
pub type ReallocArray = unsafe extern "C" fn(*mut c_void, usize, usize) -> *mut c_void;
pub type Strdup = unsafe extern "C" fn(*const c_char) -> *mut c_void;

pub fn samples(sample: Option<NonZeroU32>) -> Settings {
    Settings { sample, ..Settings::default() }
}

pub fn work() -> (Workshop, Library) {
    let shop = Workshop::new();
    let work = shop.work("work", &[]);
    (shop, work)
}

/// Hands blocks from one thread to another inside this program, whose own allocator calls are not seen.
pub fn handover() -> (impl Fn(usize) + Sync, impl Fn() -> usize + Sync) {
    let queue: &'static std::sync::Mutex<std::collections::VecDeque<usize>> =
        Box::leak(Box::default());
    let take = move || {
        loop {
            if let Some(block) = queue.lock().unwrap().pop_front() {
                return block;
            }
        }
    };
    (move |block| queue.lock().unwrap().push_back(block), take)
}
