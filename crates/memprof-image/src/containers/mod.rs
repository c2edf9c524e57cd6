//! The memory of C++ standard library containers. Container headers are searched in used blocks, variables and stacks. Memory
//! belongs to a container if it is consistent with the header: pointers in both directions, numbers of elements, sizes of blocks.
//! Layouts are those of libstdc++ with the C++11 ABI, and of libc++ where equally simple.

mod deques;
mod finder;
mod hash_tables;
mod lists;
mod sequences;
#[cfg(test)]
mod tests;
mod trees;

use finder::Finder;

use crate::analysis::Analysis;

/// The role of a block in a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Container {
    /// The characters of a `std::string`, unless they are stored inline.
    LongString = 1,
    /// The elements of a `std::vector`.
    VectorBody,
    /// An element of a `std::list`.
    ListNode,
    /// An element of a `std::map`, `set`, `multimap` or `multiset`.
    MapOrSetNode,
    /// The array of a `std::unordered_map` or `unordered_set`.
    UnorderedMapOrSetBuckets,
    /// An element of a `std::unordered_map` or set.
    UnorderedMapOrSetNode,
    /// The array of blocks of a `std::deque`.
    DequeMap,
    /// Some elements of a `std::deque`.
    DequeBlock,
}

impl Container {
    /// All roles.
    pub const ALL: [Container; 8] = [
        Container::LongString,
        Container::VectorBody,
        Container::ListNode,
        Container::MapOrSetNode,
        Container::UnorderedMapOrSetBuckets,
        Container::UnorderedMapOrSetNode,
        Container::DequeMap,
        Container::DequeBlock,
    ];

    /// The name of the type in dumps: the pattern without `%`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Container::LongString => "LongString",
            Container::VectorBody => "VectorBody",
            Container::ListNode => "ListNode",
            Container::MapOrSetNode => "MapOrSetNode",
            Container::UnorderedMapOrSetBuckets => "UnorderedMapOrSetBuckets",
            Container::UnorderedMapOrSetNode => "UnorderedMapOrSetNode",
            Container::DequeMap => "DequeMap",
            Container::DequeBlock => "DequeBlock",
        }
    }

    /// Whether pointers that lead back or to every part prove the role. For the others only numbers do, which may fit by chance.
    pub(crate) fn is_certain(self) -> bool {
        !matches!(self, Container::LongString | Container::VectorBody)
    }

    /// Whether the block begins with an element, and not with a pointer to another part, or a colour.
    pub(crate) fn begins_with_element(self) -> bool {
        matches!(self, Container::LongString | Container::VectorBody | Container::DequeBlock)
    }
}

/// The role of each block in a container, one byte each.
#[derive(Debug)]
pub(crate) struct Containers {
    /// By block number; 0 for blocks without a role.
    kinds: Vec<u8>,
}

impl Containers {
    /// Finds the headers of containers in all memory that may have some.
    pub fn find(analysis: &Analysis) -> Containers {
        Containers { kinds: Finder::new(analysis).kinds() }
    }

    /// The role of a block.
    pub fn of(&self, number: u32) -> Option<Container> {
        let kind = usize::from(*self.kinds.get(number as usize)?);
        Container::ALL.get(kind.checked_sub(1)?).copied()
    }

    /// Bytes used.
    pub fn memsize(&self) -> usize {
        self.kinds.len()
    }
}
