//! Templates: the common data of objects with the same class and flags. Most objects share theirs with many others, so a
//! template is computed once.

use memprof_dump::record::{Flags as Bits, Kind, NameId};
use rb_sys::{VALUE, ruby_fl_type, ruby_rstring_flags};
use rustc_hash::FxHashMap;

use super::ivars::Layout;
use super::name_table::Names;
use super::{details, plain, shapes, text};
use crate::vm::ruby_object::Flags;

/// Slots of the table that precedes the map.
const SLOTS: usize = 4096;

/// Flags, class, and further properties of an object: bits of its record, slot size, age.
pub type Key = [u64; 3];

/// The template key of an object.
#[inline(always)]
pub fn key(flags: Flags, class: VALUE, bits: Bits, slot_size: u32, age: Option<u8>) -> Key {
    let age = age.map_or(0, |age| u64::from(age) + 1);
    let other = u64::from(slot_size) << 32 | age << 20 | u64::from(bits.0);
    [flags.0 as u64, class, other]
}

/// The common data of objects with the same key.
pub struct Template {
    pub class_name: Option<NameId>,
    pub shape_id: Option<u32>,
    /// All bits of the record.
    pub bits: Bits,
    /// For strings: the encoding.
    pub encoding: NameId,
    /// For plain objects: number of instance variables, as counted by [`details::ivar_slots`]. Before Ruby 3.2 it varies within
    /// a class.
    pub ivars: u64,
    /// For plain objects: whether the instance variables are in a hash table.
    pub complex: bool,
    /// Bytes that the VM adds to slot and contents (`plain::overhead`); `None` if the VM must be asked for each object.
    pub overhead: Option<u64>,
    /// For plain objects: the location of the instance variables.
    pub layout: Layout,
}

/// All templates so far: a map, preceded by a table of recently used ones.
pub struct TemplateCache {
    slots: Vec<(Key, u32)>,
    all: FxHashMap<Key, u32>,
    templates: Vec<Template>,
}

impl Default for TemplateCache {
    fn default() -> Self {
        TemplateCache {
            // No object has these flags.
            slots: vec![([0; 3], 0); SLOTS],
            all: FxHashMap::default(),
            templates: Vec::new(),
        }
    }
}

impl TemplateCache {
    /// Id of the object's template.
    ///
    /// # Safety
    /// `object` is a plain string, array, hash or object, and this is its key.
    #[inline(always)]
    pub unsafe fn of(&mut self, names: &mut Names, labels: bool, object: VALUE, key: Key) -> u32 {
        let slot = &self.slots[place(key)];
        // Word by word: the key was just written, and a wider load would stall on store forwarding.
        let other = (slot.0[0] ^ key[0]) | (slot.0[1] ^ key[1]) | (slot.0[2] ^ key[2]);
        if other == 0 {
            return slot.1;
        }
        // SAFETY: the caller vouches.
        unsafe { self.look_up(names, labels, object, key) }
    }

    /// The template with this id.
    #[inline(always)]
    pub fn get(&self, number: u32) -> &Template {
        &self.templates[number as usize]
    }

    /// As [`TemplateCache::get`].
    pub fn get_mut(&mut self, number: u32) -> &mut Template {
        &mut self.templates[number as usize]
    }

    #[cold]
    #[inline(never)]
    unsafe fn look_up(&mut self, names: &mut Names, labels: bool, object: VALUE, key: Key) -> u32 {
        let number = match self.all.get(&key) {
            Some(number) => *number,
            None => {
                let number = self.templates.len() as u32;
                // SAFETY: the caller vouches.
                let template = unsafe { template(names, labels, object, key) };
                self.templates.push(template);
                self.all.insert(key, number);
                number
            }
        };
        self.slots[place(key)] = (key, number);
        number
    }
}

#[inline(always)]
fn place([flags, class, other]: Key) -> usize {
    let mixed = (flags ^ other.rotate_left(23)).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ class;
    (mixed.wrapping_mul(0xd6e8_feb8_6659_fd93) >> 52) as usize & (SLOTS - 1)
}

/// # Safety
/// As [`TemplateCache::of`].
unsafe fn template(
    names: &mut Names,
    labels: bool,
    object: VALUE,
    [flags, class, other]: Key,
) -> Template {
    let (flags, slot_size) = (Flags(flags as usize), (other >> 32) as u32);
    let mut bits = Bits(other as u32 & 0xf_ffff);
    let frozen = ruby_fl_type::RUBY_FL_FREEZE as usize;
    bits.set(Bits::FROZEN, flags.0 & frozen != 0);
    bits.set(Bits::FINALIZE, flags.has_finalizer());
    let kind = Kind(flags.value_type() as u8);
    let mut encoding = NameId(0);
    let (mut ivars, mut complex) = (0, false);
    // SAFETY: an object of its type, as the caller vouches.
    unsafe {
        match kind {
            Kind::STRING => {
                bits.set(Bits::EMBEDDED, text::is_embedded(flags));
                let fstring = ruby_rstring_flags::RSTRING_FSTR as usize;
                bits.set(Bits::FSTRING, flags.0 & fstring != 0);
                bits.set(Bits::CHILLED, text::is_chilled(flags));
                encoding = text::encoding(names, object, flags);
            }
            Kind::OBJECT => {
                complex = details::is_too_complex(object, flags);
                bits.set(Bits::EMBEDDED, details::is_embedded_object(flags));
                bits.set(Bits::TOO_COMPLEX, complex);
                ivars = details::ivar_slots(object, flags);
            }
            _ => {}
        }
    }
    Template {
        // objspace's lines, which have no labels, have no field for it.
        class_name: if labels { names.class(class) } else { None },
        shape_id: shapes::of(object, flags),
        bits,
        encoding,
        ivars,
        complex,
        // SAFETY: as above.
        overhead: unsafe { plain::overhead(object, flags, slot_size) },
        layout: Layout::default(),
    }
}
