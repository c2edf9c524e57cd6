//! Maps an address to a block or a slot of Ruby's heap.

use crate::blocks::Blocks;
use crate::ruby_pages::RubyPages;

const PAGE_BITS: u32 = 12;
const LEAF_BITS: u32 = 26;
const PAGES: usize = 1 << (LEAF_BITS - PAGE_BITS);
/// A page of Ruby's heap; the other bits are its number.
const RUBY: u32 = 1 << 31;

/// The blocks and the pages of Ruby's heap in each 4 KiB of memory, as a two-level table.
#[derive(Debug)]
pub(crate) struct AddressIndex {
    /// The first address, in units of 64 MiB.
    base: u64,
    /// The leaf number of each 64 MiB, plus one.
    leaves_at: Vec<u32>,
    /// For each page the number of the first block that reaches into it, plus one; or a page of Ruby's heap.
    leaves: Vec<Box<[u32; PAGES]>>,
}

/// The block or slot at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// A block, by number.
    Block(u32),
    /// A page of Ruby's heap, by number, and one of its slots.
    Slot(u32, u64),
}

impl AddressIndex {
    pub fn new(blocks: &Blocks, ruby: &RubyPages) -> AddressIndex {
        let addresses = || {
            let pages = ruby.ranges().map(|range| (range.start, range.end));
            let blocks = blocks.iter().map(|block| (block.address, block.end()));
            pages.chain(blocks)
        };
        let base = addresses().map(|(start, _)| start).min().unwrap_or(0) >> LEAF_BITS;
        let end = addresses().map(|(_, end)| end).max().unwrap_or(0) >> LEAF_BITS;
        let mut index = AddressIndex {
            base,
            leaves_at: vec![0; (end - base + 1) as usize],
            leaves: Vec::new(),
        };
        for (number, range) in ruby.ranges().enumerate() {
            for page in (range.start..range.end).step_by(1 << PAGE_BITS) {
                *index.entry(page) = number as u32 | RUBY;
            }
        }
        for (number, block) in blocks.iter().enumerate() {
            let first = block.address >> PAGE_BITS;
            let last = block.end().saturating_sub(1).max(block.address) >> PAGE_BITS;
            for page in first..=last {
                let entry = index.entry(page << PAGE_BITS);
                if *entry == 0 {
                    *entry = number as u32 + 1;
                }
            }
        }
        index
    }

    fn entry(&mut self, address: u64) -> &mut u32 {
        let leaf = &mut self.leaves_at[((address >> LEAF_BITS) - self.base) as usize];
        if *leaf == 0 {
            self.leaves.push(Box::new([0; PAGES]));
            *leaf = self.leaves.len() as u32;
        }
        let page = (address >> PAGE_BITS) as usize % PAGES;
        &mut self.leaves[*leaf as usize - 1][page]
    }

    /// The place that an address points into. As in Ruby, references point to the beginning of a slot.
    #[inline]
    pub fn place(&self, blocks: &Blocks, ruby: &RubyPages, address: u64) -> Option<Place> {
        let leaf = (address >> LEAF_BITS).checked_sub(self.base)?;
        let leaf = self.leaves_at.get(usize::try_from(leaf).ok()?)?;
        let leaf = self.leaves.get((*leaf as usize).checked_sub(1)?)?;
        let page = (address >> PAGE_BITS) as usize % PAGES;
        let entry = leaf[page];
        if entry & RUBY != 0 {
            let number = entry & !RUBY;
            let slot = ruby.pages[number as usize].slot_at(address)?;
            return Some(Place::Slot(number, slot));
        }
        let first = (entry as usize).checked_sub(1)?;
        // No page has more blocks than this.
        let behind = first + (1 << PAGE_BITS) / 32 + 1;
        let block = blocks.containing_of(first, behind, address)?;
        Some(Place::Block(block))
    }
}
