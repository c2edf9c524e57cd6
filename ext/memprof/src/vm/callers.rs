//! Finds the application's frame of a stack: the line responsible for an object that library code allocates.
//!
//! A stack of a Rails request has a hundred frames, and each object of a gem needs this lookup. From one object to the next
//! most frames are unchanged, so only the iseq of each frame is read, and compared with the previous one. Frames beyond the
//! innermost [`DEEPEST`] are ignored: a deeply recursive program would pay for all of its stack with each object.

use rb_sys::VALUE;
use rustc_hash::FxHashMap;

use super::control_frames::ControlFrame;
use super::frame_keys::is_own;
use super::ruby_object::text;

/// Maximum frames to check, including C methods; a power of two.
const DEEPEST: usize = 256;

/// Flag in the address of an iseq, whose lowest bits are 0: it belongs to the application.
const APPLICATION: u64 = 1;

/// A frame of the application.
#[derive(Clone, Copy)]
pub struct Caller {
    /// Address of the instruction after the current one.
    pub instruction: u64,
    /// Its iseq.
    pub iseq: VALUE,
    /// Number of frames inside of it.
    pub inside: usize,
}

/// Cache of iseqs.
pub struct Callers {
    /// Whether they belong to the application.
    known: FxHashMap<VALUE, bool>,
    /// The iseq last seen in each frame, indexed by its depth from the outermost frame modulo [`DEEPEST`]; 0 for a C method.
    last: Box<[u64; DEEPEST]>,
}

impl Default for Callers {
    fn default() -> Self {
        Callers { known: FxHashMap::default(), last: Box::new([0; DEEPEST]) }
    }
}

impl Callers {
    /// The innermost frame of the application. `remember` is called with each new iseq; its address must not be reused before
    /// [`Callers::clear`].
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
                return Some(Caller { instruction: instruction as u64, iseq, inside });
            }
        }
        None
    }

    /// Checks a frame that has changed.
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

    /// Clears the cache: an iseq was freed or moved.
    pub fn clear(&mut self) {
        self.known.clear();
        self.last.fill(0);
    }

    /// Memory size of the table in bytes.
    pub fn memsize(&self) -> usize {
        self.known.capacity() * size_of::<(VALUE, bool)>() + size_of_val(&*self.last)
    }
}

/// True for a file of the application.
pub fn is_application(file: &str) -> bool {
    memprof_paths::is_application(file) && !is_own(file)
}
