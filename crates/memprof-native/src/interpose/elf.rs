//! A loaded object's description of itself: its dynamic section, its relocations, its symbols.

use std::ffi::CStr;
use std::mem;

use super::loaded_objects::Loaded;

#[cfg(target_arch = "x86_64")]
mod relocation {
    pub const JUMP_SLOT: u32 = 7;
    pub const GLOB_DAT: u32 = 6;
    pub const ABSOLUTE: u32 = 1;
}

#[cfg(target_arch = "aarch64")]
mod relocation {
    pub const JUMP_SLOT: u32 = 1026;
    pub const GLOB_DAT: u32 = 1025;
    pub const ABSOLUTE: u32 = 257;
}

const DT_NULL: i64 = 0;
const DT_PLTRELSZ: i64 = 2;
const DT_HASH: i64 = 4;
const DT_STRTAB: i64 = 5;
const DT_SYMTAB: i64 = 6;
const DT_RELA: i64 = 7;
const DT_RELASZ: i64 = 8;
const DT_STRSZ: i64 = 10;
const DT_JMPREL: i64 = 23;
const DT_GNU_HASH: i64 = 0x6fff_fef5;
const DT_VERSYM: i64 = 0x6fff_fff0;

const STT_FUNC: u8 = 2;
const STT_NOTYPE: u8 = 0;
/// A version requested only by programs linked long ago.
const VERSION_HIDDEN: u16 = 0x8000;

#[repr(C)]
#[derive(Clone, Copy)]
struct Dyn {
    tag: i64,
    value: u64,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Rela {
    offset: u64,
    info: u64,
    addend: i64,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Symbol {
    name: u32,
    info: u8,
    other: u8,
    section: u16,
    value: u64,
    size: u64,
}

/// The first two letters of names: a quick filter, since most symbols are of no interest to any tracer.
pub(super) struct Starts(Vec<bool>);

impl Starts {
    pub fn of<'a>(names: impl Iterator<Item = &'a [u8]>) -> Starts {
        let mut starts = Starts(vec![false; 1 << 16]);
        for start in names.filter_map(|name| name.first_chunk()) {
            starts.0[usize::from(u16::from_ne_bytes(*start))] = true;
        }
        starts
    }

    fn has(&self, start: [u8; 2]) -> bool {
        self.0[usize::from(u16::from_ne_bytes(start))]
    }
}

/// A word that the loader has set to the address of a symbol.
pub(super) struct Slot<'a> {
    pub name: &'a [u8],
    pub address: usize,
    /// A word of data, not of the table used for calls.
    pub is_data: bool,
    /// The symbol's address in the object itself, if it is defined there.
    pub defined_at: Option<usize>,
}

/// The dynamic section of an object that is kept in memory by a [`super::loaded_objects::Pin`].
pub(super) struct Dynamic<'a> {
    object: &'a Loaded,
    symbols: usize,
    strings: usize,
    strings_size: usize,
    tables: [(usize, usize); 2],
    gnu_hash: usize,
    hash: usize,
    versions: usize,
}

impl<'a> Dynamic<'a> {
    /// Reads the section; None if it is missing or names no symbols.
    ///
    /// # Safety
    ///
    /// The object must be relocated, and stay loaded as long as the result is used.
    pub unsafe fn read(object: &'a Loaded) -> Option<Dynamic<'a>> {
        let mut found = Dynamic {
            object,
            symbols: 0,
            strings: 0,
            strings_size: 0,
            tables: [(0, 0); 2],
            gnu_hash: 0,
            hash: 0,
            versions: 0,
        };
        let mut next = object.dynamic()?;
        loop {
            let Dyn { tag, value } = found.at::<Dyn>(next)?;
            next += size_of::<Dyn>();
            let value = value as usize;
            // glibc has added the base to addresses, musl has not.
            let address =
                if object.contains(value) { value } else { value.wrapping_add(object.base) };
            match tag {
                DT_NULL => break,
                DT_SYMTAB => found.symbols = address,
                DT_STRTAB => found.strings = address,
                DT_STRSZ => found.strings_size = value,
                DT_RELA => found.tables[0].0 = address,
                DT_RELASZ => found.tables[0].1 = value,
                DT_JMPREL => found.tables[1].0 = address,
                DT_PLTRELSZ => found.tables[1].1 = value,
                DT_GNU_HASH => found.gnu_hash = address,
                DT_HASH => found.hash = address,
                DT_VERSYM => found.versions = address,
                _ => {}
            }
        }
        (found.symbols != 0 && found.strings != 0).then_some(found)
    }

    /// Words that contain just the address of a symbol whose name begins like a wanted one.
    pub fn slots<'s>(&'s self, starts: &'s Starts) -> impl Iterator<Item = Slot<'a>> + 's {
        self.tables
            .iter()
            .flat_map(|&table| self.relocations(table))
            .filter_map(|entry| self.slot(entry, starts))
    }

