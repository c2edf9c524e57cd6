//! The last stack of a thread, and the sites of those before: a stack is mostly the last one but for a few frames.
//!
//! Frames are known by their instructions, as in [`site_cache`]. A stack is followed from its outermost
//! frame inwards through the tree of sites: as far as it is the last one nothing is looked up, and from there on each frame
//! by its caller's site and its instruction. Native frames are known by their return addresses.

use std::ffi::CString;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

use super::site_cache::{self, ENOUGH, OWN};
use super::sites::{self, SiteId};
use super::weave::{NATIVE, weave};
use super::{Frame, Host, Location, Origin, Running, Settings, block_shards, text};
use crate::unwind::{self, Walker};

/// Most frames of a stack.
pub(super) const MOST_FRAMES: usize = 512;
/// Frames whose sites are remembered.
const CACHED: usize = 4096;

/// Frames of the interpreter that are recorded of each stack; 0: only the line.
static DEPTH: AtomicUsize = AtomicUsize::new(0);
/// Whether native frames are.
static WITH_NATIVE: AtomicBool = AtomicBool::new(false);

/// For the recording that starts now. Not in a hook.
pub(super) fn prepare(settings: Settings) {
    if settings.native {
        unwind::prepare();
    }
    WITH_NATIVE.store(settings.native, Relaxed);
    let is_on = settings.native || settings.stack > 1;
    let depth = settings.stack.clamp(1, MOST_FRAMES);
    DEPTH.store(if is_on { depth } else { 0 }, Relaxed);
}

/// Whether more than the line is recorded.
#[inline(always)]
pub(super) fn is_on() -> bool {
    DEPTH.load(Relaxed) > 0
}

/// A frame below its callers. Without an instruction: none.
#[derive(Clone, Copy)]
struct Step {
    instruction: usize,
    /// The caller's site.
    caller: Option<SiteId>,
    /// Its own; that of its caller if it has none.
    site: Option<SiteId>,
    /// The code that there was then ([`site_cache::code`]).
    code: u64,
}

/// All zero: empty.
pub(super) struct StackCache {
    running: [Running; MOST_FRAMES],
    native: [usize; MOST_FRAMES],
    /// The stack, innermost frame first.
    frames: [Running; MOST_FRAMES],
    /// The last stack, outermost frame first.
    last: [(usize, Option<SiteId>); MOST_FRAMES],
    length: usize,
    /// The code that there was then.
    code: u64,
    /// Stacks that were compared with the line that the interpreter says.
    checked: u32,
    steps: [Step; CACHED],
    walker: Walker,
}

impl StackCache {
    /// The site of the calling thread's stack; `caller` is the native code that called the allocator. None if it has none,
    /// or its frames are unknown; [`OWN`] if all its code of Ruby is the profiler's own.
    pub(super) fn site(&mut self, host: &Host, caller: usize) -> Option<SiteId> {
        if site_cache::positions_disabled() {
            return None;
        }
        let count = self.read(host, caller);
        let code = site_cache::code();
        let mut same = if self.code == code { self.length } else { 0 };
        self.code = code;
        // Until all frames are known.
        self.length = 0;
        if self.checked < ENOUGH {
            same = 0;
            self.check(host)?;
        }
        let mut site = None;
        let (mut has_own, mut has_users) = (false, false);
        for at in 0..count {
            let frame = self.frames[count - 1 - at];
            let (instruction, known) = self.last[at];
            let callers = site;
            if at < same && instruction == frame.instruction {
                site = known;
            } else {
                same = 0;
                site = self.step(host, callers, frame)?;
                self.last[at] = (frame.instruction, site);
            }
            // A frame of the profiler's own has its caller's site.
            has_own |= site == callers;
            has_users |= site != callers && frame.code != NATIVE;
        }
        self.length = count;
        if has_own && !has_users {
            Some(OWN)
        } else {
            site
        }
    }

    /// Reads the stack, and returns how many frames it has.
    #[inline(always)]
    fn read(&mut self, host: &Host, caller: usize) -> usize {
        let depth = DEPTH.load(Relaxed).min(MOST_FRAMES);
        if !WITH_NATIVE.load(Relaxed) {
            return (host.frames)(&mut self.frames[..depth]);
        }
        let running = (host.frames)(&mut self.running[..depth]);
        let native = self.walker.walk(&mut self.native, Some(caller));
        let (native, running) = (&self.native[..native], &self.running[..running]);
        weave(native, running, &mut self.frames)
    }

    /// None if the innermost frame is not on the line that the interpreter says.
    #[cold]
    fn check(&mut self, host: &Host) -> Option<()> {
        let mut innermost = [Running::default()];
        if (host.frames)(&mut innermost) == 0 {
            return Some(());
        }
        let (said, line) = ((host.described)(innermost[0])?, (host.line)()?);
        // A frame that runs no code is not among `frames`: one has no line in which a file is loaded, and that of an
        // extension the interpreter's own.
        if line.line == 0 {
            return Some(());
        }
        // SAFETY: the host's path.
        let location = unsafe { sites::line(line) };
        let is_interpreters = |location: &Location| location.origin() == Origin::Interpreter;
        if is_interpreters(&location) && !is_interpreters(&said.location()) {
            return Some(());
        }
        if said.location() != location {
            site_cache::disable_positions();
            return None;
        }
        self.checked += 1;
        Some(())
    }

    /// The site of a frame: its caller's if it is the profiler's own.
    #[inline(always)]
    fn step(
        &mut self,
        host: &Host,
        caller: Option<SiteId>,
        frame: Running,
    ) -> Option<Option<SiteId>> {
        let known = self.steps[place(frame.instruction, caller)];
        if known.instruction == frame.instruction
            && known.caller == caller
            && known.code == self.code
        {
            return Some(known.site);
        }
        self.meet(host, caller, frame)
    }

    #[cold]
    fn meet(
        &mut self,
        host: &Host,
        caller: Option<SiteId>,
        frame: Running,
    ) -> Option<Option<SiteId>> {
        let met = if frame.code == NATIVE {
            Some(Frame {
                location: Location::Native(frame.instruction),
                method: CString::default(),
            })
        } else {
            let said = (host.described)(frame)?;
            // Without that mark, nothing says when the instruction is another line's.
            block_shards::mark_code(said.block).ok()?;
            (!said.is_own).then(|| Frame {
                location: said.location(),
                method: text(said.method),
            })
        };
        let site = match met {
            Some(met) => Some(sites::intern(caller, met)?),
            None => caller,
        };
        self.steps[place(frame.instruction, caller)] = Step {
            instruction: frame.instruction,
            caller,
            site,
            code: self.code,
        };
        Some(site)
    }
}

#[inline(always)]
fn place(instruction: usize, caller: Option<SiteId>) -> usize {
    let caller = caller.map_or(0, |caller| u64::from(caller.0) + 1);
    let mixed = (instruction as u64 ^ caller << 40).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 52) as usize % CACHED
}
