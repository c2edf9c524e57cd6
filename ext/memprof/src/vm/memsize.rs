//! Size of an object, as counted by the VM.

use rb_sys::{VALUE, ruby_fl_type, ruby_rarray_flags, ruby_rstring_flags, ruby_value_type};

use super::protect::protect;
use super::ruby_object::Flags;
use super::symbols::symbols;

/// Bytes of an object including its malloc'ed memory, as counted by the VM. `None` if it can't: the VM rejects a T_NODE, and
/// the memsize function of an extension's own type may raise. Called with the GVL.
///
/// # Safety
/// `object` is a slot with these flags that holds an object, and that no GC frees meanwhile.
pub unsafe fn memsize(object: VALUE, flags: Flags) -> Option<u64> {
    let memsize_of = symbols().memsize_of?;
    if flags.is(ruby_value_type::RUBY_T_NODE) {
        return None;
    }
    // SAFETY: the caller vouches for the object.
    let asked = || unsafe { memsize_of(object) as u64 };
    if flags.is(ruby_value_type::RUBY_T_DATA) { protect(asked).ok() } else { Some(asked()) }
}

/// Bytes of an object being freed. `None` if it has nothing but its slot, or if that cannot be read: objects referenced by
/// classes and by objects of C extensions may have been swept before them.
///
/// For all other types the VM only reads the slot and the memory that belongs to the object alone and is freed with it.
///
/// # Safety
/// `object` was just passed to a free hook, and has these flags.
pub unsafe fn of_freed(object: VALUE, flags: Flags) -> Option<u64> {
    /// Position of the encoding index in a string's flags, and the index that means "in an instance variable"
    /// (ruby/internal/encoding/encoding.h), where the width of the terminator must not be looked up.
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
