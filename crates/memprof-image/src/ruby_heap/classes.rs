//! Names and superclasses of classes and modules, wherever this Ruby has them: in the slot, in a block that it points to, or in a
//! table of variables there. The place of names is the one where most classes have distinct texts that look like constant names,
//! including those of well-known classes.

use memprof_dump::record::Kind;
use rustc_hash::{FxHashMap, FxHashSet};

use super::{HEADER, Object, RubyHeap, USER};
use crate::image::WORD;

/// Every Ruby has these.
const KNOWN: [&str; 8] =
    ["BasicObject", "Object", "Module", "Class", "Kernel", "Comparable", "String", "Array"];
/// Classes and superclasses that every Ruby has.
const PARENTS: [(&str, &str); 6] = [
    ("Class", "Module"),
    ("StandardError", "Exception"),
    ("ArgumentError", "StandardError"),
    ("KeyError", "IndexError"),
    ("Float", "Numeric"),
    ("NoMethodError", "NameError"),
];
/// Words of a block to check.
const BLOCK: u64 = 48;
/// Entries of a table to check: names are among the first variables.
const ENTRIES: usize = 8;
/// Classes to check.
const SAMPLE: usize = 1000;
/// Maximum number of included modules between a class and its superclass, and of classes above one.
const MOST_ANCESTORS: usize = 512;

/// The place of a word that belongs to a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Place {
    /// In the slot, by its offset.
    Slot(u64),
    /// In the block pointed to by a word of the slot.
    Block(u64, u64),
    /// The variable with a key, in the table pointed to by a word of that block.
    Variable(u64, u64, u64),
}

/// The facts about classes.
#[derive(Debug, Default)]
pub(crate) struct Classes {
    names: FxHashMap<u64, String>,
    place: Option<Place>,
    superclass: Option<Place>,
    /// The flag of singleton classes.
    singleton: u64,
}

impl Classes {
    /// Learns the layout. Nothing is known if well-known classes are not found.
    pub fn learn(heap: &RubyHeap<'_>) -> Classes {
        let all: Vec<Object> = heap
            .objects()
            .filter(|object| matches!(object.kind(), Kind::CLASS | Kind::MODULE))
            .collect();
        let Some(place) = name_place(heap, &all) else {
            return Classes::default();
        };
        let names: FxHashMap<u64, String> = (all.iter())
            .filter_map(|class| Some((class.address, name_at(heap, class, place)?)))
            .collect();
        let by_name: FxHashMap<&str, u64> =
            names.iter().map(|(address, name)| (name.as_str(), *address)).collect();
        if !KNOWN.iter().all(|name| by_name.contains_key(name)) {
            return Classes::default();
        }
        let superclass = superclass_place(heap, &by_name);
        let singleton = singleton_flag(heap, &names);
        Classes { names, place: Some(place), superclass, singleton }
    }

    /// The name of a class or module.
    pub fn name(&self, class: u64) -> Option<&str> {
        self.names.get(&class).map(String::as_str)
    }

    /// Whether names are known at all.
    pub fn are_known(&self) -> bool {
        !self.names.is_empty()
    }

    /// Whether it is a singleton class.
    pub fn is_singleton(&self, class: &Object) -> bool {
        class.kind() == Kind::CLASS && class.class != 0 && class.flags & self.singleton != 0
    }

    /// The superclass, or the included module above a class; 0 at the top.
    pub fn superclass(&self, heap: &RubyHeap<'_>, class: &Object) -> u64 {
        let word = self.superclass.and_then(|place| word_at(heap, class, place));
        word.filter(|word| is_class(heap, *word)).unwrap_or(0)
    }

    /// The class that Ruby's `class` returns: the first one that is neither a singleton class nor an included module.
    pub fn real(&self, heap: &RubyHeap<'_>, class: u64) -> Option<u64> {
        self.above(heap, class)
            .find(|class| class.kind() != Kind::ICLASS && !self.is_singleton(class))
            .map(|class| class.address)
    }

