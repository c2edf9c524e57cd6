//! Interned names of the heap: the walk keeps asking for the same few.

use std::ffi::CStr;

use memprof_dump::record::{Allocation, NameId, Site, SiteId, Tables, Value};
use memprof_dump::values::{HIDDEN, Values};
use memprof_profile::sites as profile;
use rb_sys::{ID, VALUE};
use rustc_hash::FxHashMap;

use super::text;
use crate::vm::ruby_object::{self, Flags};
use crate::vm::symbols::symbols;
use crate::vm::{classes, dump_files, tracker};

/// Slots of a direct-mapped cache.
const SLOTS: usize = 4096;

/// Cached results by address or ID: all of them in a map, preceded by the most recent ones.
struct Cache<T: Copy> {
    slots: Vec<Option<(u64, T)>>,
    all: FxHashMap<u64, T>,
}

impl<T: Copy> Cache<T> {
    fn new() -> Self {
        Cache { slots: vec![None; SLOTS], all: FxHashMap::default() }
    }

    #[inline]
    fn slot(&mut self, key: u64) -> &mut Option<(u64, T)> {
        let index = (key ^ key >> 12).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 52;
        &mut self.slots[index as usize & (SLOTS - 1)]
    }

    #[inline]
    fn get(&mut self, key: u64) -> Option<T> {
        match self.slot(key) {
            Some((at, value)) if *at == key => Some(*value),
            _ => self.recall(key),
        }
    }

    fn recall(&mut self, key: u64) -> Option<T> {
        let value = *self.all.get(&key)?;
        *self.slot(key) = Some((key, value));
        Some(value)
    }

    fn put(&mut self, key: u64, value: T) -> T {
        self.all.insert(key, value);
        *self.slot(key) = Some((key, value));
        value
    }

    /// The last entry in the key's slot, if it is for this key. For results that are as fast to compute as to find in a map.
    #[inline]
    fn last(&mut self, key: u64) -> Option<T> {
        self.slot(key).filter(|(at, _)| *at == key).map(|(_, value)| value)
    }

    /// Caches an entry outside of the map until another one takes its slot.
    fn put_last(&mut self, key: u64, value: T) -> T {
        *self.slot(key) = Some((key, value));
        value
    }
}

/// Names by ID. IDs are numbered, so most are in a table by number.
#[derive(Default)]
struct Ids {
    /// The ID and its name.
    numbered: Vec<(u32, NameId)>,
    others: FxHashMap<ID, NameId>,
}

impl Ids {
    /// Larger numbers are invalid: in a future version, words of the VM's structs may have another meaning.
    const MOST: usize = 1 << 22;
    /// Not an ID.
    const FREE: (u32, NameId) = (u32::MAX, NameId(0));

    /// Operators are IDs themselves; IDs of other names are shifted by four bits (ID_SCOPE_SHIFT in id.h).
    #[inline]
    fn number(id: ID) -> usize {
        if id < 1024 { id as usize } else { (id >> 4) as usize }
    }

    #[inline]
    fn get(&self, id: ID) -> Option<NameId> {
        match self.numbered.get(Self::number(id)) {
            Some((of, name)) if ID::from(*of) == id => Some(*name),
            _ => self.others.get(&id).copied(),
        }
    }

    fn put(&mut self, id: ID, name: NameId) -> NameId {
        let number = Self::number(id);
        if number >= Self::MOST {
            self.others.insert(id, name);
            return name;
        }
        if number >= self.numbered.len() {
            let room = (number + number / 2 + 1024).min(Self::MOST);
            self.numbered.resize(room, Self::FREE);
        }
        if self.numbered[number] == Self::FREE {
            self.numbered[number] = (id as u32, name);
        } else {
            self.others.insert(id, name);
        }
        name
    }
}

/// The names and their caches. Keys are IDs, and addresses of classes, which are not freed during the walk.
pub struct Names {
    /// The interned texts.
    pub tables: Tables,
    /// Which values are written.
    pub values: Values,
    ids: Ids,
    symbols: Cache<NameId>,
    classes: Cache<Option<NameId>>,
    encodings: Vec<Option<NameId>>,
    words: Cache<NameId>,
    strings: Cache<Option<NameId>>,
    c_strings: Cache<NameId>,
    /// Kinds of imemo.
    imemos: [Option<NameId>; 16],
    /// Sites with the application lines that called them.
    sites: FxHashMap<profile::SiteId, (SiteId, Option<SiteId>)>,
    /// File names of code, as displayed.
    files: FxHashMap<NameId, NameId>,
    /// The replacement of hidden numbers.
    hidden: Option<NameId>,
}

