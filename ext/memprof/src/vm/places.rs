//! From the place of an allocation to what counts it.

use memprof_profile::sessions::SegmentId;
use memprof_profile::sites::SiteId;
use rustc_hash::FxHashMap;

/// What an allocation is counted by: class word, where its innermost frame is (or its interned stack), and segment.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Class word, or what stands for it (see [`super::classes::key`]).
    pub class: u64,
    /// Address of the instruction that runs, or of the frame's path if the instruction is not known, or the number of the
    /// interned stack.
    pub frame: u64,
    /// Line; 0 beside an instruction.
    pub line: u32,
    /// Address of the instruction that runs in the innermost frame of the application, if that is another frame; else 0.
    pub caller: u64,
    /// Segment.
    pub segment: SegmentId,
}

/// What is known of a place whatever sessions are open.
#[derive(Clone, Copy)]
pub enum Known {
    /// Its site.
    Site(SiteId),
    /// It is memprof's own.
    Own,
    /// It is inside the VM (`<internal:kernel>`): the caller must be looked up.
    Internal,
}

#[derive(Clone, Copy)]
struct Entry {
    place: Place,
    cell: u32,
    epoch: u32,
}

/// Two tables. The first is a cache from place to cell, with two entries for each hash: most allocations hit it and so hash nothing else. It
/// is emptied when sessions change. The second one, from place to site, outlives sessions: a server's next request
/// allocates where the one before did.
pub struct Places {
    entries: Vec<Entry>,
    epoch: u32,
    known: FxHashMap<Key, Known>,
}

/// A place without its segment.
type Key = (u64, u64, u32, u64);

fn key(place: &Place) -> Key {
    (place.class, place.frame, place.line, place.caller)
}

const ENTRIES: usize = 4096;

/// Places of which the site is remembered.
const KNOWN: usize = 1 << 16;

impl Default for Places {
    fn default() -> Self {
        let place = Place {
            class: 0,
            frame: 0,
            line: 0,
            caller: 0,
            segment: SegmentId(u32::MAX),
        };
        Places {
            entries: vec![
                Entry {
                    place,
                    cell: 0,
                    epoch: 0
                };
                ENTRIES
            ],
            epoch: 1,
            known: FxHashMap::default(),
        }
    }
}

impl Places {
    #[inline]
    fn index(place: &Place) -> usize {
        let mixed = (place.frame >> 3)
            .wrapping_add(u64::from(place.line).wrapping_mul(0x9e37_79b9_7f4a_7c15))
            .wrapping_add(place.class.wrapping_mul(0xff51_afd7_ed55_8ccd))
            .wrapping_add(place.caller.wrapping_mul(0xc4ce_b9fe_1a85_ec53))
            .wrapping_add(u64::from(place.segment.0) << 7);
        ((mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 52) as usize & (ENTRIES - 1)
    }

    /// The cell of a place seen lately.
    #[inline]
    pub fn get(&self, place: &Place) -> Option<u32> {
        let index = Self::index(place);
        let mut entries = [index, index ^ 1].into_iter();
        let entry = entries.find_map(|index| {
            let entry = self.entries.get(index)?;
            (entry.epoch == self.epoch && entry.place == *place).then_some(entry)
        });
        entry.map(|entry| entry.cell)
    }

    /// Remembers the cell of a place.
    pub fn put(&mut self, place: Place, cell: u32) {
        let (index, epoch) = (Self::index(&place), self.epoch);
        self.entries[index ^ 1] = self.entries[index];
        self.entries[index] = Entry { place, cell, epoch };
    }

    /// What is known of a place, also from sessions that are closed.
    pub fn known(&self, place: &Place) -> Option<Known> {
        self.known.get(&key(place)).copied()
    }

    /// Remembers what a place is.
    pub fn learn(&mut self, place: &Place, known: Known) {
        if self.known.len() >= KNOWN {
            self.known.clear();
        }
        self.known.insert(key(place), known);
    }

    /// Sessions have changed, and with them cells.
    pub fn forget_cells(&mut self) {
        self.epoch = self.epoch.wrapping_add(1);
    }

    /// Forgets all: a class or a frame is gone or has moved.
    pub fn clear(&mut self) {
        self.forget_cells();
        self.known.clear();
    }

    /// Bytes that the tables take.
    pub fn memsize(&self) -> usize {
        self.entries.capacity() * size_of::<Entry>()
            + self.known.capacity() * size_of::<(Key, Known)>()
    }
}
