//! Type-specific data of objects.

use memprof_dump::record::{Detail, Flags as Bits, Kind, Object, Value};
use rb_sys::{StableApiDefinition, VALUE, ruby_fl_type, ruby_value_type};

use super::walk::Walk;
use super::{imemo, numeric, ruby_value, shapes, streams, text, typed_data};
use crate::vm::ruby_object::{self, Flags};
use crate::vm::symbols::symbols;

const EMBEDDED_ARRAY: usize = 1 << 13;
const PROC_DEFAULT: usize = 1 << 14;
/// Word of struct RHash with the default value or proc.
pub const HASH_DEFAULT: usize = if cfg!(ruby_gte_3_3) { 2 } else { 3 };
/// Word of struct RRegexp with the source.
const REGEXP_SOURCE: usize = 3;

/// A slot with nothing but its type: a zombie waiting for its finalizer, or a syntax node of a parser.
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

/// The class word if it is a class. Up to Ruby 3.1 objspace writes it even if it is not (`raw`).
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
        unsafe { ruby_object::class_word(object) }
    }
}

/// Bytes of an object including its malloc'ed memory. The VM is only asked if there may be more than the slot.
///
/// # Safety
/// `object` is a slot with these flags that holds an object.
#[inline]
pub unsafe fn memsize(object: VALUE, flags: Flags, slot_size: u32) -> u64 {
    let in_slot = match Kind(flags.value_type() as u8) {
        Kind::STRING => text::is_embedded(flags),
        Kind::ARRAY => flags.0 & EMBEDDED_ARRAY != 0,
        Kind::FLOAT => true,
        // Since Ruby 3.2 an embedded object may have its instance variables in a hash table.
        Kind::OBJECT => !cfg!(ruby_gte_3_2) && has_slots_inside(flags),
        Kind::IMEMO => imemo::is_in_slot(flags),
        _ => false,
    };
    if in_slot && !super::contents::has_fields(flags) {
        return u64::from(slot_size);
    }
    // SAFETY: the caller vouches.
    unsafe { asked_memsize(object) }.unwrap_or(u64::from(slot_size))
}

/// The same, as counted by the VM; `None` if it does not count this type.
///
/// # Safety
/// `object` is a slot that holds an object.
pub unsafe fn asked_memsize(object: VALUE) -> Option<u64> {
    // SAFETY: the caller vouches.
    unsafe { crate::vm::memsize::memsize(object, Flags::of(object)) }
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

/// Type-specific data, and the flags that belong to it.
///
/// # Safety
/// `object` is a slot with these flags that holds an object; GC does not run; `walk.references` is filled
/// for the types that need it.
pub unsafe fn detail(walk: &mut Walk, object: VALUE, flags: Flags) -> (Detail<'static>, Bits) {
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
            Kind::FLOAT if walk.names.values.previews() => {
                Detail::Float(rb_sys::rb_float_value(object))
            }
            Kind::BIGNUM => numeric::bignum(walk, object),
            Kind::ARRAY => {
                let length = api.rarray_len(object) as u64;
                bits = array_bits(flags, length);
                if walk.scope.labels && is_shared_array(flags) {
                    offset(walk, object);
                }
                Detail::Length(length)
            }
            Kind::STRUCT => Detail::Length((rb_sys::rb_struct_size(object) as u64) >> 1),
            Kind::HASH => {
                if walk.scope.labels && compares_by_identity(&walk.data_types, object) {
                    walk.field("compare_by_identity", Value::True);
                }
                hash(walk, object, flags)
            }
            Kind::OBJECT => {
                bits.set(Bits::EMBEDDED, is_embedded_object(flags));
                bits.set(Bits::TOO_COMPLEX, is_too_complex(object, flags));
                Detail::Object { ivars: ivar_slots(object, flags) }
            }
            Kind::CLASS | Kind::MODULE | Kind::ICLASS => {
                super::class::detail(walk, object, flags, &mut bits)
            }
            Kind::DATA => {
                let kind = typed_data::data_type(object);
                let name = if kind.is_null() {
                    None
                } else {
                    walk.names.c_string((*kind).wrap_struct_name)
                };
                if walk.scope.labels {
                    typed_data::facts(walk, object);
                }
                Detail::Data { type_name: name }
            }
            Kind::RATIONAL => numeric::numbers(walk, object, ["numerator", "denominator"]),
            Kind::COMPLEX => numeric::numbers(walk, object, ["real", "imaginary"]),
            Kind::FILE => streams::file(walk, object),
            Kind::IMEMO => imemo::detail(walk, object, flags),
            _ => Detail::None,
        }
    };
    (detail, bits)
}

