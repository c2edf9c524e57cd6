//! What is known of an object by its type.

use memprof_heap::dump::record::{Detail, Flags as Bits, Kind, Object, Text, Value};
use rb_sys::{StableApiDefinition, VALUE, ruby_fl_type, ruby_value_type};

use super::walk::Walk;
use super::{imemo, known, shapes, text, values};
use crate::vm::object::{self, Flags};
use crate::vm::symbols::symbols;

const EMBEDDED_ARRAY: usize = 1 << 13;
const PROC_DEFAULT: usize = 1 << 14;
/// Word of struct RHash with the default value or proc.
pub const HASH_DEFAULT: usize = if cfg!(ruby_gte_3_3) { 2 } else { 3 };
/// Word of struct RRegexp with the source, of struct RFile with the io, and of that what is read.
const REGEXP_SOURCE: usize = 3;
const FILE_IO: usize = 2;
const IO_FD: usize = 16;
const IO_MODE: usize = 20;
/// Word of struct rb_io with the path.
pub const IO_PATH: usize = 4;

/// A slot that says nothing but its type: one that waits for its finalizer, or a syntax node of a parser.
pub fn bare(address: VALUE, kind: Kind, slot_size: u32) -> Object<'static> {
    Object {
        address,
        kind,
        class: 0,
        class_name: None,
        slot_size,
        memsize: 0,
        // SAFETY: a slot of the heap page that the walk visits.
        shape_id: shapes::of(address, unsafe { Flags::of(address) }),
        flags: Bits::default(),
        age: None,
        object_id: None,
        detail: Detail::None,
        fields: &[],
        allocation: None,
    }
}

/// The class word, where it is a class. Objspace writes it up to Ruby 3.1 also where it is none (`raw`).
///
/// # Safety
/// `object` is a slot that holds an object.
#[inline]
pub unsafe fn class(object: VALUE, flags: Flags, raw: bool) -> VALUE {
    let internal = flags.is(ruby_value_type::RUBY_T_IMEMO)
        && !imemo::is_fields(flags)
        && (cfg!(ruby_gte_3_2) || !raw);
    if internal {
        0
    } else {
        // SAFETY: the caller vouches.
        unsafe { object::class_word(object) }
    }
}

/// Bytes of an object with what it holds by malloc. The VM is asked only where the slot is not all there is.
///
/// # Safety
/// `object` is a slot with these flags that holds an object.
#[inline]
pub unsafe fn memsize(object: VALUE, flags: Flags, slot_size: u32) -> u64 {
    let in_slot = match Kind(flags.value_type() as u8) {
        Kind::STRING => text::is_embedded(flags),
        Kind::ARRAY => flags.0 & EMBEDDED_ARRAY != 0,
        Kind::FLOAT => true,
        Kind::OBJECT => is_object_in_slot(flags),
        Kind::IMEMO => imemo::is_in_slot(flags),
        _ => false,
    };
    if in_slot && !super::contents::has_fields(flags) {
        return u64::from(slot_size);
    }
    // SAFETY: the caller vouches.
    symbols()
        .memsize_of
        .map_or(0, |memsize_of| unsafe { memsize_of(object) as u64 })
}

/// True for a class or module.
///
/// # Safety
/// `object` is the address of an object.
pub unsafe fn is_module(object: VALUE) -> bool {
    // SAFETY: the caller vouches.
    let flags = unsafe { Flags::of(object) };
    flags.is(ruby_value_type::RUBY_T_CLASS)
        || flags.is(ruby_value_type::RUBY_T_MODULE)
        || flags.is(ruby_value_type::RUBY_T_ICLASS)
}

/// # Safety
/// `object` has that many words.
pub unsafe fn word(object: VALUE, index: usize) -> VALUE {
    // SAFETY: the caller vouches.
    unsafe { *(object as *const VALUE).add(index) }
}

