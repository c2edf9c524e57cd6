//! Prefetches memory for the walk: the memory of objects is scattered all over the process, and cache misses would dominate.

use memprof_dump::record::Kind;
use rb_sys::{VALUE, ruby_value_type};

use super::{details, imemo, text};
use crate::vm::ruby_object::Flags;

/// Distance in slots from the object being described to those whose memory is prefetched: first what they point to, later what
/// that points to.
const FAR: usize = 4;
const NEAR: usize = 2;

/// Words of a slot to read. No Ruby so far has smaller slots; such slots would not be prefetched.
const WORDS: usize = 5;

/// Prefetches the memory of the slots after `slot`. `end` is the end of the heap page.
#[inline]
pub fn look(slot: VALUE, stride: usize, end: VALUE) {
    if stride < WORDS * size_of::<VALUE>() {
        return;
    }
    let distance = |slots: usize| slot + (slots * stride) as VALUE;
    if distance(FAR) < end {
        // SAFETY: a slot of the same heap page, which has so many words.
        unsafe { first(distance(FAR)) };
    }
    if distance(NEAR) < end {
        // SAFETY: as above.
        unsafe { second(distance(NEAR)) };
    }
}

/// For objects read without the VM, prefetches only memory that is read: the elements of an embedded array, for example, are
/// scattered, and prefetching takes time.
///
/// # Safety
/// `slot` is a slot of a heap page, of [`WORDS`] words or more. Nothing writes to it meanwhile: GC is disabled, and
/// this thread has the GVL.
#[inline]
unsafe fn first(slot: VALUE) {
    // SAFETY: the caller vouches.
    let words = unsafe { &*(slot as *const [VALUE; WORDS]) };
    let flags = Flags(words[0] as usize);
    match Kind(flags.value_type() as u8) {
        Kind::NONE => {}
        Kind::STRING if text::is_embedded(flags) => {}
        Kind::STRING => touch(words[3]),
        Kind::ARRAY if details::has_elements_inside(flags) => {}
        Kind::ARRAY => touch(words[4]),
        Kind::OBJECT if details::has_slots_inside(flags) => {}
        Kind::OBJECT => touch(words[if cfg!(ruby_gte_3_2) { 2 } else { 3 }]),
        // Since Ruby 3.3 the table is in the slot.
        Kind::HASH if !cfg!(ruby_gte_3_3) => {
            touch(words[2]);
            touch(words[2] + 64);
        }
        Kind::HASH => {}
        _ => {
            for word in &words[2..] {
                if super::ruby_value::is_address(*word) && *word >> 47 == 0 {
                    touch(*word);
                }
            }
        }
    }
}

/// # Safety
/// As [`first`].
#[inline]
unsafe fn second(slot: VALUE) {
    // SAFETY: as above.
    let (flags, held) = unsafe { (Flags::of(slot), *(slot as *const VALUE).add(2)) };
    if !flags.is(ruby_value_type::RUBY_T_IMEMO) || held == 0 {
        return;
    }
    match flags.imemo_type() {
        // The body of an iseq has several cache lines; the second word points to its instructions.
        imemo::ISEQ => {
            for line in 1..5 {
                touch(held + 64 * line);
            }
            // SAFETY: an iseq has a body there, or a null.
            touch(unsafe { *(held as *const VALUE).add(1) });
        }
        // SAFETY: the definition of a method, whose second word is mostly its iseq.
        imemo::METHOD => touch(unsafe { *(held as *const VALUE).add(1) }),
        _ => {}
    }
}

/// Prefetches the memory at an address, which may be invalid.
#[inline(always)]
pub fn touch(address: VALUE) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: reads nothing; of an address that is not mapped it does nothing.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(address as *const i8);
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}
