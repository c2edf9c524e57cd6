//! Instruction sequences: compiled Ruby code, one for each method, block, class body and file. They are internal objects, so
//! the heap is walked for them, and no RubyVM::InstructionSequence is allocated.

use rb_sys::{VALUE, ruby_value_type};
use rustc_hash::FxHashMap;

use super::ruby_object::{Flags, text};
use super::slots;
use super::symbols::symbols;

/// Number of imemo_iseq in `enum imemo_type` (internal/imemo.h), the same from 2.3 to 4.0.
const IMEMO_ISEQ: u32 = 7;
/// ISEQ_NOT_LOADED_YET and ISEQ_USE_COMPILE_DATA (iseq.h): IMEMO_FL_USER1 and 2, which are FL_USER5 and 6.
const UNFINISHED: usize = 1 << 17 | 1 << 18;

/// Instruction sequences with the same names and the same first line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Path of the file, as in backtraces; `None` if it is not compiled yet.
    pub path: Option<String>,
    /// Label, as in backtraces, such as `block in fetch`.
    pub label: Option<String>,
    /// Name of the enclosing method, if any.
    pub method: Option<String>,
    /// First line of its code.
    pub first_line: u32,
    /// Number of instruction sequences.
    pub count: u64,
    /// Bytes, as counted by Ruby (memsize).
    pub bytes: u64,
}

/// Addresses of VM strings, and a line: the key of a row during the heap walk.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
struct Key {
    path: VALUE,
    label: VALUE,
    method: VALUE,
    first_line: u32,
}

/// All iseqs, most bytes first, for a Ruby known to [`super::layouts`]. Allocates no Ruby object. Not to be called inside
/// `tracker::with`.
///
/// # Errors
/// If the heap cannot be walked.
pub fn rows() -> Result<Vec<Row>, String> {
    let memsize_of = symbols()
        .memsize_of
        .ok_or("this Ruby does not report the size of objects (rb_obj_memsize_of is missing)")?;
    let mut by_key: FxHashMap<Key, (u64, u64)> = FxHashMap::default();
    slots::each_slot(|slot, flags| {
        if !flags.is(ruby_value_type::RUBY_T_IMEMO) || flags.imemo_type() != IMEMO_ISEQ {
            return;
        }
        let sum = by_key.entry(key(slot, flags)).or_default();
        sum.0 += 1;
        // SAFETY: an instruction sequence in a heap slot, not swept; the function copes with one that is unfinished.
        sum.1 += unsafe { memsize_of(slot) } as u64;
    })?;
    // Nothing has been allocated since the walk, so no string has moved or been freed.
    let mut texts = Texts::default();
    let mut named: FxHashMap<Names, (u64, u64)> = FxHashMap::default();
    for (key, (count, bytes)) in by_key {
        let names = [key.path, key.label, key.method].map(|string| texts.of(string));
        let sum = named.entry((names, key.first_line)).or_default();
        sum.0 += count;
        sum.1 += bytes;
    }
    let mut rows: Vec<Row> = named.into_iter().map(row).collect();
    rows.sort_unstable_by(|a, b| {
        let name = |row: &Row| (row.path.clone(), row.first_line, row.label.clone());
        b.bytes.cmp(&a.bytes).then_with(|| name(a).cmp(&name(b)))
    });
    Ok(rows)
}

type Names = ([Option<String>; 3], u32);

fn row((([path, label, method], first_line), (count, bytes)): (Names, (u64, u64))) -> Row {
    Row { path, label, method, first_line, count, bytes }
}

#[derive(Default)]
struct Texts(FxHashMap<VALUE, Option<String>>);

impl Texts {
    fn of(&mut self, string: VALUE) -> Option<String> {
        // SAFETY: nil, or a String that an instruction sequence of the walk holds.
        (self.0.entry(string).or_insert_with(|| unsafe { text(string) })).clone()
    }
}

/// The functions called here return the instruction sequence's own data in 3.1 to 4.0; none of them allocates.
fn key(iseq: VALUE, flags: Flags) -> Key {
    if !finished(iseq, flags) {
        return Key::default();
    }
    // SAFETY: an instruction sequence that is complete, so all that these functions follow is there.
    unsafe {
        let line = rb_sys::rb_profile_frame_first_lineno(iseq);
        Key {
            path: rb_sys::rb_profile_frame_path(iseq),
            label: rb_sys::rb_profile_frame_label(iseq),
            method: rb_sys::rb_profile_frame_method_name(iseq),
            // A Fixnum: the number shifted left by one.
            first_line: u32::try_from(line as usize >> 1).unwrap_or(0),
        }
    }
}

/// False for one that is being compiled or loaded, or where that failed: its names or its body may be missing.
fn finished(iseq: VALUE, flags: Flags) -> bool {
    /// Word of struct rb_iseq_struct that points to the body.
    const BODY: usize = 2;
    /// Word of the body that points to the instructions, which are set last.
    const ENCODED: usize = 1;
    if flags.0 & UNFINISHED != 0 {
        return false;
    }
    // SAFETY: the slot of an instruction sequence has these words in every version, and so has a body.
    unsafe {
        let body = *(iseq as *const usize).add(BODY) as *const usize;
        !body.is_null() && *body.add(ENCODED) != 0
    }
}
