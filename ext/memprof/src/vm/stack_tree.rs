//! Known stacks, as a tree of control frames; and the most recent stacks.
//!
//! Between two allocations of a thread only its innermost few frames change. Control frames are contiguous in memory, so those
//! that count are compared with the previous ones, and frames are only looked up from the outermost difference on: by their
//! caller's node and their code. The meaning of a node is read from the VM once ([`super::frames`]). A frame of Ruby code is
//! identified by iseq, instruction, and method, since two methods may share their code; a frame of C code by its method.
//! Everything is dropped as soon as an iseq or a method is freed or moved.
//!
//! Frames outside of the recorded part of a stack are not compared, so they may have changed. They are part of the node
//! nevertheless: its meaning is the same with any of them.

use rb_sys::VALUE;
use rustc_hash::FxHashMap;

use super::control_frames::{ControlFrame, Entry};
use super::origin::Origin;

/// Maximum control frames of a stack to remember.
const DEEPEST: usize = 4096;

/// Maximum number of nodes: some 16 MB.
const MOST: usize = 1 << 18;

/// Number of recent stacks: threads and fibers alternate.
const LASTS: usize = 8;

/// The code of a control frame.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Runs {
    /// Address of the instruction after the current one; 0 for a C method.
    instruction: usize,
    /// 0 for a C method.
    iseq: VALUE,
    /// The method, for a method's frame, or else 0.
    method: VALUE,
}

/// The state of a frame that doesn't change while the frame exists.
#[derive(Clone, Copy)]
struct Kept {
    instruction: usize,
    iseq: VALUE,
    receiver: VALUE,
    /// The entry word for a C method; 0 for Ruby code, where the same code with the same receiver means the same method.
    word: VALUE,
}

impl Kept {
    /// Whether a frame is certainly unchanged.
    ///
    /// # Safety
    /// A frame of the running thread, whose layout is known.
    #[inline(always)]
    unsafe fn is(&self, frame: &ControlFrame) -> bool {
        frame.word_of_instruction() == self.instruction
            && frame.iseq() == self.iseq
            && frame.receiver() == self.receiver
            // SAFETY: guaranteed by the caller.
            && (self.word == 0 || unsafe { frame.entry_word() } == self.word)
    }
}

/// Not a valid word: the frame is always checked in detail.
const SPECIAL: VALUE = 1;

/// Further data of a frame.
#[derive(Clone, Copy)]
struct Reached {
    node: u32,
    /// Number of frames of Ruby code up to this one.
    rank: u32,
    entry: Entry,
    is_code: bool,
}

/// A recent stack, outermost frame first.
#[derive(Default)]
struct Last {
    /// The address of the thread's or the fiber's context, or 0 if unused.
    context: usize,
    frames: Vec<Kept>,
    reached: Vec<Reached>,
}

impl Last {
    /// How many of the outermost frames are unchanged, and how many of the innermost were checked: those that contain `wanted`
    /// frames of Ruby code.
    ///
    /// # Safety
    /// The frames are those of the running thread, whose layout is known.
    #[inline]
    unsafe fn compare(&mut self, stack: &[ControlFrame], wanted: u32) -> (usize, usize) {
        let depth = stack.len();
        let mut same = self.frames.len().min(depth);
        let mut left = wanted;
        let mut inside = 0;
        while left > 0 && inside < depth {
            let at = depth - 1 - inside;
            let frame = &stack[inside];
            // SAFETY: guaranteed by the caller.
            if at >= self.frames.len() || !unsafe { self.is(at, frame) } {
                same = at;
                left -= u32::from(frame.instruction().is_some());
                inside += 1;
                continue;
            }
            // Unchanged, and so are mostly all frames outside of it.
            let rank = self.reached[at].rank;
            let outer = match rank.checked_sub(left) {
                Some(enough) => self.reached[..=at].partition_point(|one| one.rank <= enough),
                None => 0,
            };
            let run = self.frames[outer..at].iter().rev().zip(&stack[inside + 1..]);
            // SAFETY: guaranteed by the caller.
            let run = run.take_while(|(kept, frame)| unsafe { kept.is(frame) }).count();
            left -=
                rank - (self.reached[at - run].rank - u32::from(self.reached[at - run].is_code));
            inside += 1 + run;
            if at - run == outer {
                break;
            }
        }
        (same, inside)
    }

    /// Whether a frame is unchanged, with a detailed check.
    ///
    /// # Safety
    /// A frame of the running thread, whose layout is known.
    #[inline(always)]
    unsafe fn is(&mut self, at: usize, frame: &ControlFrame) -> bool {
        // SAFETY: guaranteed by the caller.
        unsafe { self.frames[at].is(frame) || self.is_still(at, frame) }
    }

    /// The detailed check, for a frame with another receiver, or a C method called from JIT code.
    unsafe fn is_still(&mut self, at: usize, frame: &ControlFrame) -> bool {
        let (kept, reached) = (&mut self.frames[at], &self.reached[at]);
        // SAFETY: guaranteed by the caller.
        let is_same =
            frame.is(kept.instruction, kept.iseq) && unsafe { reached.entry.is_that_of(frame) };
        if is_same {
            kept.receiver = frame.receiver();
            kept.instruction = frame.word_of_instruction();
        }
        is_same
    }

