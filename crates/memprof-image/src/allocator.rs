//! The allocator of a process, and whether its blocks are known.

use crate::analysis::Analysis;

/// Allocators whose blocks are not read, by their libraries.
const OTHERS: [(&str, &str); 5] = [
    ("libjemalloc", "jemalloc"),
    ("libtcmalloc", "tcmalloc"),
    ("libmimalloc", "mimalloc"),
    ("ld-musl", "musl"),
    ("libc.musl", "musl"),
];

impl Analysis {
    /// `glibc`, or the allocator whose library is loaded; None if neither is known.
    #[must_use]
    pub fn allocator(&self) -> Option<&'static str> {
        let glibc = || (!self.heap.arenas.is_empty()).then_some("glibc");
        self.other_allocator().or_else(glibc)
    }

    /// Why the blocks of malloc cannot be counted; None if they can.
    #[must_use]
    pub fn unknown_blocks(&self) -> Option<String> {
        if !self.heap.arenas.is_empty() {
            return None;
        }
        Some(match self.other_allocator() {
            Some(other) => format!("the process uses {other}, whose blocks memprof cannot read"),
            None => {
                "no arena of glibc's malloc (2.31 to 2.43) was found, so its blocks are not known"
                    .to_owned()
            }
        })
    }

    /// The allocator beside glibc's whose blocks are missing in each answer.
    #[must_use]
    pub fn uncounted_allocator(&self) -> Option<&'static str> {
        let other = self.other_allocator();
        other.filter(|_| !self.heap.arenas.is_empty())
    }

    fn other_allocator(&self) -> Option<&'static str> {
        let files = self.image.files.iter();
        let names = || {
            files
                .clone()
                .map(|path| path.rsplit('/').next().unwrap_or(path))
        };
        let is_loaded = |library: &str| names().any(|name| name.starts_with(library));
        let other = OTHERS.iter().find(|(library, _)| is_loaded(library));
        other.map(|(_, allocator)| *allocator)
    }
}