/// What is known by type, and the flags that go with it.
///
/// # Safety
/// `object` is a slot with these flags that holds an object; the collector does not run; `walk.references` is filled
/// for the types that need it.
pub unsafe fn detail(walk: &mut Walk<'_>, object: VALUE, flags: Flags) -> (Detail<'static>, Bits) {
    let mut bits = Bits::default();
    let api = rb_sys::stable_api::get_default();
    // SAFETY: each arm reads the struct of its type.
    let detail = unsafe {
        match Kind(flags.value_type() as u8) {
            Kind::STRING => {
                let (text, flags) = text::describe(&mut walk.names, object, flags);
                bits = flags;
                Detail::String(text)
            }
            Kind::SYMBOL => symbol(walk, object),
            Kind::REGEXP => match word(object, REGEXP_SOURCE) {
                source if text::is_string(source) => {
                    Detail::Regexp(text::text(&mut walk.names, source, Flags::of(source)))
                }
                _ => Detail::None,
            },
            Kind::FLOAT => Detail::Float(rb_sys::rb_float_value(object)),
            Kind::BIGNUM => bignum(walk, object),
            Kind::ARRAY => {
                let length = api.rarray_len(object) as u64;
                let embedded = flags.0 & EMBEDDED_ARRAY != 0;
                // Ruby 3.1 does not say it of an empty one.
                bits.set(
                    Bits::EMBEDDED,
                    embedded && (length > 0 || cfg!(ruby_gte_3_2)),
                );
                bits.set(Bits::SHARED, is_shared_array(flags) && length > 0);
                Detail::Length(length)
            }
            Kind::STRUCT => Detail::Length((rb_sys::rb_struct_size(object) as u64) >> 1),
            Kind::HASH => {
                let default = word(object, HASH_DEFAULT);
                Detail::Hash {
                    size: (rb_sys::rb_hash_size_num(object)) as u64,
                    default: values::decode(&mut walk.names, default),
                    default_proc: flags.0 & PROC_DEFAULT != 0,
                }
            }
            Kind::OBJECT => {
                bits.set(Bits::EMBEDDED, is_embedded_object(flags));
                bits.set(Bits::TOO_COMPLEX, is_too_complex(object, flags));
                Detail::Object {
                    ivars: ivar_slots(object, flags),
                }
            }
            Kind::CLASS | Kind::MODULE | Kind::ICLASS => {
                super::class::detail(walk, object, flags, &mut bits)
            }
            Kind::DATA => {
                let kind = known::data_type(object);
                let name = if kind.is_null() {
                    None
                } else {
                    walk.names.c_string((*kind).wrap_struct_name)
                };
                if walk.scope.labels {
                    known::facts(walk, object);
                }
                Detail::Data { type_name: name }
            }
            Kind::RATIONAL => numbers(walk, object, ["numerator", "denominator"]),
            Kind::COMPLEX => numbers(walk, object, ["real", "imaginary"]),
            Kind::FILE => file(walk, object),
            Kind::IMEMO => imemo::detail(walk, object, flags),
            _ => Detail::None,
        }
    };
    (detail, bits)
}

/// The two numbers of a Rational or Complex, also those that are no objects.
///
/// # Safety
/// `object` is one of these: two VALUEs behind the header.
unsafe fn numbers(walk: &mut Walk<'_>, object: VALUE, names: [&'static str; 2]) -> Detail<'static> {
    if walk.scope.labels {
        for (index, name) in names.into_iter().enumerate() {
            // SAFETY: the caller vouches.
            let number = values::decode(&mut walk.names, unsafe { word(object, 2 + index) });
            walk.field(name, number);
        }
    }
    Detail::None
}

/// True for an array whose elements belong to another one.
pub fn is_shared_array(flags: Flags) -> bool {
    flags.0 & ruby_fl_type::RUBY_ELTS_SHARED as usize != 0 && flags.0 & EMBEDDED_ARRAY == 0
}

#[cfg(ruby_gte_4_0)]
fn is_embedded_object(flags: Flags) -> bool {
    /// ROBJECT_HEAP in ruby/internal/core/robject.h.
    const HEAP: usize = 1 << 16;
    flags.0 & HEAP == 0
}

#[cfg(all(ruby_gte_3_2, not(ruby_gte_4_0)))]
fn is_embedded_object(flags: Flags) -> bool {
    /// ROBJECT_EMBED in ruby/internal/core/robject.h.
    const EMBED: usize = 1 << 13;
    flags.0 & EMBED != 0
}

/// Ruby 3.1 does not say it.
#[cfg(not(ruby_gte_3_2))]
fn is_embedded_object(_: Flags) -> bool {
    false
}

/// True if the instance variables are surely in the slot. Since Ruby 3.2 an embedded object may have them in a hash table.
fn is_object_in_slot(flags: Flags) -> bool {
    /// ROBJECT_EMBED of 3.1.
    const EMBED: usize = 1 << 13;
    !cfg!(ruby_gte_3_2) && flags.0 & EMBED != 0
}

/// # Safety
/// `object` is a T_OBJECT.
unsafe fn is_too_complex(object: VALUE, flags: Flags) -> bool {
    if cfg!(ruby_gte_4_0) {
        return shapes::is_too_complex(flags);
    }
    // SAFETY: the caller vouches.
    symbols()
        .shape_too_complex
        .is_some_and(|too_complex| unsafe { too_complex(object) })
}

/// Number of instance variables as objspace counts them: before 3.2 the room for them, later those that are there.
///
/// # Safety
/// `object` is a T_OBJECT.
unsafe fn ivar_slots(object: VALUE, flags: Flags) -> u64 {
    if cfg!(ruby_gte_3_2) {
        // Since 4.0 an object id is kept like an instance variable.
        let has_id = cfg!(ruby_gte_4_0) && shapes::has_object_id(flags);
        // SAFETY: the caller vouches.
        return unsafe { rb_sys::rb_ivar_count(object) } as u64 + u64::from(has_id);
    }
    /// ROBJECT_EMBED and ROBJECT_EMBED_LEN_MAX of 3.1.
    const EMBED: usize = 1 << 13;
    const EMBED_LENGTH: u64 = 3;
    if flags.0 & EMBED != 0 {
        EMBED_LENGTH
    } else {
        // SAFETY: as.heap.numiv, a 32-bit number behind the header.
        u64::from(unsafe { word(object, 2) } as u32)
    }
}

