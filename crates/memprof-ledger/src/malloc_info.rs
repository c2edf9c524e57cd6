//! Statistics of an allocator, and the XML of glibc's `malloc_info`.

use serde::{Deserialize, Serialize};

/// Statistics of the allocator behind malloc. Sizes are bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Allocator {
    /// `glibc` or `jemalloc`.
    pub name: String,
    /// By arena; the first is the main one.
    pub arenas: Vec<Arena>,
    /// Blocks with a mapping of their own (glibc).
    pub mapped_blocks: u64,
    /// Their bytes.
    pub mapped: u64,
}

/// A region from which an allocator hands out blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Arena {
    /// In use, including thread caches (glibc).
    pub in_use: u64,
    /// Free, but not returned to the system.
    pub free: u64,
}

impl Allocator {
    /// Bytes in use in arenas.
    pub fn in_use(&self) -> u64 {
        self.arenas.iter().map(|arena| arena.in_use).sum()
    }

    /// Free bytes in arenas.
    pub fn free(&self) -> u64 {
        self.arenas.iter().map(|arena| arena.free).sum()
    }
}

/// Parses the XML, which has one element a line; `None` if it is something else.
pub fn parse(xml: &str) -> Option<Allocator> {
    let mut allocator = Allocator { name: "glibc".into(), ..Allocator::default() };
    let (mut free, mut system, mut inside) = (0, 0, false);
    for line in xml.lines() {
        let size = attribute(line, "size").unwrap_or(0);
        if line.starts_with("<heap ") {
            (free, system, inside) = (0, 0, true);
        } else if line.starts_with("</heap>") {
            inside = false;
            allocator.arenas.push(Arena {
                in_use: u64::saturating_sub(system, free),
                free: u64::min(free, system),
            });
        } else if line.starts_with("<total type=\"mmap\"") {
            allocator.mapped = size;
            allocator.mapped_blocks = attribute(line, "count").unwrap_or(0);
        } else if inside && line.starts_with("<total ") {
            // Its type is "fast" or "rest".
            free += size;
        } else if inside && line.starts_with("<system type=\"current\"") {
            system = size;
        }
    }
    (!allocator.arenas.is_empty()).then_some(allocator)
}

fn attribute(line: &str, name: &str) -> Option<u64> {
    let (_, rest) = line.split_once(&format!(" {name}=\""))?;
    rest.split_once('"')?.0.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_arenas_and_mapped_blocks() {
        let xml = "<malloc version=\"1\">\n<heap nr=\"0\">\n<sizes>\n\
            <size from=\"17\" to=\"32\" total=\"64\" count=\"2\"/>\n</sizes>\n\
            <total type=\"fast\" count=\"2\" size=\"64\"/>\n<total type=\"rest\" count=\"1\" size=\"936\"/>\n\
            <system type=\"current\" size=\"135168\"/>\n<system type=\"max\" size=\"200000\"/>\n</heap>\n\
            <heap nr=\"1\">\n<sizes>\n</sizes>\n<total type=\"fast\" count=\"0\" size=\"0\"/>\n\
            <total type=\"rest\" count=\"1\" size=\"5000\"/>\n<system type=\"current\" size=\"8000\"/>\n</heap>\n\
            <total type=\"fast\" count=\"2\" size=\"64\"/>\n<total type=\"rest\" count=\"2\" size=\"5936\"/>\n\
            <total type=\"mmap\" count=\"3\" size=\"700000\"/>\n<system type=\"current\" size=\"143168\"/>\n</malloc>\n";
        let allocator = parse(xml).unwrap();
        let arena = |in_use, free| Arena { in_use, free };
        assert_eq!(allocator.arenas, [arena(134_168, 1000), arena(3000, 5000)]);
        assert_eq!((allocator.mapped_blocks, allocator.mapped), (3, 700_000));
        assert_eq!((allocator.in_use(), allocator.free()), (137_168, 6000));
        assert_eq!(parse("nothing"), None);
    }
}
