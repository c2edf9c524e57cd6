//! The last stack of a thread, and the sites of earlier ones: most stacks differ from the last one in a few frames only.
//!
//! Frames are identified by their instructions, as in [`site_cache`], native frames by their return addresses. A stack is
//! followed from its outermost frame inwards through the tree of sites: frames shared with the last stack need no lookup,
//! the others are looked up by their caller's site and their instruction. A stack is always followed as a whole: the
//! outermost of its n innermost frames changes with each call, and with it the sites of all of them. The unwanted frames are
//! cut off when sites are read ([`sites::cut`]).

use std::ffi::CString;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use super::site_cache::{self, ENOUGH, OWN};
use super::sites::{self, SiteId};
use super::steps::{ROOT, Steps};
use super::weave::{Followed, MOST_FRAMES, NATIVE, Woven, weave};
use super::{Frame, Host, Location, Origin, Running, Settings, block_shards, text};
use crate::unwind::walker::End;
use crate::unwind::{self, Walker};

/// Whether stacks are recorded.
static IS_ON: AtomicBool = AtomicBool::new(false);
/// Whether native frames are recorded.
static WITH_NATIVE: AtomicBool = AtomicBool::new(false);

/// Prepares for a new recording. Not to be called in a hook.
pub(super) fn prepare(settings: Settings) {
    if settings.native {
        unwind::prepare();
    }
    WITH_NATIVE.store(settings.native, Relaxed);
    sites::want(settings.stack);
    IS_ON.store(settings.native || settings.stack > 1, Relaxed);
}

/// Whether more than the line is recorded.
#[inline(always)]
pub(super) fn is_on() -> bool {
    IS_ON.load(Relaxed)
}

/// A frame of a stack, including all its callers.
#[derive(Clone, Copy, Default)]
struct Reached {
    instruction: usize,
    site: Option<SiteId>,
    /// The last step to it; its callers' if it is not code.
    step: u32,
    /// Whether frames of the profiler are among them, and whether others are.
    has_own: bool,
    has_users: bool,
}

/// All zero: empty.
pub(super) struct StackCache {
    /// The interpreter's frames, outermost first.
    running: [Running; MOST_FRAMES],
    running_length: usize,
    /// Both kinds of frames, for stacks with native ones.
    woven: Woven,
    /// Native frames and the interpreter's, innermost first, if they must be woven that way.
    native: [usize; MOST_FRAMES],
    inner: [Running; MOST_FRAMES],
    /// The last stack, outermost frame first: an element for each interpreter frame, or for each frame of both kinds.
    last: [Reached; MOST_FRAMES],
    length: usize,
    /// The code version at that time.
    code: u64,
    /// Number of stacks compared with the interpreter's current line.
    checked: u32,
    steps: Steps,
    walker: Walker,
}

impl StackCache {
    /// The site of the calling thread's stack; `caller` is the native code that called the allocator. None if it has none,
    /// or its frames are unknown; [`OWN`] if all its Ruby code belongs to the profiler.
    pub(super) fn site(&mut self, host: &Host, caller: usize) -> Option<SiteId> {
        if site_cache::positions_disabled() {
            return None;
        }
        let code = site_cache::code();
        if self.code != code {
            (self.running_length, self.length, self.code) = (0, 0, code);
            self.steps.clear();
        }
        let reached =
            if WITH_NATIVE.load(Relaxed) { self.woven(host, caller) } else { self.running(host) }?;
        if reached.has_own && !reached.has_users { Some(OWN) } else { reached.site }
    }

    /// Follows the interpreter's frames. None if they are unknown.
    #[inline(always)]
    fn running(&mut self, host: &Host) -> Option<Reached> {
        let (mut same, count) = (host.follow)(&mut self.running, self.running_length, false);
        let before = self.length;
        // Until all frames are known.
        (self.running_length, self.length) = (0, 0);
        if self.checked < ENOUGH {
            same = 0;
            self.check(host)?;
        }
        for at in same..count {
            let frame = self.running[at];
            let callers = self.reached(at);
            if frame.is_code {
                let previous = if at == same && at < before { self.last[at].step } else { ROOT };
                self.last[at] = self.reach(host, callers, frame, previous)?;
            } else {
                self.last[at] = callers;
            }
        }
        (self.running_length, self.length) = (count, count);
        Some(self.reached(count))
    }