/// How the table of a hash compares keys: the address of its functions. `None` for one without a table (few entries, not
/// compared by identity).
///
/// # Safety
/// `hash` is a T_HASH.
#[inline(always)]
pub unsafe fn compared_by(hash: VALUE) -> Option<usize> {
    /// RHASH_ST_TABLE_FLAG in internal/hash.h.
    const HAS_TABLE: usize = 1 << 15;
    /// Word of struct RHash with the table (up to Ruby 3.2 its address), and word of the table with its functions (st.h).
    const TABLE: usize = if cfg!(ruby_gte_3_3) { 3 } else { 2 };
    const FUNCTIONS: usize = 1;
    // SAFETY: the caller vouches; a hash with this flag has a table.
    unsafe {
        if Flags::of(hash).0 & HAS_TABLE == 0 {
            None
        } else if cfg!(ruby_gte_3_3) {
            Some(word(hash, TABLE + FUNCTIONS) as usize)
        } else {
            Some(word(word(hash, TABLE), FUNCTIONS) as usize)
        }
    }
}

/// True for a hash that compares its keys by identity.
///
/// # Safety
/// `hash` is a T_HASH.
#[inline(always)]
pub unsafe fn compares_by_identity(types: &typed_data::DataTypes, hash: VALUE) -> bool {
    // SAFETY: the caller vouches.
    types.identity != 0 && unsafe { compared_by(hash) } == Some(types.identity)
}

/// The offset of a shared array's elements in the array that owns them, as a fact.
///
/// # Safety
/// `array` is a T_ARRAY with shared elements; `walk.references` has what it refers to.
unsafe fn offset(walk: &mut Walk, array: VALUE) {
    let is_array = |other: &&VALUE| {
        // SAFETY: what an object of the walk refers to is an object.
        unsafe { Flags::of(**other) }.is(ruby_value_type::RUBY_T_ARRAY)
    };
    // Instance variables may be arrays, too: only one of them contains the elements.
    let offset = walk.references.iter().filter(is_array).find_map(|root| {
        // SAFETY: both are arrays, which nothing changes.
        let (own, all) = unsafe { (super::contents::slice(array), super::contents::slice(*root)) };
        let (start, range) = (own.as_ptr(), all.as_ptr_range());
        (!own.is_empty() && range.contains(&start))
            .then(|| (start as usize - range.start as usize) / size_of::<VALUE>())
    });
    if let Some(offset) = offset {
        walk.field("offset", Value::Int(offset as i64));
    }
}

/// Size and default of a hash.
///
/// # Safety
/// `object` is a T_HASH with these flags.
#[inline(always)]
pub unsafe fn hash(walk: &mut Walk, object: VALUE, flags: Flags) -> Detail<'static> {
    // SAFETY: the caller vouches; struct RHash has this word.
    let (default, size) =
        unsafe { (word(object, HASH_DEFAULT), rb_sys::rb_hash_size_num(object) as u64) };
    Detail::Hash {
        size,
        default: ruby_value::decode(&mut walk.names, default),
        default_proc: flags.0 & PROC_DEFAULT != 0,
    }
}

