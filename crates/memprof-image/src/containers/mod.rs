//! The memory of containers of the C++ standard library. A header of a container is found in used blocks, variables and stacks
//! first, and its memory is what the header and the memory itself agree on: pointers in both directions, numbers of elements,
//! sizes of blocks. Layouts are those of libstdc++ with the ABI of C++11, and of libc++ where these are as simple.

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

/// What a block is to a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Container {
    /// The characters of a `std::string` that are not in the string itself.
    LongString = 1,
    /// The elements of a `std::vector`.
    VectorBody,
    /// An element of a `std::list`.
    ListNode,
    /// An element of a `std::map`, `set`, `multimap` or `multiset`.
    MapOrSetNode,
    /// The array of a `std::unordered_map` or `unordered_set`.
    UnorderedMapOrSetBuckets,
    /// An element of these.
    UnorderedMapOrSetNode,
    /// The array of blocks of a `std::deque`.
    DequeMap,
    /// Some elements of a `std::deque`.
    DequeBlock,
}

impl Container {
    /// All of them.
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

    /// The name of the type in dumps: that of the pattern without `%`.
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
}

/// What each block is to a container, in a byte.
#[derive(Debug)]
pub(crate) struct Containers {
    /// By the number of the block; 0 if it is nothing of that kind.
    kinds: Vec<u8>,
}

impl Containers {
    /// Looks for the headers of containers in all memory that may have some.
    pub fn find(analysis: &Analysis) -> Containers {
        Containers {
            kinds: Finder::new(analysis).kinds(),
        }
    }

    /// What a block is.
    pub fn of(&self, number: u32) -> Option<Container> {
        let kind = usize::from(*self.kinds.get(number as usize)?);
        Container::ALL.get(kind.checked_sub(1)?).copied()
    }

    /// Bytes that this takes.
    pub fn memsize(&self) -> usize {
        self.kinds.len()
    }
}
