//! Strings, arrays, hashes and plain objects that are self-contained: nearly all objects of a program. Data common to many of
//! them is in a template ([`super::template_cache`]), so only the rest of each is read.

use std::io;

use memprof_dump::record::{Detail, Flags as Bits, Kind, Label, Object, Text};
use memprof_dump::writer::{LiveWriter, TemplateId};
use rb_sys::{ID, VALUE};

use super::collector::Collector;
use super::pass::Pass;
use super::template_cache::{self, Template};
use super::walk::Walk;
use super::{collector, contents, details, ivars, ruby_value, text};
use crate::vm::ruby_object::{self, Flags};

/// Word with the capacity of a string that is not embedded (struct RString).
const CAPACITY: usize = 4;

/// Describes an object; false if it is not one of these.
///
/// # Safety
/// `address` is a slot with these flags that holds an object; GC does not run.
#[inline(always)]
pub unsafe fn describe<W: LiveWriter>(
    pass: &mut Pass<'_, W>,
    address: VALUE,
    flags: Flags,
    slot_size: u32,
) -> io::Result<bool> {
    if !contents::is_plain(flags) {
        return Ok(false);
    }
    let one = One {
        address,
        flags,
        slot_size,
        // SAFETY: the caller vouches.
        class: unsafe { ruby_object::class_word(address) },
    };
    // SAFETY: as above; each function is given an object of its type.
    unsafe {
        match Kind(flags.value_type() as u8) {
            Kind::STRING => one.string(pass)?,
            Kind::ARRAY => one.array(pass)?,
            // Needs an extra fact.
            Kind::HASH
                if W::LABELS && details::compares_by_identity(&pass.walk.data_types, address) =>
            {
                return Ok(false);
            }
            Kind::HASH => one.hash(pass)?,
            Kind::OBJECT => return one.object(pass),
            _ => return Ok(false),
        }
    }
    Ok(true)
}

/// The object being described.
struct One {
    address: VALUE,
    flags: Flags,
    slot_size: u32,
    class: VALUE,
}

impl One {
    #[inline(always)]
    unsafe fn string<W: LiveWriter>(self, pass: &mut Pass<'_, W>) -> io::Result<()> {
        // SAFETY: a T_STRING that nothing frees meanwhile, as the caller vouches.
        let bytes = unsafe { text::bytes(self.address) };
        let coderange = text::coderange(self.flags);
        let mut bits = Bits::default();
        // SAFETY: as above.
        bits.set(Bits::BROKEN, unsafe { text::is_broken(self.address, self.flags, coderange) });
        let capacity = if text::is_embedded(self.flags) {
            None
        } else {
            // SAFETY: as above; a string whose bytes are not in its slot has this word.
            Some(unsafe { details::word(self.address, CAPACITY) })
        };
        let values = pass.walk.names.values;
        let write = |template: &Template| {
            Detail::String(Text {
                length: values.length(bytes.len() as u64),
                capacity: capacity.and_then(|capacity| {
                    values.length(match template.overhead {
                        Some(_) => capacity,
                        // SAFETY: as above; reads the capacity from the string's slot.
                        None => unsafe { rb_sys::rb_str_capacity(self.address) as u64 },
                    })
                }),
                encoding: template.encoding,
                coderange,
                content: values.content(bytes),
            })
        };
        // SAFETY: as above.
        unsafe {
            let (collector, template_id) = self.template_id(pass, bits);
            self.begin(pass, collector, template_id, capacity.unwrap_or(0), write)?;
        }
        pass.end()
    }

    #[inline(always)]
    unsafe fn array<W: LiveWriter>(self, pass: &mut Pass<'_, W>) -> io::Result<()> {
        // SAFETY: a T_ARRAY that nothing changes meanwhile, as the caller vouches.
        let elements = unsafe { contents::slice(self.address) };
        let bits = details::array_bits(self.flags, elements.len() as u64);
        let detail = Detail::Length(elements.len() as u64);
        // SAFETY: as above.
        unsafe {
            let (collector, template_id) = self.template_id(pass, bits);
            self.begin(pass, collector, template_id, 0, |_| detail)?;
        }
        pass.elements(elements)?;
        pass.end()
    }

