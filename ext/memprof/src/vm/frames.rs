//! Location of an allocation: the frames on the VM's stack.

use std::ffi::c_int;

use rb_sys::VALUE;
use rustc_hash::{FxHashMap, FxHashSet};

use memprof_profile::sites::{FrameId, FrameKey, Sites, StackId};

use super::callers::{Caller, Callers, is_application};
use super::control_frames;
use super::event::Event;
use super::frame_keys::{self, is_loaded, is_native, is_own, is_users, key_of};
use super::origin::{Found, Origin};
use super::postponed_job;
use super::ruby_object::{Flags, text};
use super::stack_buffer::StackBuffer;
use super::stack_checks;
use super::stack_tree::{Counted, Node, StackTree};

/// Maximum frames to search for one written in Ruby, if the innermost ones are not.
const SEARCH: usize = 64;

/// Frames to search first: mostly one of them matches, and reading each costs as much as an object.
const NEAR: usize = 4;

#[derive(Clone, Copy)]
struct Known {
    id: FrameId,
    native: bool,
    /// Written in Ruby, and not part of the VM (`<internal:kernel>`): a place in user code.
    user: bool,
    /// Part of memprof: its own allocations are not recorded.
    own: bool,
    /// Whether its file belongs to the application.
    application: bool,
    /// The String of the frame's file.
    path: VALUE,
}

/// Known frames, and the last stack read.
#[derive(Default)]
pub struct Frames {
    known: FxHashMap<VALUE, Known>,
    /// Types of internal objects that occur as frames, one bit each: so far methods and instruction sequences.
    kinds: u16,
    /// Iseqs whose instructions are keys of places.
    iseqs: FxHashSet<VALUE>,
    /// Frames that run code of another file: a method, and the path of the evaluated code.
    evaluated: FxHashMap<(VALUE, VALUE), Known>,
    /// Frames whose qualified names are still to be resolved (see [`super::naming`]).
    pub unnamed: Vec<(VALUE, FrameId)>,
    stacks: StackTree,
    callers: Callers,
    read: StackBuffer,
    /// The last C method met, mostly Class#new; 0 if there is none.
    last_native: VALUE,
    /// Paths of files: VM strings that are marked, and so don't move.
    paths: FxHashSet<VALUE>,
}

impl Frames {
    /// True for a method written in Ruby, for which the JIT did not store the line where rb_profile_frames reads it.
    #[inline]
    fn is_compiled(&mut self, frame: VALUE) -> bool {
        if frame == self.last_native {
            return false;
        }
        let native = match self.known.get(&frame) {
            Some(known) => known.native,
            None => is_native(frame),
        };
        if native {
            self.last_native = frame;
        }
        !native
    }

    /// The innermost Ruby frame alone, if it is the user's or memprof's own; `path` and `line` are those of the event. The path
    /// is pinned from now on, so that its address identifies the file. Evaluated code is left to [`Frames::stack`], as many
    /// methods evaluate code with the same path.
    pub fn single(&mut self, sites: &mut Sites, path: VALUE, line: u32) -> Option<Origin> {
        let mut seen = 0;
        for limit in [NEAR, SEARCH] {
            let count = self.read.read_frames(limit);
            for at in seen..count {
                let frame = self.read.values[at];
                let known = self.know(sites, frame, path);
                if known.native {
                    continue;
                }
                self.paths.insert(path);
                if known.own {
                    return Some(Origin::Own);
                }
                let plain = known.user && !self.evaluated.contains_key(&(frame, path));
                return plain.then(|| {
                    let place = sites.stack(None, known.id, line);
                    Origin::Program(Found {
                        place,
                        stack: place,
                        application: known.application,
                        loaded: is_loaded(frame),
                    })
                });
            }
            if count < limit {
                break;
            }
            seen = count;
        }
        None
    }

