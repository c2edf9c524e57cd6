//! The allocator of a process, and whether its blocks are known.

use crate::analysis::Analysis;
use crate::glibc::GlibcHeap;
use crate::image::Image;
use crate::ruby_pages::RubyPages;

/// Allocators whose blocks cannot be read, by their libraries.
const OTHERS: [(&str, &str); 5] = [
    ("libjemalloc", "jemalloc"),
    ("libtcmalloc", "tcmalloc"),
    ("libmimalloc", "mimalloc"),
    ("ld-musl", "musl"),
    ("libc.musl", "musl"),
];

impl Analysis {
    /// `glibc`, or the allocator whose library is loaded; None if unknown.
    #[must_use]
    pub fn allocator(&self) -> Option<&'static str> {
        let glibc = || (!self.heap.arenas.is_empty()).then_some("glibc");
        loaded(&self.image).or_else(glibc)
    }

    /// Why the blocks of malloc cannot be counted; None if they can.
    #[must_use]
    pub fn unknown_blocks(&self) -> Option<String> {
        if !self.heap.arenas.is_empty() {
            return None;
        }
        Some(match loaded(&self.image) {
            Some(other) => format!("the process uses {other}, whose blocks memprof cannot read"),
            None => {
                "no arena of glibc's malloc (2.31 to 2.43) was found, so its blocks are not known"
                    .to_owned()
            }
        })
    }

    /// The second allocator, beside glibc's, whose blocks are missing in each answer.
    #[must_use]
    pub fn uncounted_allocator(&self) -> Option<&'static str> {
        let other = loaded(&self.image);
        other.filter(|_| !self.heap.arenas.is_empty())
    }
}

/// The heap if the program uses it; else an empty one. A process with another allocator also has a glibc arena if libc or the
/// loader called malloc before that allocator was loaded. Ruby allocates its page descriptors with malloc; for other programs
/// only the loaded libraries are known.
pub(crate) fn of_program(heap: GlibcHeap, ruby: &RubyPages, image: &Image) -> GlibcHeap {
    let mut descriptions = (ruby.pages.iter())
        .map(|page| page.heap_page)
        .filter(|&address| image.word(address).is_some())
        .peekable();
    let is_used = if descriptions.peek().is_some() {
        descriptions.any(|address| {
            let holds = |range: std::ops::Range<u64>| range.contains(&address);
            heap.heaps().any(holds) || heap.mapped.iter().cloned().any(holds)
        })
    } else {
        loaded(image).is_none()
    };
    if is_used { heap } else { GlibcHeap::default() }
}

/// The allocator whose library is loaded.
fn loaded(image: &Image) -> Option<&'static str> {
    let names = || (image.files.iter()).map(|path| path.rsplit('/').next().unwrap_or(path));
    let is_loaded = |library: &str| names().any(|name| name.starts_with(library));
    let other = OTHERS.iter().find(|(library, _)| is_loaded(library));
    other.map(|(_, allocator)| *allocator)
}