    fn relocations(&self, (table, size): (usize, usize)) -> &'a [Rela] {
        let count = size / size_of::<Rela>();
        let is_there = table != 0 && count > 0 && table % align_of::<Rela>() == 0;
        if !is_there || !self.object.has_readable(table, table + count * size_of::<Rela>() - 1) {
            return &[];
        }
        // SAFETY: aligned, and inside a readable segment of the object, which stays loaded for 'a; nothing writes there.
        unsafe { std::slice::from_raw_parts(table as *const Rela, count) }
    }

    fn slot(&self, &Rela { offset, info, addend }: &Rela, starts: &Starts) -> Option<Slot<'a>> {
        let kind = info as u32;
        let is_symbol = match kind {
            // Linkers may store the address of the PLT entry as the addend (`-z mark-plt`, as in glibc of Debian 13). The
            // loader does not add it.
            relocation::JUMP_SLOT => true,
            relocation::GLOB_DAT | relocation::ABSOLUTE => addend == 0,
            _ => false,
        };
        if !is_symbol {
            return None;
        }
        let symbol = self.symbol((info >> 32) as usize)?;
        if !starts.has(self.at(self.strings + symbol.name as usize)?) {
            return None;
        }
        let address = self.object.base.wrapping_add(offset as usize);
        if address % align_of::<usize>() != 0 || !self.object.has_writable(address) {
            return None;
        }
        let is_defined = symbol.section != 0 && symbol.value != 0;
        let defined_at = is_defined.then(|| self.object.base.wrapping_add(symbol.value as usize));
        Some(Slot {
            name: self.name(symbol)?,
            address,
            is_data: kind == relocation::ABSOLUTE,
            defined_at,
        })
    }

    /// The address of the function with that name, if the object exports it.
    pub fn find(&self, name: &[u8]) -> Option<usize> {
        let mut hidden = None;
        for index in self.candidates(name) {
            let symbol = self.symbol(index)?;
            let is_function = matches!(symbol.info & 15, STT_FUNC | STT_NOTYPE);
            if symbol.section == 0
                || symbol.value == 0
                || !is_function
                || self.name(symbol) != Some(name)
            {
                continue;
            }
            let address = self.object.base.wrapping_add(symbol.value as usize);
            let version =
                if self.versions == 0 { 0 } else { self.at::<u16>(self.versions + index * 2)? };
            if version & VERSION_HIDDEN == 0 {
                return Some(address);
            }
            hidden = Some(address);
        }
        hidden
    }

    /// The indexes of symbols that may have this name.
    fn candidates(&self, name: &[u8]) -> Vec<usize> {
        let found = if self.gnu_hash != 0 { self.in_gnu_hash(name) } else { self.in_hash(name) };
        found.unwrap_or_default()
    }

    fn in_gnu_hash(&self, name: &[u8]) -> Option<Vec<usize>> {
        let hash = name
            .iter()
            .fold(5381u32, |hash, &byte| hash.wrapping_mul(33).wrapping_add(u32::from(byte)));
        let [buckets, first, words, _shift] = self.at::<[u32; 4]>(self.gnu_hash)?;
        let bucket_table = self.gnu_hash + 16 + words as usize * 8;
        let chains = bucket_table + buckets as usize * 4;
        let mut index = self.at::<u32>(bucket_table + hash.checked_rem(buckets)? as usize * 4)?;
        let mut found = Vec::new();
        while index >= first && index != 0 {
            let link = self.at::<u32>(chains + (index - first) as usize * 4)?;
            if link | 1 == hash | 1 {
                found.push(index as usize);
            }
            if link & 1 == 1 {
                break;
            }
            index += 1;
        }
        Some(found)
    }

    fn in_hash(&self, name: &[u8]) -> Option<Vec<usize>> {
        if self.hash == 0 {
            return None;
        }
        let hash = name.iter().fold(0u32, |hash, &byte| {
            let hash = (hash << 4).wrapping_add(u32::from(byte));
            let high = hash & 0xf000_0000;
            (hash ^ (high >> 24)) & !high
        });
        let [buckets, symbols] = self.at::<[u32; 2]>(self.hash)?;
        let chains = self.hash + 8 + buckets as usize * 4;
        let mut index = self.at::<u32>(self.hash + 8 + hash.checked_rem(buckets)? as usize * 4)?;
        let mut found = Vec::new();
        while index != 0 && found.len() < symbols as usize {
            found.push(index as usize);
            index = self.at::<u32>(chains + index as usize * 4)?;
        }
        Some(found)
    }

    fn symbol(&self, index: usize) -> Option<Symbol> {
        (index != 0).then(|| self.at(self.symbols + index * size_of::<Symbol>()))?
    }

    fn name(&self, symbol: Symbol) -> Option<&'a [u8]> {
        let offset = symbol.name as usize;
        if offset >= self.strings_size
            || !self.object.contains(self.strings + self.strings_size - 1)
        {
            return None;
        }
        // SAFETY: inside the string table, which ends with a NUL, and lies in the object, which stays loaded for 'a.
        Some(unsafe { CStr::from_ptr((self.strings + offset) as *const libc::c_char) }.to_bytes())
    }

    /// Reads a value in the object; None if it is not entirely inside.
    fn at<T: Copy>(&self, address: usize) -> Option<T> {
        let last = address.checked_add(mem::size_of::<T>() - 1)?;
        // SAFETY: the bytes lie in a readable segment of the object, which stays loaded as `read` demands; T is one of the
        // plain types of this file, for which any bytes are a valid value.
        self.object
            .has_readable(address, last)
            .then(|| unsafe { (address as *const T).read_unaligned() })
    }
}