    #[inline(always)]
    unsafe fn hash<W: LiveWriter>(self, pass: &mut Pass<'_, W>) -> io::Result<()> {
        // SAFETY: a T_HASH that nothing changes meanwhile, as the caller vouches.
        let detail = unsafe { details::hash(&mut pass.walk, self.address, self.flags) };
        // SAFETY: as above.
        unsafe {
            let (collector, template_id) = self.template_id(pass, Bits::default());
            self.begin(pass, collector, template_id, 0, |_| detail)?;
        }
        // SAFETY: as above.
        unsafe { entries(pass, self.address)? };
        pass.end()
    }

    #[inline(always)]
    unsafe fn object<W: LiveWriter>(self, pass: &mut Pass<'_, W>) -> io::Result<bool> {
        // SAFETY: a T_OBJECT, as the caller vouches.
        let (collector, template_id) = unsafe { self.template_id(pass, Bits::default()) };
        let template = pass.walk.templates.get(template_id);
        if template.complex {
            return Ok(false);
        }
        let ivars = if cfg!(ruby_gte_3_2) {
            template.ivars
        } else {
            // SAFETY: as above.
            unsafe { details::ivar_slots(self.address, self.flags) }
        };
        let detail = |_: &Template| Detail::Object { ivars };
        // SAFETY: as above.
        let counted = unsafe { counted(self.address, self.flags) };
        // SAFETY: as above.
        unsafe { self.begin(pass, collector, template_id, counted, detail)? };
        // SAFETY: as above; its instance variables are not in a hash table.
        let slots = unsafe { ivars::slots(self.address, self.flags, ivars) };
        if pass.walk.templates.get(template_id).layout.knows(slots) {
            for (slot, value) in slots.iter().enumerate() {
                if let Some(name) = pass.walk.templates.get(template_id).layout.name(slot, *value) {
                    pass.edge(Label::Ivar(name), *value)?;
                }
            }
        } else {
            self.ask_for_ivars(pass, template_id, slots)?;
        }
        pass.end()?;
        Ok(true)
    }

    #[cold]
    #[inline(never)]
    fn ask_for_ivars<W: LiveWriter>(
        &self,
        pass: &mut Pass<'_, W>,
        template_id: u32,
        slots: &[VALUE],
    ) -> io::Result<()> {
        let mut answer: Vec<(ID, VALUE)> = Vec::new();
        ivars::each(self.address, |id, value| answer.push((id, value)));
        let Walk { templates, names, .. } = &mut pass.walk;
        templates.get_mut(template_id).layout.learn(names, slots, &answer);
        for (id, value) in &answer {
            let name = pass.walk.names.id(*id);
            pass.edge(Label::Ivar(name), *value)?;
        }
        Ok(())
    }

    /// The GC's data on the object, and its template id.
    #[inline(always)]
    unsafe fn template_id<W: LiveWriter>(
        &self,
        pass: &mut Pass<'_, W>,
        bits: Bits,
    ) -> (Collector, u32) {
        let Walk { templates, names, scope, collector, .. } = &mut pass.walk;
        // SAFETY: an object, as the caller vouches; GC does not run.
        let collector = unsafe { collector::of(collector, self.address) };
        let bits = Bits(bits.0 | collector.flags.0);
        let key = template_cache::key(self.flags, self.class, bits, self.slot_size, collector.age);
        // SAFETY: as above; its key was just made.
        let number = unsafe { templates.of(names, scope.labels, self.address, key) };
        (collector, number)
    }