    /// The name of the class that Ruby's `class` returns; an anonymous class is shown as its nearest named ancestor.
    pub fn display_name(&self, heap: &RubyHeap<'_>, class: u64) -> Option<String> {
        let real = self.real(heap, class)?;
        if !self.are_known() {
            return None;
        }
        let named = self
            .above(heap, real)
            .filter(|class| class.kind() != Kind::ICLASS)
            .find_map(|class| Some((class.address, self.name(class.address)?)));
        Some(match named {
            Some((class, name)) if class == real => name.to_owned(),
            Some((_, name)) => format!("#<Class < {name}>"),
            None => "#<Class>".to_owned(),
        })
    }

    /// Instance and class variables of a class, if they are in the same table as its name.
    pub fn variables(&self, heap: &RubyHeap<'_>, class: &Object) -> Vec<(String, u64)> {
        let Some(Place::Variable(offset, inner, _)) = self.place else {
            return Vec::new();
        };
        let table = word_at(heap, class, Place::Block(offset, inner));
        let table = table.filter(|table| heap.room(*table).is_some());
        let Some(table) = table.and_then(|table| heap.st_table(table)) else {
            return Vec::new();
        };
        heap.st_entries(table)
            .filter_map(|(id, value)| Some((heap.id_name(id)?, value)))
            .filter(|(name, value)| name.starts_with('@') && heap.is_value(*value))
            .collect()
    }

    /// A class and its ancestors.
    fn above(&self, heap: &RubyHeap<'_>, class: u64) -> impl Iterator<Item = Object> {
        let first = heap.object(class).filter(|class| is_class(heap, class.address));
        std::iter::successors(first, |class| heap.object(self.superclass(heap, class)))
            .take(MOST_ANCESTORS)
    }
}

impl RubyHeap<'_> {
    /// Blocks that words of a class's slot point to: the offset of the word, and the block.
    pub(super) fn blocks_of_slot(&self, class: &Object) -> impl Iterator<Item = (u64, u64)> {
        offsets(class).filter_map(|offset| {
            let word = self.memory.word(class.address + offset)?;
            self.room(word).map(|_| (offset, word))
        })
    }
}

fn is_class(heap: &RubyHeap<'_>, address: u64) -> bool {
    let kind = heap.slot(address).map(|(_, kind)| kind);
    matches!(kind, Some(Kind::CLASS | Kind::MODULE | Kind::ICLASS))
}

pub(super) fn offsets(class: &Object) -> impl Iterator<Item = u64> + use<> {
    (HEADER..class.slot_size).step_by(WORD as usize)
}

pub(super) fn word_at(heap: &RubyHeap<'_>, class: &Object, place: Place) -> Option<u64> {
    match place {
        Place::Slot(offset) => heap.memory.word(class.address + offset),
        Place::Block(offset, inner) => {
            let block = heap.memory.word(class.address + offset)?;
            (heap.room(block)? >= inner + WORD).then_some(())?;
            heap.memory.word(block + inner)
        }
        Place::Variable(offset, inner, key) => {
            let table = word_at(heap, class, Place::Block(offset, inner))?;
            heap.room(table)?;
            let table = heap.st_table(table)?;
            heap.st_entries(table).find_map(|(found, value)| (found == key).then_some(value))
        }
    }
}

/// A name of at least one byte.
fn name_at(heap: &RubyHeap<'_>, class: &Object, place: Place) -> Option<String> {
    heap.name(word_at(heap, class, place)?).filter(|name| !name.is_empty())
}

