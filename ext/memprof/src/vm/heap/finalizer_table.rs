//! Finds the finalizers of objects. No function lists the VM's table of them, which is in a struct that differs between
//! versions. So its location is determined once, by a known finalizer.

use std::ffi::{c_int, c_void};

use rb_sys::{VALUE, ruby_value_type};
use rustc_hash::{FxHashMap, FxHashSet};

use super::copy_memory::copy_words;
use super::ruby_value::is_address;
use crate::vm::ruby_object::Flags;
use crate::vm::symbols::symbols;

/// Address of the VM's pointer to the table.
#[derive(Clone, Copy, Debug)]
pub struct FinalizerTable {
    place: usize,
}

/// A finalizer just defined, so that it is among the last ones in the table.
pub struct Known {
    pub object: VALUE,
    pub finalizer: VALUE,
    /// The struct of the main thread.
    pub main_thread: usize,
}

/// Maximum words to search in the structs of a thread, the VM and its heap. They are larger, or end earlier.
const THREAD: usize = 128;
const VM: usize = 2048;
const HEAP: usize = 512;
/// Words of an st_table (ruby/st.h) and of its entries (st.c: hash, key, record).
const TABLE: usize = 7;
const ENTRY: usize = 3;
/// Entries to check, from the end.
const LAST: u64 = 64;

impl FinalizerTable {
    /// Follows the thread to its VM, which refers to the main thread, and the VM to its heap, which has its bounds.
    pub fn find(known: &Known) -> Option<Self> {
        symbols().table_foreach?;
        let mut seen = FxHashSet::default();
        for vm in pointers(known.main_thread, THREAD) {
            let words = copy_most(vm, VM);
            if !words.contains(&(known.main_thread as u64)) {
                continue;
            }
            for heap in pointers(vm, VM).filter(|heap| seen.insert(*heap)) {
                let words = copy_most(heap, HEAP);
                if !has_bounds_around(&words, known.object) {
                    continue;
                }
                let index = words.iter().position(|word| has_known(*word, known));
                if let Some(index) = index {
                    return Some(FinalizerTable { place: heap + index * size_of::<u64>() });
                }
            }
        }
        None
    }

    /// The array of finalizers of each object, by the object's address. Allocates no Ruby object. Called with the GVL, outside
    /// a GC.
    pub fn entries(self) -> FxHashMap<u64, u64> {
        unsafe extern "C" fn collect(object: usize, finalizers: usize, entries: usize) -> c_int {
            // SAFETY: the map outlives the call that this is a callback of.
            let entries = unsafe { &mut *(entries as *mut FxHashMap<u64, u64>) };
            entries.insert(object as u64, finalizers as u64);
            0
        }
        let mut entries = FxHashMap::default();
        // SAFETY: a member of the VM's heap, which lives as long as the VM (`find`). It is null when the VM has called the
        // last finalizer.
        let table = unsafe { *(self.place as *const *mut c_void) };
        if let (false, Some(foreach)) = (table.is_null(), symbols().table_foreach) {
            let target: *mut FxHashMap<u64, u64> = &raw mut entries;
            // SAFETY: the VM's own table, which nothing changes meanwhile, as the callback runs no Ruby code.
            unsafe { foreach(table, collect, target as usize) };
        }
        entries
    }
}

/// Words at an address, as many as are mapped.
fn copy_most(address: usize, words: usize) -> Vec<u64> {
    let mut size = words;
    while size >= THREAD / 2 {
        if let Some(found) = copy_words(address, size) {
            return found;
        }
        size /= 2;
    }
    Vec::new()
}

/// Possible addresses among the words there.
fn pointers(address: usize, words: usize) -> impl Iterator<Item = usize> {
    let words = copy_most(address, words);
    let places = words.into_iter().map(|word| word as usize);
    places.filter(|place| *place > 1 << 16 && *place >> 47 == 0 && place % 8 == 0)
}

/// Whether two adjacent words are the lowest and highest address of a range that contains the object.
fn has_bounds_around(words: &[u64], object: VALUE) -> bool {
    let is_around = |low: u64, high: u64| low <= object && object < high;
    (words.windows(2)).any(|pair| pair[0] > 1 << 16 && is_around(pair[0], pair[1]))
}

/// Whether there is a table, with the known finalizer among its last entries.
fn has_known(table: u64, known: &Known) -> bool {
    if table % 8 != 0 || table < 1 << 16 {
        return false;
    }
    let Some(words) = copy_words(table as usize, TABLE) else {
        return false;
    };
    let [_, _, count, _, start, bound, entries] = words[..] else {
        return false;
    };
    if count == 0 || start >= bound || count > bound - start || bound > 1 << 40 {
        return false;
    }
    let size = LAST.min(bound - start);
    let first = (bound - size) * (ENTRY * size_of::<u64>()) as u64;
    let last = copy_words(entries.wrapping_add(first) as usize, size as usize * ENTRY);
    last.is_some_and(|last| {
        (last.chunks_exact(ENTRY))
            .any(|entry| entry[1] == known.object && has(entry[2], known.finalizer))
    })
}

/// Whether an embedded array has the finalizer, after the object's id or alone.
fn has(array: u64, finalizer: VALUE) -> bool {
    let words = match is_address(array as VALUE) {
        true => copy_words(array as usize, 4),
        false => None,
    };
    words.is_some_and(|words| {
        Flags(words[0] as usize).is(ruby_value_type::RUBY_T_ARRAY)
            && words[2..].contains(&finalizer)
    })
}
