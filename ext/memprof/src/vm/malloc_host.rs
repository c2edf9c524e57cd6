//! The malloc recorder's queries to the VM, inside a call of the allocator, on any thread and at any moment.
//!
//! Only read-only functions that every supported Ruby exports are called. During a GC no frame is read, as compaction may be
//! about to move what it refers to. A new thread has no frames yet, and up to Ruby 3.2 no execution context; the functions
//! crash without one, so the variable with the context is read ([`own_context`]). If that is known, the code position is read
//! from the thread's innermost frame, which takes a tenth of the time of path and line.

use std::ffi::{c_char, c_int};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use memprof_native::malloc::{Described, Host, Line, Location, Position, Running, Site};
use rb_sys::VALUE;

use super::control_frames::ControlFrame;
use super::quiet::Quiet;
use super::symbols::{Symbols, symbols};
use super::{control_frames, frame_keys, layouts, own_context, ruby_object, stack_checks};

/// The host for recordings.
pub static HOST: Host =
    Host { position, code_block, line, frames, follow, described, generation, is_own, is_quiet };

/// Whether the VM is up. It is not called any more once its teardown has begun.
static ALIVE: AtomicBool = AtomicBool::new(false);
/// Whether frames may be read.
static READS_FRAMES: AtomicBool = AtomicBool::new(false);

