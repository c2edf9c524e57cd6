//! What an object takes, as the VM counts it.

use rb_sys::{VALUE, ruby_fl_type, ruby_rarray_flags, ruby_rstring_flags, ruby_value_type};

use super::protect::protect;
use super::ruby_object::Flags;
use super::symbols::symbols;

/// Bytes of an object with what it holds by malloc, as the VM counts them. `None` if it does not: the VM refuses a T_NODE,
/// and the function of an extension's own type may raise. Called with the GVL.
///
/// # Safety
/// `object` is a slot with these flags that holds an object, and that no collection frees meanwhile.
pub unsafe fn memsize(object: VALUE, flags: Flags) -> Option<u64> {
    let memsize_of = symbols().memsize_of?;
    if flags.is(ruby_value_type::RUBY_T_NODE) {
        return None;
    }
    // SAFETY: the caller vouches for the object.
    let asked = || unsafe { memsize_of(object) as u64 };
    if flags.is(ruby_value_type::RUBY_T_DATA) {
        protect(asked).ok()
    } else {
        Some(asked())
    }
}

/// Bytes of an object that is being freed. `None` if it has no more than its slot, or if that cannot be read: what classes
/// and objects of C extensions refer to may have been swept before them.
///
/// For all other types the VM reads no more than the slot, and the memory that belongs to it alone and is freed with it.
///
/// # Safety
/// `object` was just passed to a free hook, and has these flags.
pub unsafe fn of_freed(object: VALUE, flags: Flags) -> Option<u64> {
    /// Where the flags of a string hold the number of its encoding, and the number that means "in an instance variable"
    /// (ruby/internal/encoding/encoding.h): how wide its end is, is not to be looked up there.
    const ENCODING_SHIFT: u32 = 22;
    const ENCODING_ELSEWHERE: usize = 127;
    let shared = flags.0 & ruby_fl_type::RUBY_ELTS_SHARED as usize != 0;
    let has_more = match flags.value_type() {
        kind if kind == ruby_value_type::RUBY_T_STRING as u32 => {
            flags.0 & ruby_rstring_flags::RSTRING_NOEMBED as usize != 0
                && !shared
                && flags.0 >> ENCODING_SHIFT & ENCODING_ELSEWHERE != ENCODING_ELSEWHERE
        }
        kind if kind == ruby_value_type::RUBY_T_ARRAY as u32 => {
            flags.0 & ruby_rarray_flags::RARRAY_EMBED_FLAG as usize == 0 && !shared
        }
        kind => [
            ruby_value_type::RUBY_T_HASH,
            ruby_value_type::RUBY_T_OBJECT,
            ruby_value_type::RUBY_T_STRUCT,
            ruby_value_type::RUBY_T_BIGNUM,
            ruby_value_type::RUBY_T_MATCH,
            ruby_value_type::RUBY_T_REGEXP,
        ]
        .iter()
        .any(|with_more| *with_more as u32 == kind),
    };
    let memsize_of = symbols().memsize_of.filter(|_| has_more)?;
    // SAFETY: the caller vouches; for these types see above.
    Some(unsafe { memsize_of(object) as u64 })
}
