//! Reads objects by address alone, without calls that may allocate.

use std::ffi::c_int;

use rb_sys::{StableApiDefinition, VALUE, ruby_fl_type, ruby_rstring_flags, ruby_value_type};

use super::layouts;
use super::symbols::symbols;

/// Slot size of Ruby 3.1, the only version with a single slot size.
const SLOT_SIZE_3_1: u32 = 40;
const FL_USHIFT: u32 = 12;

/// The first word of an object.
#[derive(Clone, Copy)]
pub struct Flags(pub usize);

impl Flags {
    /// Reads the flags of the object at `object`.
    ///
    /// # Safety
    /// `object` is the address of a heap slot that is mapped; the caller was given it by an event hook or a heap walk.
    #[inline]
    pub unsafe fn of(object: VALUE) -> Self {
        // SAFETY: struct RBasic begins with the flags in every version; the caller vouches for the address.
        Flags(unsafe { *(object as *const usize) })
    }

    /// The type, T_NONE to T_MOVED.
    #[inline]
    pub fn value_type(self) -> u32 {
        self.0 as u32 & ruby_value_type::RUBY_T_MASK as u32
    }

    /// True for this type.
    #[inline]
    pub fn is(self, kind: ruby_value_type) -> bool {
        self.value_type() == kind as u32
    }

    /// True for a slot with the type of a live object: not free, not moved, not waiting for a finalizer.
    #[inline]
    pub fn holds_object(self) -> bool {
        !(self.is(ruby_value_type::RUBY_T_NONE)
            || self.is(ruby_value_type::RUBY_T_MOVED)
            || self.is(ruby_value_type::RUBY_T_ZOMBIE))
    }

    /// True for an object that has a finalizer.
    #[inline]
    pub fn has_finalizer(self) -> bool {
        self.0 & ruby_fl_type::RUBY_FL_FINALIZE as usize != 0
    }

    /// Number of the imemo type (bits 12 to 15; `enum imemo_type`, internal/imemo.h).
    pub fn imemo_type(self) -> u32 {
        (self.0 >> FL_USHIFT) as u32 & 0xf
    }

    /// The bit of that number, for sets of types.
    #[inline(always)]
    pub fn imemo_bit(self) -> u16 {
        1 << self.imemo_type()
    }
}

/// The class word, which is not a class for internal objects.
///
/// # Safety
/// As [`Flags::of`].
#[inline]
pub unsafe fn class_word(object: VALUE) -> VALUE {
    // SAFETY: the second word of struct RBasic in every version; the caller vouches for the address.
    unsafe { *(object as *const VALUE).add(1) }
}

/// Bytes of the object's slot.
#[inline]
pub fn slot_size(object: VALUE) -> u32 {
    match symbols().slot_size {
        // SAFETY: reads the header of the heap page that `object` lies in; callers pass addresses of heap slots.
        Some(slot_size) => unsafe { slot_size(object) as u32 },
        None => SLOT_SIZE_3_1,
    }
}

/// Name of an internal object's kind, such as `<iseq>`, or of an object without class, such as `<string>`.
pub fn internal_name(flags: Flags) -> String {
    if flags.is(ruby_value_type::RUBY_T_IMEMO) {
        let name = symbols().imemo_name.map(|imemo_name| {
            // SAFETY: rb_imemo_name returns a static string for every imemo type of its version.
            unsafe { std::ffi::CStr::from_ptr(imemo_name(flags.imemo_type() as c_int)) }
                .to_string_lossy()
        });
        return format!("<{}>", name.as_deref().unwrap_or("imemo"));
    }
    let name = match flags.value_type() {
        0x01 => "object",
        0x02 => "class",
        0x03 => "module",
        0x04 => "float",
        0x05 => "string",
        0x06 => "regexp",
        0x07 => "array",
        0x08 => "hash",
        0x09 => "struct",
        0x0a => "bignum",
        0x0b => "file",
        0x0c => "data",
        0x0d => "match",
        0x0e => "complex",
        0x0f => "rational",
        0x14 => "symbol",
        0x1b => "node",
        0x1c => "iclass",
        _ => "internal",
    };
    format!("<{name}>")
}

/// Text of a String; `None` if the value is not a String.
///
/// # Safety
/// `value` is an immediate or an object that is alive.
pub unsafe fn text(value: VALUE) -> Option<String> {
    // SAFETY: guaranteed by the caller.
    let bytes = unsafe { bytes(value) };
    bytes.map(|bytes| String::from_utf8_lossy(bytes).into_owned())
}

/// Bytes of a String, if they may be read now; `None` if the value is not a String.
///
/// # Safety
/// `value` is an immediate or an object that is alive; the bytes are used before the VM may change it.
pub unsafe fn bytes<'a>(value: VALUE) -> Option<&'a [u8]> {
    let is_immediate =
        rb_sys::StableApiDefinition::special_const_p(rb_sys::stable_api::get_default(), value);
    // SAFETY: not an immediate, so an object that is alive, as the caller vouches.
    unsafe {
        if is_immediate || !Flags::of(value).is(ruby_value_type::RUBY_T_STRING) {
            return None;
        }
        string_bytes(value)
    }
}

/// Bytes of a string, if they may be read now.
///
/// A string whose bytes belong to another string (shared) is read only if that one still has them: when both are freed in one
/// GC, the other may have been swept first.
///
/// # Safety
/// `string` is a T_STRING that lives, or that a free hook was just given; the bytes are used before either returns.
pub unsafe fn string_bytes<'a>(string: VALUE) -> Option<&'a [u8]> {
    // SAFETY: the caller passes a T_STRING whose slot has not been cleared.
    unsafe {
        let flags = Flags::of(string);
        let (start, length) = string_extent(string);
        if start.is_null() || length == 0 {
            return (length == 0).then_some(&[]);
        }
        let embedded = flags.0 & ruby_rstring_flags::RSTRING_NOEMBED as usize == 0;
        let shared = flags.0 & ruby_fl_type::RUBY_ELTS_SHARED as usize != 0;
        if !embedded && shared && !shared_bytes_held(string, start, length) {
            return None;
        }
        Some(std::slice::from_raw_parts(start, length))
    }
}

unsafe fn string_extent(string: VALUE) -> (*const u8, usize) {
    let api = rb_sys::stable_api::get_default();
    // SAFETY: a T_STRING, as the callers vouch.
    unsafe {
        (api.rstring_ptr(string).cast(), usize::try_from(api.rstring_len(string)).unwrap_or(0))
    }
}

/// True if the string that `string` shares its bytes with is still a string with these bytes. Its slot is mapped, since heap
/// pages are only released between GCs; it may have been freed and reused, so everything is compared.
unsafe fn shared_bytes_held(string: VALUE, start: *const u8, length: usize) -> bool {
    if layouts::check().is_err() {
        return false;
    }
    /// as.heap.aux.shared of struct RString: after flags, class, length and pointer, in either order.
    const SHARED_WORD: usize = 4;
    // SAFETY: a string that is not embedded has this word in every version; slots are mapped (see above).
    unsafe {
        let root = *(string as *const VALUE).add(SHARED_WORD);
        if root == 0 || root & 7 != 0 || !Flags::of(root).is(ruby_value_type::RUBY_T_STRING) {
            return false;
        }
        let (root_start, root_length) = string_extent(root);
        let (begin, root_begin) = (start as usize, root_start as usize);
        !root_start.is_null() && root_begin <= begin && begin + length <= root_begin + root_length
    }
}
