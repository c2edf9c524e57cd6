//! Where a birth happens: the frames on the VM's stack.

use std::ffi::c_int;
use std::sync::OnceLock;

use rb_sys::VALUE;
use rustc_hash::{FxHashMap, FxHashSet};

use memprof_profile::sites::{FrameId, FrameKey, Sites, StackId};

use super::classes::text;

/// Most frames that are read of one stack.
pub const MAX_FRAMES: usize = 2048;

/// Frames to look through for one that is written in Ruby, when the innermost ones are not.
const SEARCH: usize = 64;

/// Interned stacks that are remembered by the addresses of their frames.
const REMEMBERED_STACKS: usize = 1 << 16;

#[derive(Clone, Copy)]
struct Known {
    id: FrameId,
    native: bool,
    /// Written in Ruby, and not a part of the VM (`<internal:kernel>`): what a user calls a place.
    user: bool,
    /// A part of memprof: what it makes for itself is not recorded.
    own: bool,
}

/// Directory of memprof's own Ruby files, with a slash, and its main file.
static OWN: OnceLock<[String; 2]> = OnceLock::new();

/// Tells where memprof's own Ruby files are: its main file, and a directory of the same name.
pub fn set_own(main_file: &str) {
    OWN.get_or_init(|| {
        [
            format!("{}/", main_file.trim_end_matches(".rb")),
            main_file.to_owned(),
        ]
    });
}

fn is_own(file: &str) -> bool {
    OWN.get()
        .is_some_and(|[directory, main]| file == main || file.starts_with(directory.as_str()))
}

struct RawStack {
    values: Box<[VALUE]>,
    lines: Box<[c_int]>,
    keep: usize,
    origin: Origin,
}

/// Where a birth happened.
#[derive(Clone, Copy)]
pub enum Origin {
    /// In a program.
    Program(Found),
    /// In memprof itself.
    Own,
}

/// The place and the stack of a birth.
#[derive(Clone, Copy)]
pub struct Found {
    /// The innermost frame of a user's file: its file and line are the site's.
    pub place: StackId,
    /// The innermost frame.
    pub stack: StackId,
}

/// Frames that were seen, and buffers to read them into.
pub struct Frames {
    known: FxHashMap<VALUE, Known>,
    /// Frames whose qualified names are still to be asked for (see [`super::naming`]).
    pub unnamed: Vec<(VALUE, FrameId)>,
    stacks: Vec<RawStack>,
    /// Hash of a stack -> index in `stacks`.
    by_hash: FxHashMap<u64, u32>,
    /// Index of the stack met last: a loop meets it again.
    last: usize,
    values: Vec<VALUE>,
    lines: Vec<c_int>,
    /// The method written in C that was met last, mostly Class#new; 0 if there is none.
    last_native: VALUE,
    /// Paths of files: strings of the VM that are marked, and so stay where they are.
    paths: FxHashSet<VALUE>,
}

impl Default for Frames {
    fn default() -> Self {
        Frames {
            known: FxHashMap::default(),
            unnamed: Vec::new(),
            stacks: Vec::new(),
            by_hash: FxHashMap::default(),
            last: 0,
            values: vec![0; MAX_FRAMES],
            lines: vec![0; MAX_FRAMES],
            last_native: 0,
            paths: FxHashSet::default(),
        }
    }
}

impl Frames {
    /// Reads the innermost `limit` frames of the current thread into the buffers.
    #[inline]
    fn read(&mut self, limit: usize) -> usize {
        let limit = limit.min(MAX_FRAMES);
        // SAFETY: both buffers hold MAX_FRAMES entries; called with the GVL or under the VM lock, in a hook.
        let count = unsafe {
            rb_sys::rb_profile_frames(
                0,
                limit as c_int,
                self.values.as_mut_ptr(),
                self.lines.as_mut_ptr(),
            )
        };
        usize::try_from(count).unwrap_or(0)
    }

    /// True for a method written in Ruby, whose line the JIT did not leave where rb_profile_frames reads it.
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