    /// Begins the record. `counted` is the result of [`counted`] for the object.
    #[inline(always)]
    unsafe fn begin<W: LiveWriter>(
        &self,
        pass: &mut Pass<'_, W>,
        collector: Collector,
        template_id: u32,
        counted: u64,
        detail: impl FnOnce(&Template) -> Detail<'static>,
    ) -> io::Result<()> {
        let allocation =
            if pass.walk.tracking { pass.walk.names.allocation(self.address) } else { None };
        let template = pass.walk.templates.get(template_id);
        let memsize = match template.overhead {
            Some(overhead) => u64::from(self.slot_size) + counted + overhead,
            // SAFETY: an object, as the caller vouches.
            None => unsafe {
                details::asked_memsize(self.address).unwrap_or(u64::from(self.slot_size))
            },
        };
        let object = Object {
            address: self.address,
            kind: Kind(self.flags.value_type() as u8),
            class: self.class,
            class_name: template.class_name,
            slot_size: self.slot_size,
            memsize,
            shape_id: template.shape_id,
            flags: template.bits,
            age: collector.age,
            object_id: collector.object_id,
            detail: detail(template),
            fields: &[],
            allocation,
        };
        pass.writer.object_from_template(&pass.walk.names.tables, TemplateId(template_id), &object)
    }
}

/// The entries of a hash, and its default.
///
/// # Safety
/// `hash` is a T_HASH that nothing changes meanwhile.
#[inline(always)]
pub unsafe fn entries<W: LiveWriter>(pass: &mut Pass<'_, W>, hash: VALUE) -> io::Result<()> {
    let mut outcome = Ok(());
    // SAFETY: the caller vouches.
    unsafe {
        contents::each_entry(hash, |key, value| {
            if outcome.is_ok() {
                outcome = pass.entry(key, value);
            }
        });
    }
    outcome?;
    // SAFETY: as above; struct RHash has this word.
    let default = unsafe { details::word(hash, details::HASH_DEFAULT) };
    if ruby_value::is_address(default) {
        let role = pass.walk.names.word("default");
        pass.edge(Label::Role(role), default)?;
    }
    Ok(())
}

/// Bytes of an object outside of its slot, by its own fields.
///
/// # Safety
/// `object` is a plain string, array, hash or object with these flags.
#[inline(always)]
unsafe fn counted(object: VALUE, flags: Flags) -> u64 {
    // SAFETY: the caller vouches; a string whose bytes are not in its slot has this word.
    unsafe {
        match Kind(flags.value_type() as u8) {
            Kind::STRING if !text::is_embedded(flags) => details::word(object, CAPACITY),
            Kind::OBJECT if !cfg!(ruby_gte_3_2) && !details::has_slots_inside(flags) => {
                8 * details::ivar_slots(object, flags)
            }
            _ => 0,
        }
    }
}

/// Bytes that the VM adds to the slot and to [`counted`], the same for all objects of this template: a string's terminator, the
/// room of a shape. `None` if it varies, or if an object's fields don't tell its size.
///
/// # Safety
/// As [`counted`].
pub unsafe fn overhead(object: VALUE, flags: Flags, slot_size: u32) -> Option<u64> {
    /// Bytes of a string's terminator: the widest character.
    const END: u64 = 4;
    // SAFETY: the caller vouches.
    let (counted, all) = unsafe { (counted(object, flags), details::asked_memsize(object)) };
    let overhead = all?.checked_sub(u64::from(slot_size).checked_add(counted)?)?;
    let same = match Kind(flags.value_type() as u8) {
        // SAFETY: as above.
        Kind::STRING if !text::is_embedded(flags) => unsafe {
            overhead <= END && counted == rb_sys::rb_str_capacity(object) as u64
        },
        Kind::STRING => overhead == 0,
        Kind::ARRAY => details::has_elements_inside(flags) && overhead == 0,
        Kind::OBJECT => cfg!(ruby_gte_3_2) || overhead == 0,
        _ => false,
    };
    same.then_some(overhead)
}
