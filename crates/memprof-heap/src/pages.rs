//! Converts addresses to 32-bit numbers and back.
//!
//! A reference may point to an object that comes later in the dump. So while a dump is read, addresses are represented by a
//! *code*: the number of their page (64 KiB of address space) and the place in it. Afterwards, a bit for each place marks the
//! objects. An object's number is its rank among them, so numbers are in order of address, and objects allocated side by side are
//! neighbours in every column.

use std::io;

use rustc_hash::FxHashMap;

use super::NONE;
use memprof_dump::read::invalid;

/// Bits of a code for the place in a page: 8192 places of 8 bytes.
const PLACE_BITS: u32 = 13;
const PLACES: usize = 1 << PLACE_BITS;
const PLACE_MASK: u32 = PLACES as u32 - 1;
const WORDS: usize = PLACES / 64;
/// Recently used pages, by the lower bits of their key: most references stay close.
const REMEMBERED: usize = 1024;

/// Ruby's objects lie at multiples of 8. Addresses in other dumps may not, so each remainder gets its own pages and every address
/// has a code.
fn key(address: u64) -> u64 {
    (address >> 16) << 3 | address & 7
}

fn place(address: u64) -> u32 {
    (address >> 3) as u32 & PLACE_MASK
}

fn address(key: u64, place: u16) -> u64 {
    (key >> 3) << 16 | u64::from(place) << 3 | key & 7
}

/// Pages of a heap while it is read.
pub(super) struct Pages {
    numbers: FxHashMap<u64, u32>,
    keys: Vec<u64>,
    remembered: Box<[(u64, u32)]>,
}

impl Default for Pages {
    fn default() -> Pages {
        Pages {
            numbers: FxHashMap::default(),
            keys: Vec::new(),
            remembered: vec![(u64::MAX, 0); REMEMBERED].into_boxed_slice(),
        }
    }
}

impl Pages {
    /// The code of an address.
    ///
    /// # Errors
    /// If the addresses span more than 2^19 pages: a heap with 32 GiB of slots.
    #[inline]
    pub fn code(&mut self, address: u64) -> io::Result<u32> {
        let key = key(address);
        let (known, number) = self.remembered[(key >> 3) as usize % REMEMBERED];
        let number = if known == key { number } else { self.page(key)? };
        Ok(number << PLACE_BITS | place(address))
    }

    #[cold]
    fn page(&mut self, key: u64) -> io::Result<u32> {
        let next = self.keys.len() as u32;
        let number = *self.numbers.entry(key).or_insert(next);
        if number == next {
            if next >= 1 << (32 - PLACE_BITS) {
                return Err(invalid("addresses in more than 32 GiB of pages"));
            }
            self.keys.push(key);
        }
        self.remembered[(key >> 3) as usize % REMEMBERED] = (key, number);
        Ok(number)
    }

    /// Marks the objects by their codes, which may be in any order and contain duplicates.
    pub fn number(self, codes: &[u32]) -> Numbers {
        let mut order: Vec<u32> = (0..self.keys.len() as u32).collect();
        order.sort_unstable_by_key(|&page| self.keys[page as usize]);
        let mut rank = vec![0; order.len()];
        for (position, &page) in order.iter().enumerate() {
            rank[page as usize] = position as u32;
        }
        let mut bits = vec![0; order.len() * WORDS];
        for &code in codes {
            let position = rank[(code >> PLACE_BITS) as usize] as usize;
            let place = (code & PLACE_MASK) as usize;
            bits[position * WORDS + place / 64] |= 1_u64 << (place % 64);
        }
        let mut before = Vec::with_capacity(bits.len() + 1);
        let mut count = 0;
        for word in &bits {
            before.push(count);
            count += word.count_ones();
        }
        let keys = order.iter().map(|&page| self.keys[page as usize]);
        Numbers { keys: keys.collect(), rank, bits, before, count }
    }
}

/// Numbers of the objects of a heap, while it is linked.
pub(super) struct Numbers {
    /// Keys of the pages, ascending.
    keys: Vec<u64>,
    /// Position of a page by its number in codes.
    rank: Vec<u32>,
    bits: Vec<u64>,
    /// Number of objects before each word of `bits`.
    before: Vec<u32>,
    count: u32,
}

impl Numbers {
    /// Number of objects with distinct addresses.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// The number of the object with this code, or [`NONE`].
    #[inline]
    pub fn id(&self, code: u32) -> u32 {
        let position = self.rank[(code >> PLACE_BITS) as usize] as usize;
        let place = (code & PLACE_MASK) as usize;
        let word = position * WORDS + place / 64;
        let bit = 1_u64 << (place % 64);
        if self.bits[word] & bit == 0 {
            return NONE;
        }
        self.before[word] + (self.bits[word] & (bit - 1)).count_ones()
    }

    /// The address with this code, whether or not it has an object.
    pub fn address(&self, code: u32) -> u64 {
        let position = self.rank[(code >> PLACE_BITS) as usize] as usize;
        address(self.keys[position], (code & PLACE_MASK) as u16)
    }

    /// The addresses by number.
    pub fn addresses(&self) -> Addresses {
        let mut addresses =
            Addresses { places: Vec::with_capacity(self.count as usize), ..Addresses::default() };
        for (position, &key) in self.keys.iter().enumerate() {
            addresses.starts.push(addresses.places.len() as u32);
            addresses.keys.push(key);
            for word in 0..WORDS {
                let mut bits = self.bits[position * WORDS + word];
                while bits != 0 {
                    let place = word * 64 + bits.trailing_zeros() as usize;
                    addresses.places.push(place as u16);
                    bits &= bits - 1;
                }
            }
        }
        addresses.starts.push(addresses.places.len() as u32);
        addresses
    }
}

