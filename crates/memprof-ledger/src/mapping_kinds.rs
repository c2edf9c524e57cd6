//! The kind of each mapping, from its name, its permissions and its neighbors.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::pagemap::{Pagemap, overlaps};
use super::smaps::Mapping;

/// Resident bytes of mappings by kind, without the pages of Ruby's heap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Kinds {
    /// Memory of glibc's malloc: `[heap]`, and the heaps of its arenas.
    pub malloc: u64,
    /// Other anonymous memory, including large malloc blocks.
    pub anonymous: u64,
    /// Stacks of threads and fibers.
    pub stacks: u64,
    /// Executable anonymous memory.
    pub code: u64,
    /// Files, including their modified pages.
    pub files: u64,
    /// Memory deliberately shared with other processes.
    pub shared_memory: u64,
    /// Memory of the kernel.
    pub kernel: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Malloc,
    Anonymous,
    Stack,
    Code,
    File,
    SharedMemory,
    Kernel,
}

impl Kinds {
    fn add(&mut self, kind: Kind, bytes: u64) {
        *match kind {
            Kind::Malloc => &mut self.malloc,
            Kind::Anonymous => &mut self.anonymous,
            Kind::Stack => &mut self.stacks,
            Kind::Code => &mut self.code,
            Kind::File => &mut self.files,
            Kind::SharedMemory => &mut self.shared_memory,
            Kind::Kernel => &mut self.kernel,
        } += bytes;
    }
}

/// glibc reserves arena heaps at multiples of this, and makes them accessible as needed.
const ARENA: u64 = 64 << 20;
/// A guard page may be as large as the kernel's page; the rest of an arena is rarely that small.
const LARGEST_GUARD: u64 = 64 << 10;
const SHARED: [&str; 4] = ["/dev/shm/", "/memfd:", "/SYSV", "/dev/zero"];

/// Sums up mappings, and returns the resident bytes of `heap`: the pages of Ruby's heap, sorted.
pub fn sum(mappings: &[Mapping], heap: &[Range<u64>], pagemap: Option<&Pagemap>) -> (Kinds, u64) {
    let resident = |range: Range<u64>| {
        let known = pagemap.and_then(|pagemap| pagemap.resident(&range).ok());
        known.unwrap_or(range.end - range.start)
    };
    let (mut kinds, mut of_heap) = (Kinds::default(), 0);
    for (index, mapping) in mappings.iter().enumerate() {
        let range = mapping.start..mapping.end;
        let in_heap: u64 = overlaps(heap, &range).map(resident).sum();
        // The two files are read one after the other, so they may disagree.
        let in_heap = in_heap.min(mapping.rss);
        of_heap += in_heap;
        kinds.add(kind(mappings, index), mapping.rss - in_heap);
    }
    (kinds, of_heap)
}

fn kind(mappings: &[Mapping], index: usize) -> Kind {
    let mapping = &mappings[index];
    let name = &*mapping.name;
    if name.is_empty() || name.starts_with("[anon:") {
        return anonymous(mappings, index);
    }
    match name {
        "[heap]" => Kind::Malloc,
        _ if name.starts_with("[stack") => Kind::Stack,
        _ if name.starts_with('[') => Kind::Kernel,
        _ if SHARED.iter().any(|prefix| name.starts_with(prefix)) => Kind::SharedMemory,
        _ => Kind::File,
    }
}

/// Kernels since 5.17 support names for anonymous memory, set by Ruby 4.0 and glibc's `decorate_maps`.
fn anonymous(mappings: &[Mapping], index: usize) -> Kind {
    let mapping = &mappings[index];
    let named = |word| mapping.name.contains(word);
    if mapping.is_executable() {
        Kind::Code
    } else if named("stack") || named("fiber") {
        Kind::Stack
    } else if named("malloc arena") || is_arena(mappings, index) {
        Kind::Malloc
    } else if follows_a_guard(mappings, index) {
        Kind::Stack
    } else {
        Kind::Anonymous
    }
}

/// Contains the start of a possible arena, and ends at the arena's end or where the rest of it is reserved.
fn is_arena(mappings: &[Mapping], index: usize) -> bool {
    let mapping = &mappings[index];
    let start = mapping.start.next_multiple_of(ARENA);
    let end = start + ARENA;
    // The kernel may have merged it with a mapping before it.
    start < mapping.end
        && (mapping.end == end
            || mapping.end < end
                && (mappings.get(index + 1)).is_some_and(|next| {
                    next.start == mapping.end && next.is_inaccessible() && next.end >= end
                }))
}

fn follows_a_guard(mappings: &[Mapping], index: usize) -> bool {
    let Some(guard) = index.checked_sub(1).map(|before| &mappings[before]) else {
        return false;
    };
    let small = guard.end - guard.start <= LARGEST_GUARD;
    let anonymous = guard.name.is_empty() || guard.name.starts_with("[anon:");
    let rest_of_an_arena = guard.end % ARENA == 0;
    guard.end == mappings[index].start
        && guard.is_inaccessible()
        && small
        && anonymous
        && !rest_of_an_arena
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapping(start: u64, end: u64, permissions: &str, name: &str, rss: u64) -> Mapping {
        Mapping {
            start,
            end,
            permissions: permissions.into(),
            name: name.into(),
            rss,
            ..Mapping::default()
        }
    }

    #[test]
    fn distinguishes_mappings() {
        let arena = 10 * ARENA;
        let mappings = [
            mapping(0x1000, 0x2000, "r-xp", "/usr/bin/ruby", 1),
            mapping(0x5000, 0x9000, "rw-p", "[heap]", 2),
            // An arena of 64 MiB, partly in use, and the mapping that follows it.
            mapping(arena, arena + 0x20000, "rw-p", "", 4),
            mapping(arena + 0x20000, arena + ARENA, "---p", "", 0),
            mapping(arena + ARENA, arena + ARENA + 0x1000, "rw-p", "", 8),
            // A stack after its guard.
            mapping(0x4000_0000_0000, 0x4000_0000_1000, "---p", "", 0),
            mapping(0x4000_0000_1000, 0x4000_0010_0000, "rw-p", "", 16),
            mapping(0x5000_0000_0000, 0x5000_0010_0000, "r-xp", "", 32),
            mapping(0x6000_0000_0000, 0x6000_0010_0000, "rw-s", "/dev/shm/x", 64),
            mapping(0x7000_0000_0000, 0x7000_0010_0000, "rw-p", "[anon: glibc: malloc arena]", 128),
            mapping(0x7ffc_0000_0000, 0x7ffc_0010_0000, "rw-p", "[stack]", 256),
            mapping(0x7ffd_0000_0000, 0x7ffd_0010_0000, "r-xp", "[vdso]", 512),
        ];
        let (kinds, heap) = sum(&mappings, &[], None);
        assert_eq!(heap, 0);
        let expected = Kinds {
            malloc: 2 + 4 + 128,
            anonymous: 8,
            stacks: 16 + 256,
            code: 32,
            files: 1,
            shared_memory: 64,
            kernel: 512,
        };
        assert_eq!(kinds, expected);
    }

    #[test]
    fn takes_pages_of_the_heap_out_of_their_mapping() {
        let mappings = [mapping(0x1000, 0x9000, "rw-p", "", 0x6000)];
        let (kinds, heap) = sum(&mappings, &[0x2000..0x4000, 0x8000..0xa000], None);
        assert_eq!((kinds.anonymous, heap), (0x3000, 0x3000));
    }
}
