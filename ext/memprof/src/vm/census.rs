//! Numbers of objects by type and by class: `ObjectSpace.count_objects`, and the counts of heap_dump.

use rb_sys::{VALUE, ruby_value_type};
use rustc_hash::FxHashMap;
use serde::ser::{Serialize, SerializeMap, Serializer};

use super::ruby_object::{self, Flags};
use super::{classes, slots};

/// Counts of the whole heap. Serializes in the order and with the keys of heap_dump.
#[derive(Default)]
pub struct Census {
    /// Whether a full GC ran before.
    pub gc_ran: bool,
    /// Slots of the heap.
    pub total_slots: u64,
    /// Empty slots.
    pub free_slots: u64,
    /// Objects of each existing type, by type number.
    pub basic_types: Vec<(&'static str, u64)>,
    /// Objects of each requested class, most first, ties by name.
    pub user_types: Vec<(String, u64)>,
}

struct Counts<T>(T);

impl<N: AsRef<str>> Serialize for Counts<&Vec<(N, u64)>> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, count)| (name.as_ref(), count)))
    }
}

impl Serialize for Census {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        if self.gc_ran {
            map.serialize_entry("gc_ran", &true)?;
        }
        map.serialize_entry("total_slots", &self.total_slots)?;
        map.serialize_entry("free_slots", &self.free_slots)?;
        map.serialize_entry("basic_types", &Counts(&self.basic_types))?;
        map.serialize_entry("user_types", &Counts(&self.user_types))?;
        map.end()
    }
}

/// Prepares anything that would allocate during the count.
pub fn init() {
    slots_with_tombs();
}

/// Counts all objects by type, and by class if the class is one of `namespaces` or nested in one. Allocates no Ruby object. Not
/// to be called inside `tracker::with`.
///
/// # Errors
/// If the heap cannot be walked.
pub fn count_objects(namespaces: &[String]) -> Result<Census, String> {
    let mut types = [0_u64; 32];
    let mut free = 0;
    let mut users = Users::new(namespaces);
    slots::each_slot(|slot, flags| {
        if flags.0 == 0 {
            free += 1;
            return;
        }
        if let Some(count) = types.get_mut(flags.value_type() as usize) {
            *count += 1;
        }
        if !namespaces.is_empty() && has_class(flags) {
            // SAFETY: an object in a heap slot; it has not been swept, so neither has its class.
            users.count(unsafe { ruby_object::class_word(slot) });
        }
    })?;
    let walked = free + types.iter().sum::<u64>();
    let total = slots_with_tombs().map_or(walked, |slots| slots.max(walked));
    Ok(Census {
        gc_ran: false,
        total_slots: total,
        free_slots: free + (total - walked),
        basic_types: (0_u32..)
            .zip(types)
            .filter(|(_, count)| *count > 0)
            .map(|(number, count)| (type_name(number), count))
            .collect(),
        user_types: users.finish(),
    })
}

/// Counts the instances of each class, including subclasses, as `ObjectSpace.each_object` did before the first Ractor was
/// started; after that it only finds shareable objects. Not to be called inside `tracker::with`.
///
/// # Errors
/// If the heap cannot be walked.
pub fn count_instances(classes: &[VALUE]) -> Result<Vec<u64>, String> {
    let mut counts = vec![0; classes.len()];
    // Class word -> indexes of the classes that its objects belong to.
    let mut kinds: FxHashMap<VALUE, Vec<usize>> = FxHashMap::default();
    slots::each_slot(|slot, flags| {
        if !has_class(flags) {
            return;
        }
        // SAFETY: an object in a heap slot; it has not been swept, so neither has its class.
        let class_word = unsafe { ruby_object::class_word(slot) };
        let kinds = kinds.entry(class_word).or_insert_with(|| {
            (0..classes.len())
                .filter(|index| classes::inherits(class_word, classes[*index]))
                .collect()
        });
        kinds.iter().for_each(|index| counts[*index] += 1);
    })?;
    Ok(counts)
}