    /// The innermost Ruby frame alone, if it is a user's or memprof's own; `path` and `line` are what the event says of
    /// it. The path is kept alive from now on, so that its address names the file.
    pub fn single(&mut self, sites: &mut Sites, path: VALUE, line: u32) -> Option<Origin> {
        let count = self.read(SEARCH);
        for at in 0..count {
            let known = self.know(sites, self.values[at]);
            if known.native {
                continue;
            }
            self.paths.insert(path);
            if known.own {
                return Some(Origin::Own);
            }
            return known.user.then(|| {
                let place = sites.stack(None, known.id, line);
                Origin::Program(Found {
                    place,
                    stack: place,
                })
            });
        }
        None
    }

    /// Reads and interns a stack of at most `keep` frames. Its place is the innermost frame of a user's file, even if
    /// that is further out than the frames kept. `line` tells the innermost frame's line, should the JIT hide it.
    pub fn stack(&mut self, sites: &mut Sites, keep: usize, line: impl FnOnce() -> u32) -> Origin {
        let count = self.read(keep.max(SEARCH));
        if count == 0 {
            return Origin::Program(nowhere(sites));
        }
        if self.lines[0] == 0 && self.is_compiled(self.values[0]) {
            self.lines[0] = line() as c_int;
        }
        if self.remembers(self.last, count, keep) {
            return self.stacks[self.last].origin;
        }
        let (values, lines) = (&self.values[..count], &self.lines[..count]);
        let hash = hash(values, lines) ^ keep as u64;
        if let Some(index) = self.by_hash.get(&hash).map(|index| *index as usize) {
            if self.remembers(index, count, keep) {
                self.last = index;
                return self.stacks[index].origin;
            }
        }
        let (values, lines) = (values.into(), lines.into());
        let origin = self.intern(sites, count, keep);
        if self.stacks.len() >= REMEMBERED_STACKS {
            self.forget_stacks();
        }
        self.last = self.stacks.len();
        self.by_hash.insert(hash, self.last as u32);
        self.stacks.push(RawStack {
            values,
            lines,
            keep,
            origin,
        });
        origin
    }

    /// True if the stack just read is the one with this index.
    #[inline]
    fn remembers(&self, index: usize, count: usize, keep: usize) -> bool {
        self.stacks.get(index).is_some_and(|raw| {
            raw.keep == keep
                && *raw.values == self.values[..count]
                && *raw.lines == self.lines[..count]
        })
    }

    fn forget_stacks(&mut self) {
        self.stacks.clear();
        self.by_hash.clear();
        self.last_native = 0;
    }

    /// What the VM must keep, and not move: frames until they are named, and paths.
    pub fn pinned(&self) -> impl Iterator<Item = VALUE> + '_ {
        self.unnamed
            .iter()
            .map(|(frame, _)| *frame)
            .chain(self.paths.iter().copied())
    }

    fn intern(&mut self, sites: &mut Sites, count: usize, keep: usize) -> Origin {
        let mut kept = None;
        let mut place = None;
        let mut internal = None;
        let mut own = false;
        for at in (0..count).rev() {
            let (frame, line) = (self.values[at], self.lines[at] as u32);
            let known = self.know(sites, frame);
            // Ruby 3.1 shows the frame below the first one, which never runs.
            if line == 0 && !known.native && at > 0 {
                continue;
            }
            // Nor are memprof's own frames the program's: it did not call itself.
            if known.own {
                own = true;
                continue;
            }
            if at < keep {
                kept = Some(sites.stack(kept, known.id, line));
            }
            let here = if known.native {
                None
            } else {
                kept.or_else(|| Some(sites.stack(None, known.id, line)))
            };
            if known.user {
                (place, own) = (here, false);
            }
            internal = here.or(internal);
        }
        if own {
            return Origin::Own;
        }
        let Some(place) = place.or(internal) else {
            return Origin::Program(nowhere(sites));
        };
        Origin::Program(Found {
            place,
            stack: kept.unwrap_or(place),
        })
    }

    fn know(&mut self, sites: &mut Sites, frame: VALUE) -> Known {
        if let Some(known) = self.known.get(&frame) {
            return *known;
        }
        let key = key_of(frame);
        let (native, own) = (key.native.is_some(), is_own(&key.file));
        let user = !native && !own && !key.file.starts_with("<internal:") && !is_library(&key.file);
        let (id, new) = sites.frame(key);
        if new {
            self.unnamed.push((frame, id));
            super::naming::request();
        }
        let known = Known {
            id,
            native,
            user,
            own,
        };
        self.known.insert(frame, known);
        known
    }

    /// The object at this address is gone, or another one is there now. True if it was a frame that is known.
    pub fn forget(&mut self, address: VALUE) -> bool {
        let known = self.known.remove(&address).is_some();
        if known {
            self.forget_stacks();
        }
        known
    }

    /// Frames moved in memory. What is [`Frames::pinned`] did not.
    pub fn relocate(&mut self, moved: impl Fn(u64) -> Option<u64>) {
        let known = std::mem::take(&mut self.known);
        self.known = known
            .into_iter()
            .filter_map(|(at, known)| Some((moved(at)? as VALUE, known)))
            .collect();
        self.forget_stacks();
    }
}

