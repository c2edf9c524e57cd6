//! Which frame of a stack is the application's: the line behind an object that library code allocates.
//!
//! A stack of a Rails request is a hundred frames deep, and each object of a gem asks this. From one object to the next most
//! frames stay where they are. So only the iseq of each is read, and compared with what was there last. What is outside of
//! the last of [`DEEPEST`] frames is not looked at: a program that recurses would pay for all of its stack with each object.

use rb_sys::VALUE;
use rustc_hash::FxHashMap;

use super::control_frames::ControlFrame;
use super::frame_keys::is_own;
use super::ruby_object::text;

/// Frames that are looked at, methods in C among them; a power of two.
const DEEPEST: usize = 256;

/// Beside the address of an iseq, whose lowest bits are 0: it is the application's.
const APPLICATION: u64 = 1;

/// A frame of the application.
#[derive(Clone, Copy)]
pub struct Caller {
    /// The instruction behind the one that runs.
    pub instruction: u64,
    /// Its iseq.
    pub iseq: VALUE,
    /// Frames inside of it.
    pub inside: usize,
}

/// What is known of iseqs.
pub struct Callers {
    /// Whether they are the application's.
    known: FxHashMap<VALUE, bool>,
    /// What each frame ran when it was looked at last, by its number from the outermost one on, modulo their number here; 0 for
    /// a method in C.
    last: Box<[u64; DEEPEST]>,
}

impl Default for Callers {
    fn default() -> Self {
        Callers {
            known: FxHashMap::default(),
            last: Box::new([0; DEEPEST]),
        }
    }
}

impl Callers {
    /// The innermost of the frames that is the application's. `remember` is called with each iseq that was not known, whose
    /// address is not to name another one before [`Callers::clear`].
    #[inline]
    pub fn find(
        &mut self,
        frames: &[ControlFrame],
        mut remember: impl FnMut(VALUE),
    ) -> Option<Caller> {
        for (inside, frame) in frames.iter().take(DEEPEST).enumerate() {
            let at = (frames.len() - 1 - inside) % DEEPEST;
            let iseq = frame.iseq();
            let known = self.last[at];
            if known == iseq {
                continue;
            }
            if known != iseq | APPLICATION && !self.is_application(at, frame, &mut remember) {
                continue;
            }
            if let Some(instruction) = frame.instruction() {
                return Some(Caller {
                    instruction: instruction as u64,
                    iseq,
                    inside,
                });
            }
        }
        None
    }

    /// Looks at a frame that is another one than last time.
    fn is_application(
        &mut self,
        at: usize,
        frame: &ControlFrame,
        remember: &mut impl FnMut(VALUE),
    ) -> bool {
        let iseq = frame.iseq();
        let own = frame.instruction().map(|_| match self.known.get(&iseq) {
            Some(&own) => own,
            None => {
                remember(iseq);
                self.meet(iseq)
            }
        });
        self.last[at] = own.map_or(0, |own| iseq | if own { APPLICATION } else { 0 });
        own.unwrap_or(false)
    }

    #[cold]
    fn meet(&mut self, iseq: VALUE) -> bool {
        // SAFETY: the iseq of a frame that runs, so alive, and its path with it.
        let file = unsafe { text(rb_sys::rb_profile_frame_path(iseq)) }.unwrap_or_default();
        let own = is_application(&file);
        self.known.insert(iseq, own);
        own
    }

    /// Forgets all: an iseq is gone or has moved.
    pub fn clear(&mut self) {
        self.known.clear();
        self.last.fill(0);
    }

    /// Bytes that the table takes.
    pub fn memsize(&self) -> usize {
        self.known.capacity() * size_of::<(VALUE, bool)>() + size_of_val(&*self.last)
    }
}

/// True for a file of the application.
pub fn is_application(file: &str) -> bool {
    memprof_paths::is_application(file) && !is_own(file)
}