/// False for objects internal to the VM: their class word is unset or not their class.
fn has_class(flags: Flags) -> bool {
    flags.holds_object()
        && !flags.is(ruby_value_type::RUBY_T_IMEMO)
        && !flags.is(ruby_value_type::RUBY_T_ICLASS)
        && !flags.is(ruby_value_type::RUBY_T_NODE)
}

/// Counts by class. A class is looked up once, at its first object.
struct Users<'a> {
    namespaces: &'a [String],
    /// Class word, which may be a singleton class -> index in `counts`.
    by_class: FxHashMap<VALUE, Option<usize>>,
    /// Class -> index in `counts`.
    by_name: FxHashMap<String, usize>,
    counts: Vec<u64>,
}

impl<'a> Users<'a> {
    fn new(namespaces: &'a [String]) -> Self {
        Users {
            namespaces,
            by_class: FxHashMap::default(),
            by_name: FxHashMap::default(),
            counts: Vec::new(),
        }
    }

    fn count(&mut self, class_word: VALUE) {
        let index = match self.by_class.get(&class_word) {
            Some(index) => *index,
            None => {
                let index = self.look_at(class_word);
                self.by_class.insert(class_word, index);
                index
            }
        };
        if let Some(count) = index.and_then(|index| self.counts.get_mut(index)) {
            *count += 1;
        }
    }

    fn look_at(&mut self, class_word: VALUE) -> Option<usize> {
        let name = classes::real_name(class_word)?;
        if !self.namespaces.iter().any(|space| is_in(&name, space)) {
            return None;
        }
        let next = self.counts.len();
        let index = *self.by_name.entry(name).or_insert(next);
        if index == next {
            self.counts.push(0);
        }
        Some(index)
    }

    fn finish(self) -> Vec<(String, u64)> {
        let counts = self.counts;
        let mut named: Vec<(String, u64)> = (self.by_name.into_iter())
            .map(|(name, index)| (name, counts.get(index).copied().unwrap_or(0)))
            .collect();
        named.sort_unstable_by(|(a, more), (b, less)| less.cmp(more).then_with(|| a.cmp(b)));
        named
    }
}

/// True for `Foo` and `Foo::Bar` in `Foo`, not for `FooBar`.
fn is_in(name: &str, namespace: &str) -> bool {
    name.strip_prefix(namespace).is_some_and(|rest| rest.is_empty() || rest.starts_with(':'))
}

/// Up to Ruby 3.3 empty heap pages are kept separately, and a walk does not reach them.
#[cfg(not(ruby_gte_3_4))]
fn slots_with_tombs() -> Option<u64> {
    use std::sync::OnceLock;
    static KEY: OnceLock<VALUE> = OnceLock::new();
    // SAFETY: called with the GVL. The symbol is one of rb_gc_stat's own keys, which live forever.
    unsafe {
        let name = c"heap_available_slots";
        let key = *KEY.get_or_init(|| rb_sys::rb_id2sym(rb_sys::rb_intern(name.as_ptr())));
        Some(rb_sys::rb_gc_stat(key))
    }
}

#[cfg(ruby_gte_3_4)]
fn slots_with_tombs() -> Option<u64> {
    None
}

fn type_name(number: u32) -> &'static str {
    match number {
        0x00 => "T_NONE",
        0x01 => "T_OBJECT",
        0x02 => "T_CLASS",
        0x03 => "T_MODULE",
        0x04 => "T_FLOAT",
        0x05 => "T_STRING",
        0x06 => "T_REGEXP",
        0x07 => "T_ARRAY",
        0x08 => "T_HASH",
        0x09 => "T_STRUCT",
        0x0a => "T_BIGNUM",
        0x0b => "T_FILE",
        0x0c => "T_DATA",
        0x0d => "T_MATCH",
        0x0e => "T_COMPLEX",
        0x0f => "T_RATIONAL",
        0x11 => "T_NIL",
        0x12 => "T_TRUE",
        0x13 => "T_FALSE",
        0x14 => "T_SYMBOL",
        0x15 => "T_FIXNUM",
        0x16 => "T_UNDEF",
        0x1a => "T_IMEMO",
        0x1b => "T_NODE",
        0x1c => "T_ICLASS",
        0x1d => "T_ZOMBIE",
        0x1e => "T_MOVED",
        _ => "unknown",
    }
}