impl Names {
    pub fn new(values: Values) -> Self {
        let mut tables = Tables::default();
        Names {
            hidden: (!values.previews()).then(|| tables.intern(HIDDEN)),
            files: FxHashMap::default(),
            tables,
            values,
            ids: Ids::default(),
            symbols: Cache::new(),
            classes: Cache::new(),
            encodings: vec![None; 128],
            words: Cache::new(),
            strings: Cache::new(),
            c_strings: Cache::new(),
            imemos: [None; 16],
            sites: FxHashMap::default(),
        }
    }

    /// A number from the program, or its replacement if numbers are hidden.
    #[inline(always)]
    pub fn number(&self, number: Value) -> Value {
        match self.hidden {
            None => number,
            Some(hidden) => Value::Name(hidden),
        }
    }

    /// The file name of code. Evaluated code may have any name chosen by the program, so a dump without contents only shows
    /// names of existing files.
    pub fn file(&mut self, file: NameId) -> NameId {
        let Some(hidden) = self.hidden else {
            return file;
        };
        if let Some(shown) = self.files.get(&file) {
            return *shown;
        }
        let is_source = dump_files::is_source(self.tables.name(file));
        let shown = if is_source { file } else { hidden };
        self.files.insert(file, shown);
        shown
    }

    /// A word of the walk's own.
    #[inline]
    pub fn word(&mut self, word: &'static str) -> NameId {
        // Not keyed by its text: a word at two addresses is interned twice, as one name. The length is included, as one word
        // may be a prefix of another at the same address.
        let key = word.as_ptr() as u64 ^ (word.len() as u64) << 48;
        match self.words.get(key) {
            Some(name) => name,
            None => {
                let name = self.tables.intern(word);
                self.words.put(key, name)
            }
        }
    }

    /// Name of an instance variable, constant, method and the like. Internal IDs of the VM without a name get one.
    #[inline]
    pub fn id(&mut self, id: ID) -> NameId {
        match self.ids.get(id) {
            Some(name) => name,
            None => {
                let name = self.intern_id(id);
                self.ids.put(id, name)
            }
        }
    }

    /// Name of an ID that can be written in a program; `None` for one of the compiler's.
    pub fn named(&mut self, id: ID) -> Option<NameId> {
        id_text(id).is_some().then(|| self.id(id))
    }

    fn intern_id(&mut self, id: ID) -> NameId {
        match id_text(id) {
            Some(text) => self.bytes(text),
            None => self.tables.intern(&format!("ID_INTERNAL({})", id >> 4)),
        }
    }

    /// Bytes that are a text, or nearly so.
    fn bytes(&mut self, bytes: &[u8]) -> NameId {
        match std::str::from_utf8(bytes) {
            Ok(text) => self.tables.intern(text),
            Err(_) => self.tables.intern(&String::from_utf8_lossy(bytes)),
        }
    }

    /// Contents of a Symbol, as far as they may be shown.
    #[inline]
    pub fn symbol(&mut self, id: ID) -> NameId {
        if self.values.previews() {
            return self.id(id);
        }
        match self.symbols.get(id) {
            Some(name) => name,
            None => {
                let text = String::from_utf8_lossy(id_text(id).unwrap_or_default()).into_owned();
                let shown = self.values.symbol(&text).unwrap_or(text);
                let name = self.tables.intern(&shown);
                self.symbols.put(id, name)
            }
        }
    }

    /// Name of the class returned by `class` for an object with this class word.
    #[inline]
    pub fn class(&mut self, class_word: VALUE) -> Option<NameId> {
        if class_word == 0 {
            return None;
        }
        match self.classes.get(class_word) {
            Some(name) => name,
            None => {
                let name = classes::display_name(class_word).map(|name| self.tables.intern(&name));
                self.classes.put(class_word, name)
            }
        }
    }

