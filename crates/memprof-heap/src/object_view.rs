//! One object with all its facts.

use std::io;

use super::{Class, FOLDED, Group, Heap, NONE, Stored};
use crate::Site;
use memprof_dump::record::{Flags, Kind};

/// All facts about one object.
#[derive(Clone, Debug, PartialEq)]
pub struct Object {
    /// Number.
    pub id: u32,
    /// Address.
    pub address: u64,
    /// Type, class object, internal name.
    pub group: Group,
    /// Class.
    pub class: Class,
    /// Bytes of the object itself.
    pub memsize: u64,
    /// Bytes of its slot; 0 if unknown.
    pub slot_size: u16,
    /// Boolean facts.
    pub flags: Flags,
    /// GC runs survived, as counted by the GC.
    pub age: Option<u8>,
    /// Elements, or bytes of a text.
    pub length: Option<u32>,
    /// Number of its shape.
    pub shape: Option<u32>,
    /// Where it was allocated.
    pub site: Option<Site>,
    /// GC runs before it was allocated.
    pub generation: Option<u32>,
    /// Contents, of a string, symbol, regexp or large integer.
    pub text: Option<Stored>,
}

impl Heap {
    /// All facts about an object; `None` if the number is out of range.
    ///
    /// # Errors
    /// If the index cannot be read.
    pub fn object(&self, id: u32) -> io::Result<Option<Object>> {
        let known =
            |column: &[u32]| column.get(id as usize).copied().filter(|&value| value != NONE);
        let Some(group) = known(self.group_numbers()?) else {
            return Ok(None);
        };
        let group = self.groups()[group as usize];
        let word = self.flag_words()?[id as usize];
        let age = (word >> 24) as u8;
        let site = known(self.site_numbers()?);
        let text = known(self.text_places()?);
        Ok(Some(Object {
            id,
            address: self.addresses().of(id),
            group,
            class: self.classes()[group.shown as usize],
            memsize: self.memsizes()?.get(id),
            slot_size: self.slot_size(id),
            flags: Flags(word & 0xff_ffff & !FOLDED.0),
            age: (age != 0xff).then_some(age),
            length: known(self.lengths()?),
            shape: known(self.shape_ids()?),
            site: site.and_then(|site| self.sites().get(site as usize)).copied(),
            generation: known(self.generations()?),
            text: text.map(|place| self.texts().get(place)).transpose()?,
        }))
    }

    /// Type of an object; `None` if the number is out of range.
    ///
    /// # Errors
    /// If the index cannot be read.
    pub fn kind(&self, id: u32) -> io::Result<Option<Kind>> {
        Ok(self.group_numbers()?.get(id as usize).map(|&group| self.groups()[group as usize].kind))
    }

    /// Name of an object's class, or its substitute; for a root, its category.
    ///
    /// # Errors
    /// If the index cannot be read.
    pub fn class_name(&self, id: u32) -> io::Result<&str> {
        if let Some(category) = self.category(id) {
            return Ok(&category.name);
        }
        let group = self.group_numbers()?.get(id as usize);
        Ok(group.map_or("", |&group| {
            let class = &self.classes()[self.groups()[group as usize].shown as usize];
            self.name(class.name)
        }))
    }
}