    fn push(&mut self, frame: &ControlFrame, entry: Entry, node: u32) {
        let is_code = frame.instruction().is_some();
        self.frames.push(Kept {
            instruction: frame.word_of_instruction(),
            iseq: frame.iseq(),
            receiver: frame.receiver(),
            word: match entry {
                _ if is_code => 0,
                Entry::Method(word) => word,
                _ => SPECIAL,
            },
        });
        let rank = self.reached.last().map_or(0, |outer| outer.rank);
        self.reached.push(Reached { node, rank: rank + u32::from(is_code), entry, is_code });
    }

    fn forget(&mut self, from: usize) {
        self.frames.truncate(from);
        self.reached.truncate(from);
    }
}

/// The end of a stack.
#[derive(Clone, Copy)]
pub struct Node {
    /// Node number.
    pub number: u32,
    /// Changes whenever node numbers may be reassigned to other stacks.
    pub generation: u32,
    /// Number of innermost control frames that count: if one of these changes, so does the node.
    pub frames: usize,
}

/// Origin of a stack with this many recorded frames.
#[derive(Clone, Copy)]
struct Known {
    keep: usize,
    origin: Origin,
}

/// The tree.
#[derive(Default)]
pub struct StackTree {
    /// Nodes by their caller and their code.
    nodes: FxHashMap<(u32, Runs), u32>,
    /// Known origins by node number; the first node has no frame.
    known: Vec<Option<Known>>,
    lasts: [Last; LASTS],
    /// Index of the next entry to replace.
    next: usize,
    generation: u32,
}

impl StackTree {
    /// The node of a stack with this many frames that count. `remember` is called with each iseq that must not be freed without
    /// a call of [`StackTree::clear`]. None if the stack is too deep.
    ///
    /// # Safety
    /// The frames are those of the running thread, whose layout is known.
    #[inline]
    pub unsafe fn node(
        &mut self,
        context: usize,
        stack: &[ControlFrame],
        wanted: usize,
        mut remember: impl FnMut(VALUE),
    ) -> Option<Node> {
        if stack.len() > DEEPEST {
            return None;
        }
        if self.nodes.len() >= MOST {
            self.clear();
        }
        let at = match self.lasts.iter().position(|last| last.context == context) {
            Some(at) => at,
            None => self.replace(context),
        };
        let StackTree { nodes, known, lasts, .. } = self;
        let last = &mut lasts[at];
        // SAFETY: guaranteed by the caller.
        let (same, counting) = unsafe { last.compare(stack, wanted as u32) };
        last.forget(same);
        let mut node = last.reached.last().map_or(0, |reached| reached.node);
        for frame in stack[..stack.len() - same].iter().rev() {
            // SAFETY: guaranteed by the caller.
            let (entry, method) = unsafe { frame.entry() };
            let code = frame.instruction();
            let runs = Runs {
                instruction: code.unwrap_or(0),
                iseq: code.map_or(0, |_| frame.iseq()),
                method,
            };
            node = *nodes.entry((node, runs)).or_insert_with(|| {
                if code.is_some() {
                    remember(frame.iseq());
                }
                known.resize(known.len().max(1), None);
                known.push(None);
                known.len() as u32 - 1
            });
            last.push(frame, entry, node);
        }
        Some(Node { number: node, generation: self.generation, frames: counting })
    }

    /// Assigns an entry to a context without a recent stack.
    #[cold]
    fn replace(&mut self, context: usize) -> usize {
        let at = self.next;
        self.next = (self.next + 1) % LASTS;
        self.lasts[at].context = context;
        self.lasts[at].forget(0);
        at
    }

    /// The origin of a stack.
    #[inline]
    pub fn origin(&self, node: Node, keep: usize) -> Option<Origin> {
        let known = self.known.get(node.number as usize).copied().flatten();
        known.filter(|known| known.keep == keep).map(|known| known.origin)
    }

    /// Stores the origin of a stack.
    pub fn learn(&mut self, node: Node, keep: usize, origin: Origin) {
        if let Some(known) = self.known.get_mut(node.number as usize) {
            *known = Some(Known { keep, origin });
        }
    }

    /// Clears everything: an iseq or a method was freed or moved.
    pub fn clear(&mut self) {
        self.generation = self.generation.wrapping_add(1);
        self.nodes.clear();
        self.known.clear();
        self.lasts.iter_mut().for_each(|last| {
            last.context = 0;
            last.forget(0);
        });
    }

    /// Memory size in bytes.
    pub fn memsize(&self) -> usize {
        let lasts = self.lasts.iter();
        self.nodes.capacity() * size_of::<((u32, Runs), u32)>()
            + self.known.capacity() * size_of::<Option<Known>>()
            + lasts.map(|last| last.frames.capacity() * size_of::<(Kept, Reached)>()).sum::<usize>()
    }
}
