//! Known stacks, as a tree of control frames; and the most recent stacks.
//!
//! Between two allocations of a thread only its innermost few frames change. Control frames are contiguous in memory, so those
//! that count are compared with the previous ones, and frames are only looked up from the outermost difference on: by their
//! caller's node and their code. Usually that is the node that came next last time, so that one is compared first: nodes are
//! stored in the order in which they were met, and the index is not in the processor's cache.
//!
//! The meaning of a node is read from the VM once ([`super::frames`]). A frame of Ruby code is identified by iseq, instruction, and
//! method, since two methods may share their code; a frame of C code by its method.
//! Everything is dropped as soon as an iseq or a method is freed or moved.
//!
//! Frames outside of the recorded part of a stack are not compared, so they may have changed. They are part of the node
//! nevertheless: its meaning is the same with any of them.

use rb_sys::VALUE;
use rustc_hash::FxHashMap;

use memprof_profile::sessions::SegmentId;

use super::control_frames::{ControlFrame, Entry};
use super::origin::Origin;

/// Maximum control frames of a stack to remember.
const DEEPEST: usize = 4096;

/// Maximum number of nodes: some 32 MB.
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

/// The cell of the objects last allocated by a stack.
#[derive(Clone, Copy)]
pub struct Counted {
    /// Class word, or its substitute.
    pub class: u64,
    /// The instruction of the application's frame if it must be compared, as it is not among the frames that count;
    /// [`NO_CALLER`]: there must be no such frame; 0: any.
    pub caller: u64,
    /// Segment.
    pub segment: SegmentId,
    /// [`super::places::Places::epoch`] at that time; 0: no cell is known.
    pub epoch: u32,
    /// The cell's number as in the place cache.
    pub cell: u32,
}

/// In place of an instruction: no frame belongs to the application.
pub const NO_CALLER: u64 = u64::MAX;

/// A node: one cache line.
#[repr(align(64))]
struct Branch {
    runs: Runs,
    caller: u32,
    /// The node with the same caller that came after this one.
    next: u32,
    /// The first node below this one when its frame was called.
    inner: u32,
    /// The parts of a [`Counted`].
    cell: u32,
    epoch: u32,
    segment: SegmentId,
    class: u64,
    application: u64,
}

const _: () = assert!(size_of::<Branch>() == 64);

impl Branch {
    fn new(caller: u32, runs: Runs) -> Branch {
        Branch {
            runs,
            caller,
            next: ROOT,
            inner: ROOT,
            cell: 0,
            epoch: 0,
            segment: SegmentId(0),
            class: 0,
            application: 0,
        }
    }
}

/// The node without a frame.
const ROOT: u32 = 0;

/// Origin of a stack with this many recorded frames.
#[derive(Clone, Copy)]
struct Known {
    keep: usize,
    origin: Origin,
}

/// The tree.
#[derive(Default)]
pub struct StackTree {
    /// Nodes by number; the first one has no frame.
    nodes: Vec<Branch>,
    /// Their numbers by their caller and their code.
    index: FxHashMap<(u32, Runs), u32>,
    /// Known origins by node number.
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
        let StackTree { nodes, index, known, lasts, .. } = self;
        if nodes.is_empty() {
            nodes.push(Branch::new(ROOT, Runs { instruction: 0, iseq: 0, method: 0 }));
            known.push(None);
        }
        let last = &mut lasts[at];
        // SAFETY: guaranteed by the caller.
        let (same, counting) = unsafe { last.compare(stack, wanted as u32) };
        // The node in place of the first one to look up, with the same caller.
        let mut previous = last.reached.get(same).map_or(ROOT, |reached| reached.node);
        last.forget(same);
        let mut node = last.reached.last().map_or(ROOT, |reached| reached.node);
        for frame in stack[..stack.len() - same].iter().rev() {
            // SAFETY: guaranteed by the caller.
            let (entry, method) = unsafe { frame.entry() };
            let code = frame.instruction();
            let runs = Runs {
                instruction: code.unwrap_or(0),
                iseq: code.map_or(0, |_| frame.iseq()),
                method,
            };
            let expected = match previous {
                ROOT => nodes[node as usize].inner,
                _ => nodes[previous as usize].next,
            };
            let is_next = expected != ROOT && {
                let one = &nodes[expected as usize];
                one.caller == node && one.runs == runs
            };
            let inner = if is_next {
                expected
            } else {
                let inner = *index.entry((node, runs)).or_insert_with(|| {
                    if code.is_some() {
                        remember(frame.iseq());
                    }
                    nodes.push(Branch::new(node, runs));
                    known.push(None);
                    nodes.len() as u32 - 1
                });
                match previous {
                    ROOT => nodes[node as usize].inner = inner,
                    _ => nodes[previous as usize].next = inner,
                }
                inner
            };
            (node, previous) = (inner, ROOT);
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

    /// The cell of the objects last allocated by a stack.
    #[inline]
    pub fn counted(&self, node: Node) -> Option<Counted> {
        self.nodes.get(node.number as usize).map(|one| Counted {
            class: one.class,
            caller: one.application,
            segment: one.segment,
            epoch: one.epoch,
            cell: one.cell,
        })
    }

    /// Stores the cell of the objects that a stack allocates.
    #[inline]
    pub fn count(&mut self, node: Node, counted: Counted) {
        if let Some(one) = self.nodes.get_mut(node.number as usize) {
            let Counted { class, caller, segment, epoch, cell } = counted;
            (one.class, one.application, one.segment) = (class, caller, segment);
            (one.epoch, one.cell) = (epoch, cell);
        }
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
        self.index.clear();
        self.known.clear();
        self.lasts.iter_mut().for_each(|last| {
            last.context = 0;
            last.forget(0);
        });
    }

    /// Memory size in bytes.
    pub fn memsize(&self) -> usize {
        let lasts = self.lasts.iter();
        self.nodes.capacity() * size_of::<Branch>()
            + self.index.capacity() * size_of::<((u32, Runs), u32)>()
            + self.known.capacity() * size_of::<Option<Known>>()
            + lasts.map(|last| last.frames.capacity() * size_of::<(Kept, Reached)>()).sum::<usize>()
    }
}