/// Flags of an array of this length.
#[inline(always)]
pub fn array_bits(flags: Flags, length: u64) -> Bits {
    let mut bits = Bits::default();
    // Ruby 3.1 does not report it for an empty array.
    let is_reported = length > 0 || cfg!(ruby_gte_3_2);
    bits.set(Bits::EMBEDDED, has_elements_inside(flags) && is_reported);
    bits.set(Bits::SHARED, is_shared_array(flags) && length > 0);
    bits
}

/// True for an array whose elements are in its slot.
pub fn has_elements_inside(flags: Flags) -> bool {
    flags.0 & EMBEDDED_ARRAY != 0
}

/// True for an array whose elements belong to another one.
pub fn is_shared_array(flags: Flags) -> bool {
    flags.0 & ruby_fl_type::RUBY_ELTS_SHARED as usize != 0 && flags.0 & EMBEDDED_ARRAY == 0
}

/// True for an object whose instance variables are in its slot, unless they are in a hash table.
#[inline(always)]
pub fn has_slots_inside(flags: Flags) -> bool {
    /// ROBJECT_EMBED of 3.1.
    const EMBED: usize = 1 << 13;
    if cfg!(ruby_gte_3_2) { is_embedded_object(flags) } else { flags.0 & EMBED != 0 }
}

#[cfg(ruby_gte_4_0)]
pub fn is_embedded_object(flags: Flags) -> bool {
    /// ROBJECT_HEAP in ruby/internal/core/robject.h.
    const HEAP: usize = 1 << 16;
    flags.0 & HEAP == 0
}

#[cfg(all(ruby_gte_3_2, not(ruby_gte_4_0)))]
pub fn is_embedded_object(flags: Flags) -> bool {
    /// ROBJECT_EMBED in ruby/internal/core/robject.h.
    const EMBED: usize = 1 << 13;
    flags.0 & EMBED != 0
}

/// Ruby 3.1 does not report it.
#[cfg(not(ruby_gte_3_2))]
pub fn is_embedded_object(_: Flags) -> bool {
    false
}

/// # Safety
/// `object` is a T_OBJECT.
pub unsafe fn is_too_complex(object: VALUE, flags: Flags) -> bool {
    if cfg!(ruby_gte_4_0) {
        return shapes::is_too_complex(flags);
    }
    // SAFETY: the caller vouches.
    symbols().shape_too_complex.is_some_and(|too_complex| unsafe { too_complex(object) })
}

/// Number of instance variables as in objspace: before 3.2 the allocated room, later those that are set.
///
/// # Safety
/// `object` is a T_OBJECT.
#[inline]
pub unsafe fn ivar_slots(object: VALUE, flags: Flags) -> u64 {
    if cfg!(ruby_gte_3_2) {
        // Since 4.0 an object id is stored like an instance variable.
        let has_id = cfg!(ruby_gte_4_0) && shapes::has_object_id(flags);
        // SAFETY: the caller vouches.
        return unsafe { rb_sys::rb_ivar_count(object) } as u64 + u64::from(has_id);
    }
    /// ROBJECT_EMBED_LEN_MAX of 3.1.
    const EMBED_LENGTH: u64 = 3;
    if has_slots_inside(flags) {
        EMBED_LENGTH
    } else {
        // SAFETY: as.heap.numiv, a 32-bit number behind the header.
        u64::from(unsafe { word(object, 2) } as u32)
    }
}

/// # Safety
/// `object` is a T_SYMBOL.
unsafe fn symbol(walk: &mut Walk, object: VALUE) -> Detail<'static> {
    // SAFETY: the caller vouches; the name is a String that the symbol holds.
    unsafe {
        let name = rb_sys::rb_sym2str(object);
        if text::is_string(name) {
            let mut text = text::text(&mut walk.names, name, Flags::of(name));
            text.capacity = text::describe(&mut walk.names, name, Flags::of(name)).0.capacity;
            Detail::Symbol(text)
        } else {
            Detail::None
        }
    }
}
