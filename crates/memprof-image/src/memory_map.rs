//! Classifies the writable memory of a process.

use std::ops::Range;

use serde::Serialize;

use crate::glibc::GlibcHeap;
use crate::image::Image;
use crate::ranges;
use crate::ruby_pages::RubyPages;
use crate::segment::Segment;
use crate::transient_heap;

/// A function may have variables below the stack pointer (the red zone of x86-64).
const RED_ZONE: u64 = 128;
/// The size of libc's data behind the thread pointer.
const THREAD: u64 = 0x900;
const PAGE: u64 = 4096;

/// The kind of place from which a reference anchors a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Anchor {
    /// A register of a thread.
    Register,
    /// The used part of a thread's stack.
    Stack,
    /// A variable of the program or a library.
    Static,
    /// Memory outside of malloc and Ruby's heap: another allocator's, stacks of fibers, thread-local variables.
    External,
}

/// The writable memory of a process, in ranges.
#[derive(Debug, Default)]
pub struct MemoryMap {
    /// The used part of each thread's stack, in the order of the threads.
    pub stacks: Vec<Range<u64>>,
    /// Variables of the program and its libraries.
    pub statics: Vec<Range<u64>>,
    /// All other memory, except malloc's and Ruby's.
    pub external: Vec<Range<u64>>,
}

impl MemoryMap {
    /// Classifies the memory outside of malloc and Ruby's heap.
    #[must_use]
    pub fn new(image: &Image, heap: &GlibcHeap, ruby: &RubyPages) -> MemoryMap {
        let stacks = image.threads.iter().map(|thread| {
            let at = thread.stack_pointer.saturating_sub(RED_ZONE);
            let Some(segment) = image.segment(thread.stack_pointer) else {
                return 0..0;
            };
            let own = thread
                .thread_pointer
                .filter(|pointer| (thread.stack_pointer..segment.end).contains(pointer));
            let end = own.map_or(segment.end, |pointer| {
                (pointer + THREAD).next_multiple_of(PAGE).min(segment.end)
            });
            at.max(segment.start)..end
        });
        let stacks: Vec<Range<u64>> = stacks.collect();
        // Below the stack pointer are the remains of earlier calls.
        let unused = (stacks.iter())
            .filter_map(|stack| Some(image.segment(stack.start)?.start..stack.start));
        let taken = (stacks.iter().cloned())
            .chain(unused)
            .chain(heap.heaps())
            .chain(heap.arenas.iter().map(crate::glibc::Arena::range))
            .chain(heap.mapped.iter().cloned())
            .chain(ruby.ranges());
        let taken = ranges::sorted(taken.collect());
        let statics = ranges::sorted(static_segments(image).map(Segment::readable).collect());
        let all = image.writable_runs(|_| true);
        let rest = ranges::without(&all, &taken);
        let mut external = ranges::without(&rest, &statics);
        if !ruby.pages.is_empty() {
            let unused = transient_heap::unused(image, &external);
            external = ranges::without(&external, &unused);
        }
        external = ranges::without(&external, &stacks_of_ended_threads(image));
        MemoryMap { stacks, statics: ranges::without(&statics, &taken), external }
    }

    /// The kind of anchor at an address.
    #[must_use]
    pub fn anchor_at(&self, address: u64) -> Option<Anchor> {
        if self.stacks.iter().any(|stack| stack.contains(&address)) {
            return Some(Anchor::Stack);
        }
        let lies_in = |all| ranges::containing(all, address).is_some();
        if lies_in(&self.statics) {
            Some(Anchor::Static)
        } else {
            lies_in(&self.external).then_some(Anchor::External)
        }
    }
}

/// Stacks that libc caches for new threads after theirs have ended: they do not retain anything. At the end of each is libc's
/// thread descriptor, which contains its own address; the kernel clears the thread id when a thread ends.
fn stacks_of_ended_threads(image: &Image) -> Vec<Range<u64>> {
    // On x86-64: `struct pthread` begins with `tcbhead_t` (tcb, dtv, self), and has `tid` at this offset.
    const SELF: u64 = 0x10;
    const TID: u64 = 0x2d0;
    let ended = |segment: &&Segment| {
        let live = |address| {
            let mut threads = image.threads.iter();
            threads.any(|thread| thread.thread_pointer == Some(address))
        };
        let places = (segment.end.saturating_sub(PAGE)..segment.end).step_by(16);
        let mut descriptors = places.filter(|address| {
            let word = |offset| image.word(address + offset);
            word(0) == Some(*address) && word(SELF) == Some(*address)
        });
        descriptors.any(|address| {
            let number = image.word(address + TID).map(|word| word as i32);
            !live(address) && number.is_some_and(|number| number <= 0)
        })
    };
    let stacks = image.segments.iter().filter(|segment| {
        segment.access.write && segment.file.is_none() && segment.end - segment.start > PAGE
    });
    let stacks = stacks.filter(ended).map(|stack| stack.start..stack.end);
    ranges::sorted(stacks.collect())
}

/// Writable memory of files, and adjacent memory: variables initialized to zero.
fn static_segments(image: &Image) -> impl Iterator<Item = &Segment> {
    let mut end = None;
    image.segments.iter().filter(move |segment| {
        let continues = end == Some(segment.start) && segment.is_anonymous();
        let is_static = segment.access.write && segment.file.is_some();
        end = if segment.file.is_some() { Some(segment.end) } else { None };
        is_static || continues
    })
}
