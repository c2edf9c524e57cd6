//! The table entry of a live block, in 16 bytes.

use super::sites::SiteId;

/// A live block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    /// The requested bytes.
    pub(super) size: u64,
    /// The site that allocated it.
    pub(super) site: SiteId,
    /// The GC generation at its allocation; only the low [`GENERATION_BITS`] bits are kept.
    pub(super) generation: u32,
    /// Whether it contains interpreted code that identifies sites (`site_cache`).
    pub(super) holds_code: bool,
}

impl Block {
    /// Whether its allocation was recorded. Other blocks are in the table for their code.
    #[inline(always)]
    pub(super) fn is_recorded(&self) -> bool {
        self.site != NOT_RECORDED
    }
}

/// The site of blocks that were not recorded. No site has this number.
pub(super) const NOT_RECORDED: SiteId = SiteId((1 << SITE_BITS) - 1);

/// Generations are stored modulo 2 to this power.
pub(super) const GENERATION_BITS: u32 = 20;
pub(super) const SITE_BITS: u32 = 23;
pub(super) const CODE: u64 = 1 << (63 - SITE_BITS);
pub(super) const MAX_SIZE: u64 = CODE - 1;

/// The address divided by 8 with the generation above it; and the size, above it whether it contains code, above that the
/// site. All zero: free.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) key: u64,
    pub(super) value: u64,
}

pub(super) const FREE: Entry = Entry { key: 0, value: 0 };
/// Addresses have 47 bits, and blocks are aligned to 8 bytes.
const ADDRESS_BITS: u32 = 44;
const ADDRESS: u64 = (1 << ADDRESS_BITS) - 1;

impl Entry {
    pub(super) fn new(address: usize, block: Block) -> Entry {
        Entry {
            key: key_of(address) | u64::from(block.generation) << ADDRESS_BITS,
            value: block.size.min(MAX_SIZE)
                | if block.holds_code { CODE } else { 0 }
                | u64::from(block.site.0) << (64 - SITE_BITS),
        }
    }

    pub(super) fn address(self) -> u64 {
        self.key & ADDRESS
    }

    pub(super) fn block(self) -> Block {
        Block {
            size: self.value & MAX_SIZE,
            site: SiteId((self.value >> (64 - SITE_BITS)) as u32),
            generation: (self.key >> ADDRESS_BITS) as u32,
            holds_code: self.value & CODE != 0,
        }
    }
}

pub(super) fn key_of(address: usize) -> u64 {
    (address as u64 >> 3) & ADDRESS
}

pub(super) fn address_of(key: u64) -> u64 {
    key << 3
}