/// # Safety
/// `object` is a T_SYMBOL.
unsafe fn symbol(walk: &mut Walk<'_>, object: VALUE) -> Detail<'static> {
    // SAFETY: the caller vouches; the name is a String that the symbol holds.
    unsafe {
        let name = rb_sys::rb_sym2str(object);
        if text::is_string(name) {
            let mut text = text::text(&mut walk.names, name, Flags::of(name));
            text.capacity = text::describe(&mut walk.names, name, Flags::of(name))
                .0
                .capacity;
            Detail::Symbol(text)
        } else {
            Detail::None
        }
    }
}

/// Digits of an Integer that is an object: decimal up to 128 bits, hexadecimal beyond.
///
/// # Safety
/// `object` is a T_BIGNUM.
unsafe fn bignum(walk: &mut Walk<'_>, object: VALUE) -> Detail<'static> {
    /// INTEGER_PACK_LSWORD_FIRST | INTEGER_PACK_NATIVE_BYTE_ORDER of ruby/internal/intern/bignum.h.
    const LEAST_FIRST: i32 = 0x02 | 0x40;
    // SAFETY: the caller vouches; `words` has the room that is said. The functions read the digits, and allocate
    // nothing.
    let (words, negative) = unsafe {
        let mut zeros = 0;
        let bytes = rb_sys::rb_absint_size(object, &raw mut zeros);
        let mut words = vec![0u64; (bytes as usize).div_ceil(8)];
        rb_sys::rb_integer_pack(
            object,
            words.as_mut_ptr().cast(),
            words.len() as _,
            8,
            0,
            LEAST_FIRST,
        );
        let negative = rb_sys::stable_api::get_default().bignum_negative_p(object);
        (words, negative)
    };
    let sign = if negative { "-" } else { "" };
    let digits = match words.as_slice() {
        [] => "0".to_owned(),
        [low] => format!("{sign}{low}"),
        [low, high] => format!("{sign}{}", u128::from(*high) << 64 | u128::from(*low)),
        _ => {
            let tail: String = words
                .iter()
                .rev()
                .skip(1)
                .map(|word| format!("{word:016x}"))
                .collect();
            format!("{sign}0x{:x}{tail}", words.last().copied().unwrap_or(0))
        }
    };
    let encoding = walk.names.encoding(2);
    walk.digits.clear();
    walk.digits.extend_from_slice(digits.as_bytes());
    // SAFETY: the walk's own buffer, which is not touched until the record is written.
    let bytes: &'static [u8] =
        unsafe { std::slice::from_raw_parts(walk.digits.as_ptr(), walk.digits.len()) };
    Detail::Bignum(Text {
        length: walk.names.values.length(bytes.len() as u64),
        capacity: None,
        encoding,
        coderange: memprof_heap::dump::record::CodeRange::SevenBit,
        content: walk.names.values.content(bytes),
    })
}

/// Descriptor, mode and path of an IO.
///
/// # Safety
/// `object` is a T_FILE.
unsafe fn file(walk: &mut Walk<'_>, object: VALUE) -> Detail<'static> {
    // SAFETY: struct RFile and struct rb_io (ruby/io.h, internal/io.h) begin alike in all versions.
    unsafe {
        let io = word(object, FILE_IO) as *const u8;
        if io.is_null() {
            return Detail::File { fd: None };
        }
        let (fd, mode) = (
            io.add(IO_FD).cast::<i32>().read(),
            io.add(IO_MODE).cast::<u32>().read(),
        );
        if walk.scope.labels {
            let path = word(io as VALUE, IO_PATH);
            if walk.names.values.previews()
                && walk.references.contains(&path)
                && text::is_string(path)
            {
                let path = String::from_utf8_lossy(text::bytes(path)).into_owned();
                let path = walk.names.tables.intern(&path);
                walk.field("path", Value::Name(path));
            }
            let json = walk.names.tables.intern(&mode_words(mode));
            walk.field("mode", Value::Json(json));
        }
        Detail::File { fd: Some(fd) }
    }
}

/// Words for the bits of an IO's mode (FMODE_ in ruby/io.h).
fn mode_words(mode: u32) -> String {
    const WORDS: [(u32, &str); 8] = [
        (0x1, "readable"),
        (0x2, "writable"),
        (0x4, "binmode"),
        (0x8, "sync"),
        (0x10, "tty"),
        (0x20, "duplex"),
        (0x40, "append"),
        (0x80, "create"),
    ];
    let words: Vec<String> = (WORDS.iter().filter(|(bit, _)| mode & bit != 0))
        .map(|(_, word)| format!("\"{word}\""))
        .collect();
    format!("[{}]", words.join(","))
}