/// Addresses of numbered objects.
#[derive(Default)]
pub struct Addresses {
    /// Keys of the pages, ascending.
    pub(super) keys: Vec<u64>,
    /// First object of each page, and the number of objects.
    pub(super) starts: Vec<u32>,
    /// Where in its page each object is, in units of 8 bytes.
    pub(super) places: Vec<u16>,
}

impl Addresses {
    /// The address of an object; 0 if the number is out of range.
    #[inline]
    pub fn of(&self, id: u32) -> u64 {
        let Some(&place) = self.places.get(id as usize) else {
            return 0;
        };
        let page = self.page(id);
        self.keys.get(page).map_or(0, |&key| address(key, place))
    }

    /// The same, faster for consecutive objects: `page` is a guess of the page, which is updated.
    #[inline]
    pub fn near(&self, id: u32, page: &mut usize) -> u64 {
        let here = |page: usize| {
            let objects = self.starts.get(page..page + 2);
            objects.is_some_and(|objects| (objects[0]..objects[1]).contains(&id))
        };
        if !here(*page) {
            *page = if here(*page + 1) { *page + 1 } else { self.page(id) };
        }
        match (self.places.get(id as usize), self.keys.get(*page)) {
            (Some(&place), Some(&key)) => address(key, place),
            _ => 0,
        }
    }

    /// The number of the object at an address.
    pub fn find(&self, address: u64) -> Option<u32> {
        let page = self.keys.binary_search(&key(address)).ok()?;
        let objects = *self.starts.get(page)? as usize..*self.starts.get(page + 1)? as usize;
        let start = objects.start;
        let places = self.places.get(objects)?;
        let index = places.binary_search(&(place(address) as u16)).ok()?;
        Some((start + index) as u32)
    }

    /// Whether objects lie at multiples of 8. Then their numbers are in order of address; others are ordered by remainder first.
    pub fn are_aligned(&self) -> bool {
        self.keys.iter().all(|key| key & 7 == 0)
    }

    /// The number of the first object at or behind this address; the number of objects if none follows.
    pub fn first_from(&self, address: u64) -> u32 {
        let page = self.keys.partition_point(|&other| other < key(address));
        let start = self.starts.get(page).copied().unwrap_or(0);
        let same = self.keys.get(page) == Some(&key(address));
        let end = self.starts.get(page + 1).copied().filter(|_| same);
        let places = &self.places[start as usize..end.unwrap_or(start) as usize];
        start + places.partition_point(|&other| u32::from(other) < place(address)) as u32
    }

    /// Position of an object's page among the pages.
    pub(super) fn page(&self, id: u32) -> usize {
        self.starts.partition_point(|&start| start <= id).saturating_sub(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pages(addresses: &[u64]) -> (Vec<u32>, Numbers) {
        let mut pages = Pages::default();
        let codes: Vec<u32> =
            addresses.iter().map(|&address| pages.code(address).expect("few pages")).collect();
        let numbers = pages.number(&codes);
        (codes, numbers)
    }

    #[test]
    fn numbers_are_in_order_of_address() {
        let addresses = [0x7f00_0001_0028, 0x7f00_0000_fff8, 0x10, 0x7f00_0001_0000, !7];
        let (codes, numbers) = pages(&addresses);
        let ids: Vec<u32> = codes.iter().map(|&code| numbers.id(code)).collect();
        assert_eq!(ids, [3, 1, 0, 2, 4]);
        let back = numbers.addresses();
        for (id, address) in ids.iter().zip(addresses) {
            assert_eq!(back.of(*id), address);
            assert_eq!(back.find(address), Some(*id));
            assert_eq!(back.first_from(address), *id);
        }
        assert_eq!(back.first_from(0), 0);
        assert_eq!(back.first_from(0x7f00_0001_0020), 3);
        assert_eq!(back.first_from(0x7f00_0000_fff0), 1);
        assert_eq!(back.first_from(0x7f00_0001_0030), 4);
        assert_eq!(Addresses::default().first_from(8), 0);
        assert_eq!(back.of(5), 0);
        let mut page = 0;
        for id in [0, 1, 2, 4, 3, 0, 5, 2] {
            assert_eq!(back.near(id, &mut page), back.of(id));
        }
        assert_eq!(back.find(0x18), None);
    }

    #[test]
    fn any_address_has_its_own_number() {
        let addresses: Vec<u64> = (1..5000).map(|number| number * 3).collect();
        let (codes, numbers) = pages(&addresses);
        assert_eq!(numbers.count() as usize, addresses.len());
        let back = numbers.addresses();
        for (code, address) in codes.iter().zip(addresses) {
            assert_eq!(back.of(numbers.id(*code)), address);
        }
    }

    #[test]
    fn an_address_that_is_no_object_has_none() {
        let mut pages = Pages::default();
        let object = pages.code(0x1000).expect("few pages");
        let other = pages.code(0x7000_1000).expect("few pages");
        let numbers = pages.number(&[object, object]);
        assert_eq!((numbers.count(), numbers.id(other)), (1, NONE));
    }
}