    /// Reads and interns a stack of at most `keep` frames. Its place is the innermost frame of user code, even if that is
    /// further out than the recorded frames. The event knows the innermost frame's line, in case the JIT hides it. `node`: the
    /// stack's node ([`Frames::node`]), if known.
    pub fn stack(
        &mut self,
        sites: &mut Sites,
        keep: usize,
        event: Event,
        node: Option<Node>,
    ) -> Origin {
        let known = node.and_then(|node| self.stacks.origin(node, keep));
        if let Some(known) = known.filter(|_| !stack_checks::are_on()) {
            return known;
        }
        let origin = self.read(sites, keep, event);
        if let Some(known) = known {
            stack_checks::count(known == origin);
        } else if let Some(node) = node {
            self.stacks.learn(node, keep, origin);
        }
        origin
    }

    /// The node of the running thread's stack, with `keep` frames recorded. Only valid if there is an [`Event::position`], and
    /// frees of running code are seen.
    #[inline]
    pub fn node(&mut self, event: Event, keep: usize) -> Option<Node> {
        let context = event.context().filter(|_| control_frames::is_trusted())?;
        let (stacks, iseqs, kinds) = (&mut self.stacks, &mut self.iseqs, &mut self.kinds);
        // SAFETY: the context of the running thread, whose layout was found right.
        unsafe {
            let frames = control_frames::stack(context);
            stacks.node(context as usize, frames, keep.max(SEARCH), |iseq| {
                *kinds |= Flags::of(iseq).imemo_bit();
                iseqs.insert(iseq);
            })
        }
    }

    /// The cell of the objects last allocated by a stack, if known.
    #[inline]
    pub fn counted(&self, node: Node) -> Option<Counted> {
        self.stacks.counted(node)
    }

    /// Stores the cell of the objects that a stack allocates.
    #[inline]
    pub fn count(&mut self, node: Node, counted: Counted) {
        self.stacks.count(node, counted);
    }

    /// Asks the VM for the stack.
    fn read(&mut self, sites: &mut Sites, keep: usize, event: Event) -> Origin {
        let count = self.read.read_frames(keep.max(SEARCH));
        if count == 0 {
            return Origin::Program(Found::nowhere(sites));
        }
        if self.read.lines[0] == 0 && self.is_compiled(self.read.values[0]) {
            self.read.lines[0] = event.line() as c_int;
        }
        self.read.read_paths(count, event);
        self.intern(sites, count, keep)
    }

    /// The innermost frame of the application on the running thread's stack. Only valid if there is an [`Event::position`]:
    /// then the layout of frames is known.
    #[inline]
    pub fn caller(&mut self, event: Event) -> Option<Caller> {
        let (callers, iseqs, kinds) = (&mut self.callers, &mut self.iseqs, &mut self.kinds);
        // SAFETY: the context of the running thread, whose layout was found right.
        let frames = unsafe { control_frames::stack(event.context()?) };
        callers.find(frames, |iseq| {
            // SAFETY: a running iseq is alive.
            *kinds |= unsafe { Flags::of(iseq) }.imemo_bit();
            iseqs.insert(iseq);
        })
    }

    /// The same frame as a stack of its own, with its line.
    pub fn caller_alone(
        &mut self,
        sites: &mut Sites,
        event: Event,
        caller: Caller,
    ) -> Option<StackId> {
        // SAFETY: as for `caller`.
        let frames = unsafe { control_frames::stack(event.context()?) };
        let inside = frames.get(..caller.inside)?.iter();
        let depth = inside.filter(|frame| frame.instruction().is_some()).count();
        let count = self.read.read_frames(usize::MAX);
        let mut ruby = (0..count)
            .filter(|&at| self.read.lines[at] != 0 || !is_native(self.read.values[at]))
            .skip(depth);
        let at = ruby.next()?;
        // SAFETY: a frame that runs, so alive.
        let path = unsafe { rb_sys::rb_profile_frame_path(caller.iseq) };
        let known = self.know(sites, self.read.values[at], path);
        let line = frame_keys::line(self.read.lines[at]);
        known.application.then(|| sites.stack(None, known.id, line))
    }

    fn forget_stacks(&mut self) {
        self.stacks.clear();
        self.last_native = 0;
    }