    /// Follows the interpreter's frames with the native ones between them.
    fn woven(&mut self, host: &Host, caller: usize) -> Option<Reached> {
        let (same, count) = (host.follow)(&mut self.running, self.running_length, true);
        let running = Followed { frames: &self.running[..count], same };
        self.running_length = count;
        let same = self.walker.follow(Some(caller));
        let native = Followed { frames: self.walker.frames(), same };
        let woven = match self.walker.end() {
            End::Whole => self.woven.weave(native, running),
            End::Early | End::Jit => None,
        };
        let mut same = match woven {
            Some(same) => same.min(self.length),
            None => self.weave_inwards(count),
        };
        let before = self.length;
        // Until all frames are known.
        self.length = 0;
        if self.checked < ENOUGH {
            same = 0;
            self.check(host)?;
        }
        let length = self.woven.length;
        for at in same..length {
            let callers = self.reached(at);
            let previous = if at == same && at < before { self.last[at].step } else { ROOT };
            self.last[at] = self.reach(host, callers, self.woven.frames[at], previous)?;
        }
        self.length = length;
        Some(self.reached(length))
    }

    /// Weaves a stack whose outermost frames are unknown, and returns how many of the outermost ones are unchanged.
    #[cold]
    fn weave_inwards(&mut self, running: usize) -> usize {
        let native = self.walker.write(&mut self.native);
        let mut inner = 0;
        for frame in self.running[..running].iter().rev() {
            if frame.is_code {
                self.inner[inner] = *frame;
                inner += 1;
            }
        }
        let frames = &mut self.woven.frames;
        let length = weave(&self.native[..native], &self.inner[..inner], frames);
        frames[..length].reverse();
        self.woven.length = length;
        let known = self.last[..self.length].iter();
        let is_same =
            |(known, frame): &(&Reached, &Running)| known.instruction == frame.instruction;
        known.zip(&frames[..length]).take_while(is_same).count()
    }

    /// The result of following this many of the outermost frames.
    #[inline(always)]
    fn reached(&self, count: usize) -> Reached {
        match count {
            0 => Reached::default(),
            _ => self.last[count - 1],
        }
    }

    /// Follows a frame. `previous`: the step in its place in the last stack, with the same callers, if any.
    #[inline(always)]
    fn reach(
        &mut self,
        host: &Host,
        callers: Reached,
        frame: Running,
        previous: u32,
    ) -> Option<Reached> {
        let (before, instruction) = ((callers.step, previous), frame.instruction);
        let step = match self.steps.expected(before, callers.site, instruction) {
            Some(step) => step,
            None => {
                let step = match self.steps.find(callers.site, instruction) {
                    Some(step) => step,
                    None => self.meet(host, callers.site, frame)?,
                };
                self.steps.expect(before, step);
                step
            }
        };
        let site = self.steps.site(step);
        // A frame of the profiler has its caller's site.
        Some(Reached {
            instruction,
            site,
            step,
            has_own: callers.has_own || site == callers.site,
            has_users: callers.has_users || site != callers.site && frame.code != NATIVE,
        })
    }

    /// None if the innermost frame does not match the interpreter's current line.
    #[cold]
    fn check(&mut self, host: &Host) -> Option<()> {
        let mut innermost = [Running::default()];
        if (host.frames)(&mut innermost) == 0 {
            return Some(());
        }
        let (said, line) = ((host.described)(innermost[0])?, (host.line)()?);
        // Frames without code are not among `frames`: one that loads a file has no line, and an extension's has the
        // interpreter's own.
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

    /// The new step to a frame: to its site, or its caller's if it belongs to the profiler.
    #[cold]
    fn meet(&mut self, host: &Host, caller: Option<SiteId>, frame: Running) -> Option<u32> {
        let met = if frame.code == NATIVE {
            Some(Frame {
                location: Location::Native(frame.instruction),
                method: CString::default(),
            })
        } else {
            let said = (host.described)(frame)?;
            // Without the mark, a change of the instruction's line would go unnoticed.
            block_shards::mark_code(said.block).ok()?;
            (!said.is_own).then(|| Frame { location: said.location(), method: text(said.method) })
        };
        let site = match met {
            Some(met) => Some(sites::intern(caller, met)?),
            None => caller,
        };
        Some(self.steps.add(caller, frame.instruction, site))
    }
}