/// Resolves the functions that the hooks need, with the GVL held. False if this Ruby lacks them.
pub fn prepare() -> bool {
    static ONCE: OnceLock<bool> = OnceLock::new();
    *ONCE.get_or_init(|| {
        extern "C" fn torn_down(_: *mut rb_sys::ruby_vm_t) {
            ALIVE.store(false, Ordering::Relaxed);
        }
        own_context::prepare();
        let has_context = own_context::is_known();
        READS_FRAMES.store(has_context && layouts::check().is_ok(), Ordering::Relaxed);
        let known = symbols().thread_has_gvl_p.is_some() && (has_context || FINDS_CONTEXT);
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

/// Whether the VM's functions handle a Ruby thread without a context. From 3.3 on it has one from the start, and no frames are
/// reported before it has any.
const FINDS_CONTEXT: bool = cfg!(ruby_gte_3_3);

/// Whether the calling thread runs Ruby code: it has the GVL, or is about to wait for it, and so has frames.
#[inline(always)]
fn runs_ruby() -> bool {
    ALIVE.load(Ordering::Relaxed)
        && has_gvl(symbols())
        && (FINDS_CONTEXT || !own_context::get().is_null())
}

#[inline(always)]
fn during_gc() -> bool {
    // SAFETY: reads a flag of the VM, which is there.
    unsafe { rb_sys::rb_during_gc() != 0 }
}

fn position() -> Position {
    if !runs_ruby() || during_gc() {
        return Position::Native;
    }
    let context = own_context::get();
    if context.is_null() || !READS_FRAMES.load(Ordering::Relaxed) {
        return Position::Line;
    }
    // SAFETY: the thread's own context, whose frames it alone changes.
    match unsafe { control_frames::running(context) } {
        Some((instruction, _)) => Position::Code(instruction),
        None => Position::Line,
    }
}

fn code_block(position: usize) -> Option<usize> {
    // SAFETY: only asked right after `position` has read the same frame, which is that of running code.
    unsafe {
        let (instruction, iseq) = control_frames::running(own_context::get())?;
        if instruction != position {
            return None;
        }
        control_frames::instructions(iseq, instruction)
    }
}

fn line() -> Option<Line> {
    if !runs_ruby() || during_gc() {
        return None;
    }
    // SAFETY: the thread has an execution context, whose frames it alone changes; outside of a GC, what they
    // refer to is where they say.
    unsafe {
        let path: *const c_char = rb_sys::rb_sourcefile();
        let line: c_int = rb_sys::rb_sourceline();
        (!path.is_null()).then_some(Line { path, line: frame_keys::line(line) })
    }
}

/// The calling thread's frames of Ruby code, innermost first.
fn frames(into: &mut [Running]) -> usize {
    if !runs_ruby() || !READS_FRAMES.load(Ordering::Relaxed) || during_gc() {
        return 0;
    }
    let context = own_context::get();
    if context.is_null() {
        return 0;
    }
    // SAFETY: the thread's own context, whose frames it alone changes.
    let frames = unsafe { control_frames::ruby_frames(context) };
    let mut count = 0;
    for (place, frame) in into.iter_mut().zip(frames) {
        *place = Running {
            instruction: frame.instruction,
            code: frame.iseq as usize,
            is_entry: frame.is_entry,
            is_code: true,
        };
        count += 1;
    }
    count
}

/// The calling thread's control frames, outermost first, merged into those of the previous call.
fn follow(kept: &mut [Running], length: usize, with_entries: bool) -> (usize, usize) {
    if !runs_ruby() || !READS_FRAMES.load(Ordering::Relaxed) || during_gc() {
        return (0, 0);
    }
    let context = own_context::get();
    if context.is_null() {
        return (0, 0);
    }
    // SAFETY: the thread's own context, whose frames it alone changes.
    let frames = unsafe { control_frames::stack(context) };
    let frames = control_frames::innermost(frames, kept.len());
    let outermost_first = || frames.iter().rev();
    let is_same = |(frame, kept): &(&ControlFrame, &Running)| {
        frame.is(kept.instruction, kept.code as VALUE)
            && (!with_entries || !kept.is_code || frame.is_entry() == kept.is_entry)
    };
    let same = outermost_first().zip(&kept[..length]).take_while(is_same).count();
    if same > 0 && stack_checks::are_on() {
        let kept = kept[..same].iter();
        stack_checks::count(outermost_first().zip(kept).all(|(frame, kept)| {
            let instruction = frame.instruction();
            instruction.is_some() == kept.is_code
                && instruction.is_none_or(|one| one == kept.instruction)
        }));
    }
    for (frame, kept) in outermost_first().zip(kept).skip(same) {
        let instruction = frame.instruction();
        *kept = Running {
            instruction: frame.word_of_instruction(),
            code: frame.iseq() as usize,
            is_entry: frame.is_entry(),
            is_code: instruction.is_some(),
        };
    }
    (same, frames.len())
}

/// Number of calls from native code into Ruby on the calling thread's stack; 0 if unknown.
pub fn calls_of_ruby() -> usize {
    let mut found = vec![Running::default(); 512];
    let count = frames(&mut found);
    found[..count].iter().filter(|frame| frame.is_entry).count()
}

/// The code of such a frame.
fn described(frame: Running) -> Option<Described> {
    let iseq = frame.code as VALUE;
    // SAFETY: the iseq of a frame that was just read: it runs, and no GC does (`frames`). What is asked for reads
    // the iseq and allocates nothing; its strings live as long as it does.
    unsafe {
        let block = control_frames::instructions(iseq, frame.instruction)?;
        // The line is that of the previous instruction, as in the VM itself (calc_pos in vm_backtrace.c).
        let at = ((frame.instruction - block) / size_of::<VALUE>()).saturating_sub(1);
        let line = frame_keys::line(symbols().iseq_line_no?(iseq, at) as c_int);
        let path = ruby_object::bytes(rb_sys::rb_profile_frame_path(iseq))?;
        Some(Described {
            path,
            line,
            method: ruby_object::bytes(rb_sys::rb_profile_frame_label(iseq)).unwrap_or_default(),
            block,
            is_own: is_own(path),
        })
    }
}

/// Whether a file is memprof's own.
fn is_own(path: &[u8]) -> bool {
    std::str::from_utf8(path).is_ok_and(frame_keys::is_own)
}

/// Names of sites: `file:line`, or native code.
pub fn names(sites: &[Site]) -> Vec<String> {
    let native = |site: &Site| match site.location {
        Location::Native(address) => Some(address),
        Location::Line { .. } => None,
    };
    let addresses: Vec<usize> = sites.iter().filter_map(native).collect();
    let mut native = memprof_native::malloc::describe(&addresses).into_iter();
    let names = sites.iter().map(|site| match &site.location {
        Location::Line { path, line } => format!("{}:{line}", path.to_string_lossy()),
        Location::Native(_) => native.next().unwrap_or_default(),
    });
    names.collect()
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

/// A Ruby thread whose allocations are not recorded until this is dropped. A Ruby object owns it: if a fiber is discarded, its
/// native stack is not unwound, but the GC frees the object.
pub struct QuietThread(AtomicU64);

impl QuietThread {
    /// The calling thread.
    pub fn enter() -> Self {
        let thread = super::ruby_thread::current_thread();
        with_quiet(|quiet| {
            quiet.enter(thread);
            memprof_native::malloc::set_quiet(true);
        });
        QuietThread(AtomicU64::new(thread))
    }

    /// Ends it. A second call does nothing.
    pub fn leave(&self) {
        let thread = self.0.swap(0, Ordering::Relaxed);
        if thread != 0 {
            with_quiet(|quiet| {
                quiet.leave(thread);
                memprof_native::malloc::set_quiet(!quiet.is_empty());
            });
        }
    }
}

impl Drop for QuietThread {
    fn drop(&mut self) {
        self.leave();
    }
}

/// Depth of the calling thread in [`QuietThread`].
pub fn quiet_depth() -> usize {
    with_quiet(|quiet| quiet.depth(super::ruby_thread::current_thread()))
}
