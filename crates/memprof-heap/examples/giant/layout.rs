//! The address and number of each object.

use std::io;

/// As in Ruby: pages of 64 KiB with slots of 40 bytes behind a header.
pub const SLOT: u64 = 40;
const SLOTS: u64 = 1638;
const BASE: u64 = 0x7f10_0000_0000;

/// Products shared by all orders.
pub const PRODUCTS: u64 = 4096;
pub const STORES: u64 = 4;
/// Pages per directory, orders per page, objects per order.
pub const PAGES: u64 = 64;
pub const ORDERS: u64 = 256;
const PARTS: u64 = 8;
const PAGE: u64 = ORDERS * PARTS + 1;
/// One page in so many has only its first order, which leads to the next one, and so on.
pub const LISTS: u64 = 16;

/// Number of classes, which are the first objects.
pub const CLASSES: u64 = 8;

/// Object numbers, in order of address: classes, products, stores, directories, pages with their orders, garbage.
pub struct Layout {
    pub directories: u64,
    pub pages: u64,
    pub objects: u64,
}

impl Layout {
    pub fn of(objects: u64) -> io::Result<Layout> {
        let fixed = CLASSES + PRODUCTS + STORES;
        // Counts a directory as part of each of its pages, rounded up.
        let pages = objects.saturating_sub(fixed) / (PAGE + 1);
        if pages == 0 {
            let text = format!("at least {} objects", fixed + PAGE + 1);
            return Err(io::Error::other(text));
        }
        Ok(Layout { directories: pages.div_ceil(PAGES), pages, objects })
    }

    pub fn product(number: u64) -> u64 {
        CLASSES + number % PRODUCTS
    }

    pub fn store(number: u64) -> u64 {
        CLASSES + PRODUCTS + number
    }

    pub fn directory(number: u64) -> u64 {
        Layout::store(STORES) + number
    }

    pub fn page(&self, number: u64) -> u64 {
        Layout::directory(self.directories) + number * PAGE
    }

    pub fn order(&self, page: u64, order: u64) -> u64 {
        self.page(page) + 1 + order * PARTS
    }

    /// The store that leads to a directory: the first store to half of them, each of the last two to an eighth.
    pub fn store_of(directory: u64) -> u64 {
        [0, 1, 0, 2, 0, 1, 0, 3][(directory % 8) as usize]
    }
}

/// The address of an object's slot.
pub fn address(number: u64) -> u64 {
    BASE + ((number / SLOTS) << 16) + 16 + number % SLOTS * SLOT
}

/// A pseudorandom number derived from this one only.
pub fn scattered(number: u64) -> u64 {
    let mixed = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}