/// The place where most classes have names.
fn name_place(heap: &RubyHeap<'_>, classes: &[Object]) -> Option<Place> {
    let mut found: FxHashMap<Place, (usize, FxHashSet<String>)> = FxHashMap::default();
    for class in classes.iter().take(SAMPLE) {
        each_place(heap, class, |place, word| {
            if let Some(name) = heap.name(word).filter(|name| is_constant_path(name)) {
                let (count, names) = found.entry(place).or_default();
                *count += 1;
                names.insert(name);
            }
        });
    }
    (found.into_iter())
        .filter(|(_, (count, names))| names.len() * 50 >= count * 49)
        // The first place among equals.
        .max_by_key(|(place, (_, names))| (names.len(), std::cmp::Reverse(*place)))
        .map(|(place, _)| place)
}

/// Words that may be names of a class.
fn each_place(heap: &RubyHeap<'_>, class: &Object, mut visit: impl FnMut(Place, u64)) {
    for offset in offsets(class) {
        let Some(word) = heap.memory.word(class.address + offset) else {
            continue;
        };
        if heap.is(word, Kind::STRING) {
            visit(Place::Slot(offset), word);
        }
    }
    for (offset, block) in heap.blocks_of_slot(class) {
        let size = heap.room(block).unwrap_or(0).min(BLOCK * WORD);
        for inner in (0..size & !(WORD - 1)).step_by(WORD as usize) {
            let Some(word) = heap.memory.word(block + inner) else {
                continue;
            };
            if heap.is(word, Kind::STRING) {
                visit(Place::Block(offset, inner), word);
            } else if heap.room(word).is_some_and(|size| size >= crate::st_table::SIZE) {
                let entries = heap.st_table(word).into_iter();
                let entries = entries.flat_map(|table| heap.st_entries(table));
                for (key, value) in entries.take(ENTRIES) {
                    if heap.is(value, Kind::STRING) {
                        visit(Place::Variable(offset, inner, key), value);
                    }
                }
            }
        }
    }
}

/// `Net::HTTP`.
fn is_constant_path(name: &str) -> bool {
    name.split("::").all(|part| {
        let first = part.chars().next();
        first.is_some_and(|first| first.is_uppercase())
            && part.chars().all(|letter| letter.is_alphanumeric() || letter == '_')
    })
}

/// The place where well-known classes have their superclasses, possibly below included modules.
fn superclass_place(heap: &RubyHeap<'_>, by_name: &FxHashMap<&str, u64>) -> Option<Place> {
    let known: Vec<(Object, u64)> = PARENTS
        .iter()
        .filter_map(|(class, parent)| {
            Some((heap.object(*by_name.get(class)?)?, *by_name.get(parent)?))
        })
        .collect();
    let (first, _) = known.first()?;
    let in_slot = offsets(first).map(Place::Slot);
    let blocks: Vec<(u64, u64)> = heap.blocks_of_slot(first).collect();
    let in_blocks = (blocks.iter())
        .flat_map(|(offset, _)| (0..BLOCK).map(move |word| Place::Block(*offset, word * WORD)));
    in_slot.chain(in_blocks).find(|place| {
        known.iter().all(|(class, parent)| {
            let above = std::iter::successors(Some(*class), |class| {
                heap.object(word_at(heap, class, *place)?)
            });
            // The class itself, then included modules.
            above
                .skip(1)
                .take(64)
                .find(|class| class.kind() != Kind::ICLASS)
                .is_some_and(|class| class.address == *parent)
        })
    })
}

/// The flag that the classes of named classes have, and named classes lack: the former are singleton classes.
fn singleton_flag(heap: &RubyHeap<'_>, names: &FxHashMap<u64, String>) -> u64 {
    let mut always = u64::MAX;
    let mut never = u64::MAX;
    let named = names.keys().filter_map(|address| heap.object(*address));
    for class in named.filter(|class| class.kind() == Kind::CLASS) {
        never &= !class.flags;
        if let Some(singleton) = heap.object(class.class) {
            // A class without a singleton class has its superclass's singleton class, or Class itself.
            if !names.contains_key(&singleton.address) {
                always &= singleton.flags;
            }
        }
    }
    let candidates = always & never & (3 << USER);
    candidates & candidates.wrapping_neg()
}
