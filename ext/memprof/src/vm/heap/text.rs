//! Bytes of strings and their flags.

use memprof_dump::record::{CodeRange, Content, Flags as Bits, NameId, Text};
use rb_sys::{StableApiDefinition, VALUE, ruby_fl_type, ruby_rstring_flags};

use super::name_table::Names;
use crate::vm::ruby_object::{self, Flags};

/// Position of the encoding index in the flags of a string, and the index that means "elsewhere"
/// (ruby/internal/encoding/encoding.h); bits of the code range (ruby/internal/encoding/coderange.h).
const ENCODING_SHIFT: u32 = 22;
const ENCODING_MASK: usize = 127;
const SEVEN_BIT: usize = 1 << 20;
const VALID: usize = 1 << 21;
#[cfg(ruby_gte_3_4)]
const CHILLED: usize = 3 << 14;

const BINARY: usize = 0;
const UTF_8: usize = 1;
const US_ASCII: usize = 2;

/// True if the string's bytes are in its slot.
#[inline]
pub fn is_embedded(flags: Flags) -> bool {
    flags.0 & ruby_rstring_flags::RSTRING_NOEMBED as usize == 0
}

/// True if the string's bytes belong to another one.
#[inline]
pub fn is_shared(flags: Flags) -> bool {
    !is_embedded(flags) && flags.0 & ruby_fl_type::RUBY_ELTS_SHARED as usize != 0
}

/// Text of a T_STRING for the dump, and its flags.
///
/// # Safety
/// `string` is a T_STRING with these flags, and nothing frees it while the result is used.
#[inline(always)]
pub unsafe fn describe<'a>(names: &mut Names, string: VALUE, flags: Flags) -> (Text<'a>, Bits) {
    let mut bits = Bits::default();
    bits.set(Bits::EMBEDDED, is_embedded(flags));
    bits.set(Bits::FSTRING, flags.0 & ruby_rstring_flags::RSTRING_FSTR as usize != 0);
    bits.set(Bits::CHILLED, is_chilled(flags));
    let shared = is_shared(flags);
    bits.set(Bits::SHARED, shared);
    // SAFETY: the caller vouches.
    let mut text = unsafe { text(names, string, flags) };
    // SAFETY: as above.
    bits.set(Bits::BROKEN, unsafe { is_broken(string, flags, text.coderange) });
    if shared {
        text.content = Content::Absent;
    } else if !is_embedded(flags) {
        // SAFETY: as above; reads the capacity from the string's slot.
        let capacity = unsafe { rb_sys::rb_str_capacity(string) } as u64;
        text.capacity = names.values.length(capacity);
    }
    (text, bits)
}

/// Bytes and encoding of a T_STRING.
///
/// # Safety
/// As [`describe`].
#[inline(always)]
pub unsafe fn text<'a>(names: &mut Names, string: VALUE, flags: Flags) -> Text<'a> {
    // SAFETY: the caller vouches.
    let (bytes, encoding) = unsafe { (bytes(string), encoding(names, string, flags)) };
    Text {
        length: names.values.length(bytes.len() as u64),
        capacity: None,
        encoding,
        coderange: coderange(flags),
        content: names.values.content(bytes),
    }
}

/// Name of the encoding of a T_STRING with these flags.
///
/// # Safety
/// As [`describe`].
pub unsafe fn encoding(names: &mut Names, string: VALUE, flags: Flags) -> NameId {
    let mut index = flags.0 >> ENCODING_SHIFT & ENCODING_MASK;
    if index == ENCODING_MASK {
        // SAFETY: the caller vouches; reads an instance variable.
        index = unsafe { rb_sys::rb_enc_get_index(string) }.max(0) as usize;
    }
    names.encoding(index)
}

/// The cached code range of a string.
#[inline(always)]
pub fn coderange(flags: Flags) -> CodeRange {
    match flags.0 & (SEVEN_BIT | VALID) {
        0 => CodeRange::Unknown,
        SEVEN_BIT => CodeRange::SevenBit,
        VALID => CodeRange::Valid,
        _ => CodeRange::Broken,
    }
}

/// True for a chilled literal (Ruby 3.4 and later).
pub fn is_chilled(flags: Flags) -> bool {
    #[cfg(ruby_gte_3_4)]
    return flags.0 & CHILLED != 0;
    #[cfg(not(ruby_gte_3_4))]
    {
        let _ = flags;
        false
    }
}

/// The bytes of a T_STRING.
///
/// # Safety
/// As [`describe`].
#[inline]
pub unsafe fn bytes<'a>(string: VALUE) -> &'a [u8] {
    let api = rb_sys::stable_api::get_default();
    // SAFETY: a T_STRING that nothing frees meanwhile, as the caller vouches.
    unsafe {
        let start = api.rstring_ptr(string).cast::<u8>();
        let length = usize::try_from(api.rstring_len(string)).unwrap_or(0);
        if start.is_null() || length == 0 {
            return &[];
        }
        std::slice::from_raw_parts(start, length)
    }
}

/// Whether the bytes are invalid in the string's encoding. Ruby 3.1 determines it for each dumped string; later versions report
/// the cached state. Unlike there, nothing is written to the string.
///
/// # Safety
/// As [`describe`].
#[inline]
pub unsafe fn is_broken(string: VALUE, flags: Flags, coderange: CodeRange) -> bool {
    if coderange != CodeRange::Unknown || cfg!(ruby_gte_3_2) {
        return coderange == CodeRange::Broken;
    }
    // SAFETY: the caller vouches.
    let bytes = unsafe { bytes(string) };
    match flags.0 >> ENCODING_SHIFT & ENCODING_MASK {
        BINARY => false,
        UTF_8 => std::str::from_utf8(bytes).is_err(),
        US_ASCII => !bytes.is_ascii(),
        index => {
            let mut found = 0;
            // SAFETY: the range is that of the string's bytes, the encoding is its own; `found` is written to.
            unsafe {
                let encoding = rb_sys::rb_enc_from_index(index as i32);
                let range = bytes.as_ptr_range();
                rb_sys::rb_str_coderange_scan_restartable(
                    range.start.cast(),
                    range.end.cast(),
                    encoding,
                    &raw mut found,
                );
            }
            found as usize & (SEVEN_BIT | VALID) == SEVEN_BIT | VALID
        }
    }
}

/// True for a String.
///
/// # Safety
/// As [`describe`].
pub unsafe fn is_string(value: VALUE) -> bool {
    // SAFETY: an object, as the caller vouches.
    super::ruby_value::is_address(value)
        && unsafe { ruby_object::Flags::of(value) }.is(rb_sys::ruby_value_type::RUBY_T_STRING)
}