/// A hash of frames and lines. In four lanes, since a processor multiplies several numbers in the time that one takes to
/// come out: fifty frames are hashed for each object.
#[inline]
fn hash(values: &[VALUE], lines: &[c_int]) -> u64 {
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let mix = |lane: u64, value: VALUE, line: c_int| {
        (lane.rotate_left(26) ^ value ^ (line as u64) << 44).wrapping_mul(FACTOR)
    };
    let (mut a, mut b, mut c, mut d) = (1, 2, 3, 4);
    let (value_chunks, line_chunks) = (values.chunks_exact(4), lines.chunks_exact(4));
    let rest = value_chunks.remainder().iter().zip(line_chunks.remainder());
    for (value, line) in value_chunks.zip(line_chunks) {
        (a, b) = (mix(a, value[0], line[0]), mix(b, value[1], line[1]));
        (c, d) = (mix(c, value[2], line[2]), mix(d, value[3], line[3]));
    }
    a = rest.fold(a, |lane, (value, line)| mix(lane, *value, *line));
    let join = |hash: u64, lane: u64| (hash.rotate_left(23) ^ lane).wrapping_mul(FACTOR);
    join(join(join(a, b), c), d)
}

/// Where objects are put that are born without a frame of Ruby code.
fn nowhere(sites: &mut Sites) -> Found {
    let key = FrameKey {
        file: String::new(),
        label: String::new(),
        first_line: 0,
        native: Some(0),
    };
    let (frame, _) = sites.frame(key);
    let place = sites.stack(None, frame, 0);
    Found {
        place,
        stack: place,
    }
}

/// The frame in which the VM loads a compiled extension has its path, and no line of it.
fn is_library(file: &str) -> bool {
    [".so", ".bundle", ".dll"]
        .iter()
        .any(|ending| file.ends_with(ending))
}

fn is_native(frame: VALUE) -> bool {
    // SAFETY: a frame that rb_profile_frames just wrote, so alive; returns nil or a Fixnum.
    let line = unsafe { rb_sys::rb_profile_frame_first_lineno(frame) };
    line == rb_sys::Qnil as VALUE
}

/// What is known of a frame without allocating a Ruby object: these functions return what the VM holds already.
fn key_of(frame: VALUE) -> FrameKey {
    if is_native(frame) {
        // SAFETY: a frame that is alive (see `is_native`).
        let label = unsafe { text(rb_sys::rb_profile_frame_method_name(frame)) };
        return FrameKey {
            file: String::new(),
            label: label.unwrap_or_default(),
            first_line: 0,
            native: Some(frame),
        };
    }
    // SAFETY: a frame that is alive (see `is_native`).
    unsafe {
        let line = rb_sys::rb_profile_frame_first_lineno(frame);
        FrameKey {
            file: text(rb_sys::rb_profile_frame_path(frame)).unwrap_or_default(),
            label: text(rb_sys::rb_profile_frame_base_label(frame)).unwrap_or_default(),
            // A Fixnum: the number shifted left by one.
            first_line: u32::try_from(line as usize >> 1).unwrap_or(0),
            native: None,
        }
    }
}
