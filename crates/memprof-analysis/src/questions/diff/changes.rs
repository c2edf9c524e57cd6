//! Identity of objects in two heaps.
//!
//! An address is not an identity: the slot of a freed object is soon reused. An object is the same if it has the same address
//! and was allocated in the same generation; class, type and allocation site must match as well. If neither heap knows the
//! generation, class and type must suffice: most objects older than the tracking live on forever.

use rustc_hash::FxHashMap;

use super::identity::{Identity, Side};
use super::warnings;
use crate::questions::{Error, Remark};
use memprof_heap::graph::{BitSet, piece_of, share};
use memprof_heap::{FOLDED, Heap, NONE};

/// How the objects of one heap changed in another one.
#[derive(Clone, Debug, Default)]
pub struct Changes {
    /// Number before, for each object after; [`NONE`] for a new one.
    origins: Vec<u32>,
    /// Objects that are only in the heap after.
    pub new: BitSet,
    /// Objects that are only in the heap before.
    pub gone: BitSet,
    /// Possible errors, in sentences.
    pub warnings: Vec<Remark>,
}

impl Changes {
    /// Compares two heaps.
    ///
    /// # Errors
    /// If an index cannot be read.
    pub fn between(before: &Heap, after: &Heap) -> Result<Changes, Error> {
        let (left, right) = (Side::new(before)?, Side::new(after)?);
        let identity = Identity::of(&left, &right);
        let origins = origins(&identity, before, after)?;
        let mut gone = objects(before)?;
        for &old in origins.iter().filter(|&&old| old != NONE) {
            gone.remove(old);
        }
        let mut new = objects(after)?;
        let is_old = |id: u32| origins[id as usize] != NONE;
        new.subtract(&BitSet::filled(origins.len(), || (), |(), id| is_old(id)).0);
        let mut changes = Changes { origins, new, gone, warnings: warnings::of(&left, &right) };
        changes.moved(&identity, before, after);
        Ok(changes)
    }

    /// Moved objects with an `object_id`, which is never reused.
    fn moved(&mut self, identity: &Identity<'_>, before: &Heap, after: &Heap) {
        let ids = self.gone.iter().filter_map(|old| Some((before.object_id(old)?, old)));
        let by_id: FxHashMap<u64, u32> = ids.collect();
        if by_id.is_empty() {
            return;
        }
        let new = self.new.iter().filter_map(|id| Some((id, *by_id.get(&after.object_id(id)?)?)));
        let moved: Vec<(u32, u32)> = new.filter(|&(id, old)| identity.same(old, id)).collect();
        for (id, old) in moved {
            if self.gone.remove(old) {
                self.new.remove(id);
                self.origins[id as usize] = old;
            }
        }
    }

    /// The number before of an object after, if it existed.
    pub fn origin(&self, id: u32) -> Option<u32> {
        self.origins.get(id as usize).copied().filter(|&old| old != NONE)
    }
}

/// The number before of the object at the address of each object after, if they are the same; else [`NONE`].
fn origins(identity: &Identity<'_>, before: &Heap, after: &Heap) -> Result<Vec<u32>, Error> {
    let counts = |flags: u32| flags & FOLDED.0 == 0;
    let (old_flags, flags) = (before.flag_words()?, after.flag_words()?);
    let mut origins = vec![NONE; after.len() as usize];
    let piece = piece_of(origins.len());
    let pieces = origins.len().div_ceil(piece);
    let items = origins.chunks_mut(piece).zip((0..).step_by(piece));
    // Numbers follow addresses, so one pass covers both heaps.
    let find = |(): &mut (), (origins, start): (&mut [u32], u32)| {
        let (mut old_page, mut page) = (0, 0);
        let mut old = before.addresses().first_from(after.addresses().of(start));
        let mut old_address = before.addresses().near(old, &mut old_page);
        for (origin, id) in origins.iter_mut().zip(start..) {
            let address = after.addresses().near(id, &mut page);
            while old < before.len() && old_address < address {
                old += 1;
                old_address = before.addresses().near(old, &mut old_page);
            }
            let found = old < before.len() && old_address == address;
            let both = || counts(old_flags[old as usize]) && counts(flags[id as usize]);
            if found && both() && identity.same(old, id) {
                *origin = old;
            }
        }
    };
    share(pieces, items, || (), find);
    Ok(origins)
}

/// Objects that count.
pub(super) fn objects(heap: &Heap) -> Result<BitSet, Error> {
    let flags = heap.flag_words()?;
    let counts = |(): &mut (), id: u32| flags[id as usize] & FOLDED.0 == 0;
    Ok(BitSet::filled(flags.len(), || (), counts).0)
}
