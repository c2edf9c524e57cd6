//! Stacks that were met, as a tree of control frames; and the last stacks.
//!
//! Between two allocations of a thread only the innermost few of its frames change. Control frames lie side by side in
//! memory, so those that count are compared with what was there last, and only from the outermost difference on frames are
//! looked up: each by its caller's node and by what it runs. What a node stands for was read from the VM once
//! ([`super::frames`]). A frame of Ruby code is the iseq and the instruction, and the method that it is of, since two methods
//! may share their code; one in C is its method. Everything is forgotten as soon as an iseq or a method is freed or moves.
//!
//! Frames outside of those that are kept of a stack are not looked at, so they may be others by now. They are a part of
//! the node nevertheless: what it stands for is the same with any of them.

use rb_sys::VALUE;
use rustc_hash::FxHashMap;

use super::control_frames::{ControlFrame, Entry};
use super::origin::Origin;

/// Control frames of the deepest stack that is remembered.
const DEEPEST: usize = 4096;

/// Nodes, at most: some 16 MB.
const MOST: usize = 1 << 18;

/// Stacks that are remembered: threads and fibers take turns.
const LASTS: usize = 8;

/// What a control frame runs.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Runs {
    /// The instruction behind the one that runs; 0 of a method in C.
    instruction: usize,
    /// 0 of a method in C.
    iseq: VALUE,
    /// The method, of the frame of a method; else 0.
    method: VALUE,
}

/// A frame as it was: what is the same as long as the frame is.
#[derive(Clone, Copy)]
struct Kept {
    instruction: usize,
    iseq: VALUE,
    receiver: VALUE,
    /// The word of a method in C; 0 of Ruby code, where the same code on the same receiver is of the same method.
    word: VALUE,
}

impl Kept {
    /// Whether a frame is surely as it was.
    ///
    /// # Safety
    /// A frame of the running thread, whose layout is known.
    #[inline(always)]
    unsafe fn is(&self, frame: &ControlFrame) -> bool {
        frame.word_of_instruction() == self.instruction
            && frame.iseq() == self.iseq
            && frame.receiver() == self.receiver
            // SAFETY: the caller's.
            && (self.word == 0 || unsafe { frame.entry_word() } == self.word)
    }
}

/// No word of a frame: it is looked at more closely each time.
const SPECIAL: VALUE = 1;

/// What else is known of it.
#[derive(Clone, Copy)]
struct Reached {
    node: u32,
    /// Frames of Ruby code up to this one.
    rank: u32,
    entry: Entry,
    is_code: bool,
}

/// A stack as it was, outermost frame first.
#[derive(Default)]
struct Last {
    /// The address of the thread's or the fiber's context; 0: none.
    context: usize,
    frames: Vec<Kept>,
    reached: Vec<Reached>,
}

impl Last {
    /// How many of the outermost frames are as they were, and how many of the innermost were looked at: those that have so
    /// many frames of Ruby code.
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
            // SAFETY: the caller's.
            if at >= self.frames.len() || !unsafe { self.is(at, frame) } {
                same = at;
                left -= u32::from(frame.instruction().is_some());
                inside += 1;
                continue;
            }
            // As it was, and mostly all that are further out are, too.
            let rank = self.reached[at].rank;
            let outer = match rank.checked_sub(left) {
                Some(enough) => self.reached[..=at].partition_point(|one| one.rank <= enough),
                None => 0,
            };
            let run = self.frames[outer..at]
                .iter()
                .rev()
                .zip(&stack[inside + 1..]);
            // SAFETY: the caller's.
            let run = run
                .take_while(|(kept, frame)| unsafe { kept.is(frame) })
                .count();
            left -=
                rank - (self.reached[at - run].rank - u32::from(self.reached[at - run].is_code));
            inside += 1 + run;
            if at - run == outer {
                break;
            }
        }
        (same, inside)
    }

    /// Whether a frame is as it was, at a closer look.
    ///
    /// # Safety
    /// A frame of the running thread, whose layout is known.
    #[inline(always)]
    unsafe fn is(&mut self, at: usize, frame: &ControlFrame) -> bool {
        // SAFETY: the caller's.
        unsafe { self.frames[at].is(frame) || self.is_still(at, frame) }
    }

    /// The same, if it has another receiver, or a method in C is called from code of a JIT.
    unsafe fn is_still(&mut self, at: usize, frame: &ControlFrame) -> bool {
        let (kept, reached) = (&mut self.frames[at], &self.reached[at]);
        // SAFETY: the caller's.
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
        self.reached.push(Reached {
            node,
            rank: rank + u32::from(is_code),
            entry,
            is_code,
        });
    }

    fn forget(&mut self, from: usize) {
        self.frames.truncate(from);
        self.reached.truncate(from);
    }
}