    /// Name of an encoding.
    pub fn encoding(&mut self, index: usize) -> NameId {
        if let Some(Some(name)) = self.encodings.get(index) {
            return *name;
        }
        // SAFETY: returns the encoding with this index, or null; its name is a static string.
        let name = unsafe {
            let encoding = rb_sys::rb_enc_from_index(index as i32);
            if encoding.is_null() || (*encoding).name.is_null() {
                "".into()
            } else {
                CStr::from_ptr((*encoding).name).to_string_lossy()
            }
        };
        let name = self.tables.intern(&name);
        if let Some(slot) = self.encodings.get_mut(index) {
            *slot = Some(name);
        }
        name
    }

    /// The text of an internal String of the VM: a path, a label. `None` if it is not a String.
    pub fn string(&mut self, string: VALUE) -> Option<NameId> {
        match self.strings.last(string) {
            Some(name) => name,
            None => {
                // SAFETY: nil, or a String that the heap holds; nothing is freed during the walk.
                let text = unsafe {
                    if text::is_string(string) { ruby_object::string_bytes(string) } else { None }
                };
                let name = text.map(|text| self.bytes(text));
                self.strings.put_last(string, name)
            }
        }
    }

    /// A C string of the VM or of a library.
    ///
    /// # Safety
    /// `text` is null, or ends with a NUL, and does not change.
    pub unsafe fn c_string(&mut self, text: *const std::ffi::c_char) -> Option<NameId> {
        if text.is_null() {
            return None;
        }
        let key = text as u64;
        if let Some(name) = self.c_strings.get(key) {
            return Some(name);
        }
        // SAFETY: the caller vouches.
        let name = self.bytes(unsafe { CStr::from_ptr(text) }.to_bytes());
        Some(self.c_strings.put(key, name))
    }

    /// Name of a kind of imemo, such as `iseq`.
    #[inline]
    pub fn imemo(&mut self, flags: Flags) -> NameId {
        let kind = flags.imemo_type() as usize % 16;
        match self.imemos[kind] {
            Some(name) => name,
            None => {
                // SAFETY: returns a static string for every type of its version.
                let name = symbols()
                    .imemo_name
                    .and_then(|imemo_name| unsafe { self.c_string(imemo_name(kind as i32)) });
                let name = name.unwrap_or_else(|| self.word("imemo"));
                *self.imemos[kind].insert(name)
            }
        }
    }

    /// Where and when the tracker saw the object at `address` being allocated.
    pub fn allocation(&mut self, address: u64) -> Option<Allocation> {
        tracker::with(|tracker| {
            let recorder = &tracker.recorder;
            let (site, generation, time) = recorder.allocation(address)?;
            let (site, caller) = match self.sites.get(&site) {
                Some(known) => *known,
                None => {
                    let of = recorder.sites.get(site)?;
                    let mut intern = |place| self.intern_site(&recorder.sites, place);
                    let known = (intern(of.place), of.caller.map(&mut intern));
                    self.sites.insert(site, known);
                    known
                }
            };
            Some(Allocation { site, caller, generation, time })
        })?
    }

    fn intern_site(&mut self, sites: &profile::Sites, place: profile::StackId) -> SiteId {
        let (file, line) = sites.location(place);
        let file = self.tables.intern(file);
        let file = self.file(file);
        let label = sites
            .node(place)
            .and_then(|node| sites.frame_key(node.frame))
            .map_or("", |key| key.label.as_str());
        let named = !label.is_empty() && !label.starts_with('<');
        let method = named.then(|| self.tables.intern(label));
        self.tables.intern_site(Site { file, line, method })
    }
}

/// The name of an ID, if it has one.
fn id_text<'a>(id: ID) -> Option<&'a [u8]> {
    // SAFETY: looks the ID up; returns 0 for one that is not known.
    let string = unsafe { rb_sys::rb_id2str(id) };
    if string == 0 || string == rb_sys::Qnil as VALUE {
        return None;
    }
    // SAFETY: the String that holds the name; IDs that objects use are not collected.
    unsafe {
        if !Flags::of(string).is(rb_sys::ruby_value_type::RUBY_T_STRING) {
            return None;
        }
        ruby_object::string_bytes(string)
    }
}