    /// Objects that the VM must mark and not move: frames until they are named, and paths.
    pub fn pinned(&self) -> impl Iterator<Item = VALUE> + '_ {
        self.unnamed.iter().map(|(frame, _)| *frame).chain(self.paths.iter().copied())
    }

    fn intern(&mut self, sites: &mut Sites, count: usize, keep: usize) -> Origin {
        let mut kept = None;
        let mut place = None;
        let mut internal = None;
        let (mut application, mut own) = (false, false);
        let mut ruby = (0..count)
            .filter(|at| self.read.lines[*at] != 0 || !is_native(self.read.values[*at]))
            .count();
        for at in (0..count).rev() {
            let (frame, line) = (self.read.values[at], self.read.lines[at]);
            ruby -= usize::from(line != 0 || !is_native(frame));
            let known = self.know(sites, frame, 0);
            let known = if known.native {
                known
            } else {
                let path = self.read.paths.get(ruby).copied().unwrap_or(0);
                self.know(sites, frame, path)
            };
            // Ruby 3.1 reports the frame below the first one, which never runs.
            if line == 0 && !known.native && at > 0 {
                continue;
            }
            // Nor do memprof's own frames belong to the program: it did not call itself, or the C methods that it calls.
            if known.own || (own && known.native) {
                own = true;
                continue;
            }
            if at < keep {
                kept = Some(sites.stack(kept, known.id, frame_keys::line(line)));
            }
            let here = if known.native {
                None
            } else {
                kept.or_else(|| Some(sites.stack(None, known.id, frame_keys::line(line))))
            };
            if known.user {
                (place, application, own) = (here, known.application, false);
            }
            internal = here.or(internal);
        }
        if own {
            return Origin::Own;
        }
        let Some(place) = place.or(internal) else {
            return Origin::Program(Found::nowhere(sites));
        };
        Origin::Program(Found { place, stack: kept.unwrap_or(place), application, loaded: false })
    }

    /// Data of a frame that runs code of a file; `path` is 0 for the frame's own file.
    fn know(&mut self, sites: &mut Sites, frame: VALUE, path: VALUE) -> Known {
        let known = match self.known.get(&frame) {
            Some(known) => *known,
            None => self.meet(sites, frame),
        };
        if path == 0 || path == known.path || known.native {
            return known;
        }
        match self.evaluated.get(&(frame, path)) {
            Some(known) => *known,
            None => self.meet_evaluated(sites, frame, known, path),
        }
    }

    fn meet(&mut self, sites: &mut Sites, frame: VALUE) -> Known {
        let key = key_of(frame);
        let known = Known {
            native: key.native.is_some(),
            own: is_own(&key.file),
            application: key.native.is_none() && is_application(&key.file),
            user: key.native.is_none() && is_users(&key.file),
            // SAFETY: a frame that is alive (see `is_native`).
            path: unsafe { rb_sys::rb_profile_frame_path(frame) },
            id: self.number(sites, frame, key),
        };
        // SAFETY: as above.
        self.kinds |= unsafe { Flags::of(frame) }.imemo_bit();
        self.known.insert(frame, known);
        known
    }

    /// Evaluated code has the name of the evaluating method. Code evaluated by memprof is its own.
    fn meet_evaluated(
        &mut self,
        sites: &mut Sites,
        frame: VALUE,
        method: Known,
        path: VALUE,
    ) -> Known {
        // SAFETY: the path of a frame that runs, so alive.
        let file = unsafe { text(path) }.unwrap_or_default();
        let mut key = key_of(frame);
        if *key.file == file {
            return method;
        }
        key.file = file.into();
        key.first_line = 0;
        let own = method.own || is_own(&key.file);
        let known = Known {
            native: false,
            own,
            application: !own && is_application(&key.file),
            user: !own && is_users(&key.file),
            path,
            id: self.number(sites, frame, key),
        };
        self.paths.insert(path);
        self.evaluated.insert((frame, path), known);
        known
    }

    fn number(&mut self, sites: &mut Sites, frame: VALUE, key: FrameKey) -> FrameId {
        let (id, new) = sites.frame(key);
        if new {
            self.unnamed.push((frame, id));
            postponed_job::request();
        }
        id
    }

    /// The instructions of this running iseq are keys of places until it is [forgotten](Frames::forget).
    pub fn remember(&mut self, iseq: VALUE) {
        // SAFETY: a running iseq is alive.
        self.kinds |= unsafe { Flags::of(iseq) }.imemo_bit();
        self.iseqs.insert(iseq);
    }

    /// False if an internal object with these flags can't be a frame.
    #[inline(always)]
    pub fn may_be_frame(&self, flags: Flags) -> bool {
        self.kinds & flags.imemo_bit() != 0
    }

    /// The object at this address was freed or replaced. True if it was a known frame.
    pub fn forget(&mut self, address: VALUE) -> bool {
        let known = self.known.remove(&address).is_some();
        if known {
            self.evaluated.retain(|(frame, _), _| *frame != address);
            self.forget_stacks();
        }
        let iseq = self.iseqs.remove(&address);
        if iseq {
            self.callers.clear();
            self.forget_stacks();
        }
        iseq || known
    }

    /// Addresses of the known frames and iseqs.
    pub fn addresses(&self) -> impl Iterator<Item = VALUE> + '_ {
        self.known.keys().chain(&self.iseqs).copied()
    }

    /// Keeps the frames for which `lives` is true. True if some were removed.
    pub fn keep(&mut self, lives: impl Fn(u64) -> bool) -> bool {
        let before = self.known.len();
        self.known.retain(|frame, _| lives(*frame));
        let gone = self.known.len() < before;
        let iseqs = self.iseqs.len();
        self.iseqs.retain(|iseq| lives(*iseq));
        self.callers.clear();
        if self.iseqs.len() < iseqs {
            self.forget_stacks();
        }
        if gone {
            let known = &self.known;
            self.evaluated.retain(|(frame, _), _| known.contains_key(frame));
            self.forget_stacks();
        }
        gone || self.iseqs.len() < iseqs
    }

    /// Removes frames by address, except those still to be named: these are marked, and so alive.
    pub fn forget_known(&mut self) {
        self.known.clear();
        self.iseqs.clear();
        self.callers.clear();
        self.evaluated.clear();
        self.forget_stacks();
    }

    /// Removes all but the frames still to be named, and yields their ids. Places must no longer be keyed by the address of
    /// their path.
    pub fn forget_all(&mut self) -> impl Iterator<Item = &mut FrameId> {
        self.forget_known();
        self.paths = FxHashSet::default();
        self.unnamed.iter_mut().map(|(_, id)| id)
    }

    /// Drops everything, and its memory, but the frames still to be named.
    pub fn restart(&mut self) {
        let unnamed = std::mem::take(&mut self.unnamed);
        *self = Frames { unnamed, ..Frames::default() };
    }

    /// Memory size of the tables in bytes.
    pub fn memsize(&self) -> usize {
        self.stacks.memsize()
            + self.callers.memsize()
            + (self.known.capacity() + self.evaluated.capacity())
                * (2 * size_of::<VALUE>() + size_of::<Known>())
            + (self.paths.capacity() + self.iseqs.capacity()) * size_of::<VALUE>()
    }

    /// Frames moved in memory, except for [`Frames::pinned`].
    pub fn relocate(&mut self, moved: impl Fn(u64) -> Option<u64>) {
        let known = std::mem::take(&mut self.known);
        self.known = known
            .into_iter()
            .filter_map(|(at, known)| Some((moved(at)? as VALUE, known)))
            .collect();
        let evaluated = std::mem::take(&mut self.evaluated);
        self.evaluated = evaluated
            .into_iter()
            .filter_map(|((at, path), known)| Some(((moved(at)? as VALUE, path), known)))
            .collect();
        let iseqs = std::mem::take(&mut self.iseqs);
        self.iseqs = iseqs.into_iter().filter_map(|at| Some(moved(at)? as VALUE)).collect();
        self.callers.clear();
        self.forget_stacks();
    }
}