/// What a stack ends with.
#[derive(Clone, Copy)]
pub struct Node {
    /// Its number.
    pub number: u32,
    /// Another one whenever the numbers may stand for other stacks than before.
    pub generation: u32,
    /// The innermost control frames that count; if one of these is another one, so is the node.
    pub frames: usize,
}

/// What a stack stands for, of which so many frames are kept.
#[derive(Clone, Copy)]
struct Known {
    keep: usize,
    origin: Origin,
}

/// The tree.
#[derive(Default)]
pub struct StackTree {
    /// Nodes by their caller and by what they run.
    nodes: FxHashMap<(u32, Runs), u32>,
    /// What is known of nodes, by number; the first is that of no frame.
    known: Vec<Option<Known>>,
    lasts: [Last; LASTS],
    /// The one that is replaced next.
    next: usize,
    generation: u32,
}

impl StackTree {
    /// The node of a stack, of which so many frames count. `remember` is called with each iseq that is not to be freed
    /// without a call of [`StackTree::clear`]. None if the stack is too deep.
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
        let StackTree {
            nodes,
            known,
            lasts,
            ..
        } = self;
        let last = &mut lasts[at];
        // SAFETY: the caller's.
        let (same, counting) = unsafe { last.compare(stack, wanted as u32) };
        last.forget(same);
        let mut node = last.reached.last().map_or(0, |reached| reached.node);
        for frame in stack[..stack.len() - same].iter().rev() {
            // SAFETY: the caller's.
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
        Some(Node {
            number: node,
            generation: self.generation,
            frames: counting,
        })
    }

    /// A place for the last stack of a context that has none.
    #[cold]
    fn replace(&mut self, context: usize) -> usize {
        let at = self.next;
        self.next = (self.next + 1) % LASTS;
        self.lasts[at].context = context;
        self.lasts[at].forget(0);
        at
    }

    /// What a stack stands for.
    #[inline]
    pub fn origin(&self, node: Node, keep: usize) -> Option<Origin> {
        let known = self.known.get(node.number as usize).copied().flatten();
        known
            .filter(|known| known.keep == keep)
            .map(|known| known.origin)
    }

    /// Says what a stack stands for.
    pub fn learn(&mut self, node: Node, keep: usize, origin: Origin) {
        if let Some(known) = self.known.get_mut(node.number as usize) {
            *known = Some(Known { keep, origin });
        }
    }

    /// Forgets all: an iseq or a method is gone or has moved.
    pub fn clear(&mut self) {
        self.generation = self.generation.wrapping_add(1);
        self.nodes.clear();
        self.known.clear();
        self.lasts.iter_mut().for_each(|last| {
            last.context = 0;
            last.forget(0);
        });
    }

    /// Bytes that it takes.
    pub fn memsize(&self) -> usize {
        let lasts = self.lasts.iter();
        self.nodes.capacity() * size_of::<((u32, Runs), u32)>()
            + self.known.capacity() * size_of::<Option<Known>>()
            + lasts
                .map(|last| last.frames.capacity() * size_of::<(Kept, Reached)>())
                .sum::<usize>()
    }
}
