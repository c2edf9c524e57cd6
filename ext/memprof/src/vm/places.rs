//! Maps the place of an allocation to its cell.

use memprof_profile::sessions::SegmentId;
use memprof_profile::sites::SiteId;
use rustc_hash::FxHashMap;

/// Key for counting an allocation: class word, location of its innermost frame (or its interned stack), and segment.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Class word, or its substitute (see [`super::classes::key`]).
    pub class: u64,
    /// Address of the current instruction, or of the frame's path if the instruction is unknown, or the number of the interned
    /// stack.
    pub frame: u64,
    /// Line; 0 with an instruction.
    pub line: u32,
    /// Address of the current instruction in the innermost frame of the application, if that is another frame, or else 0.
    pub caller: u64,
    /// Segment.
    pub segment: SegmentId,
}

/// Data of a place that is independent of the open sessions.
#[derive(Clone, Copy)]
pub enum Known {
    /// Its site.
    Site(SiteId),
    /// One of memprof's own.
    Own,
    /// Inside the VM (`<internal:kernel>`): the caller must be looked up.
    Internal,
}

#[derive(Clone, Copy)]
struct Entry {
    place: Place,
    cell: u32,
    epoch: u32,
}

/// Two tables. The first one caches cells by place, with two entries per hash: most allocations hit it and need no other
/// hashing. It is cleared when sessions change. The second one, from place to site, outlives sessions: a server's next request
/// allocates at the same places.
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

/// Maximum number of places with cached sites.
const KNOWN: usize = 1 << 16;

impl Default for Places {
    fn default() -> Self {
        let place = Place { class: 0, frame: 0, line: 0, caller: 0, segment: SegmentId(u32::MAX) };
        Places {
            entries: vec![Entry { place, cell: 0, epoch: 0 }; ENTRIES],
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

    /// The cell of a recent place.
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

    /// Caches the cell of a place.
    pub fn put(&mut self, place: Place, cell: u32) {
        let (index, epoch) = (Self::index(&place), self.epoch);
        self.entries[index ^ 1] = self.entries[index];
        self.entries[index] = Entry { place, cell, epoch };
    }

    /// The known data of a place, also from closed sessions.
    pub fn known(&self, place: &Place) -> Option<Known> {
        self.known.get(&key(place)).copied()
    }

    /// Stores the data of a place.
    pub fn learn(&mut self, place: &Place, known: Known) {
        if self.known.len() >= KNOWN {
            self.known.clear();
        }
        self.known.insert(key(place), known);
    }

    /// A number, not 0, that changes when cells are forgotten.
    #[inline]
    pub fn epoch(&self) -> u32 {
        self.epoch
    }

    /// Sessions have changed, and with them cells.
    pub fn forget_cells(&mut self) {
        self.epoch = self.epoch.wrapping_add(1).max(1);
    }

    /// Clears everything: a class or a frame was freed or moved.
    pub fn clear(&mut self) {
        self.forget_cells();
        self.known.clear();
    }

    /// Memory size of the tables in bytes.
    pub fn memsize(&self) -> usize {
        self.entries.capacity() * size_of::<Entry>()
            + self.known.capacity() * size_of::<(Key, Known)>()
    }
}
