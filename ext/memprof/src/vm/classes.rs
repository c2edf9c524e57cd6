//! Classes of new objects: maps the class word to a name that outlives the class.

use rb_sys::{VALUE, ruby_value_type};
use rustc_hash::{FxHashMap, FxHashSet};

use memprof_profile::sites::{ClassId, Sites};

use super::identities::Identities;
use super::ruby_object::{self, Flags};

/// Represents the class word in a place: internal objects have none, and imemos use it otherwise.
#[inline]
pub fn key(flags: Flags, class_word: VALUE) -> u64 {
    if flags.is(ruby_value_type::RUBY_T_IMEMO) {
        return u64::from(flags.imemo_type() << 8 | flags.value_type());
    }
    if class_word == 0
        || flags.is(ruby_value_type::RUBY_T_ICLASS)
        || flags.is(ruby_value_type::RUBY_T_NODE)
    {
        return u64::from(flags.value_type());
    }
    class_word
}

/// Live classes by address.
#[derive(Default)]
pub struct Classes {
    by_address: FxHashMap<u64, ClassId>,
    /// Classes whose name may change.
    unnamed: FxHashSet<u64>,
}

impl Classes {
    /// The class of an object with these flags and this [`key`], and whether its name is final.
    ///
    /// Called in an allocation hook with data of the new object: its class is alive.
    pub fn id(
        &mut self,
        sites: &mut Sites,
        identities: &mut Identities,
        flags: Flags,
        key: u64,
    ) -> (ClassId, bool) {
        if let Some(id) = self.by_address.get(&key) {
            return (*id, true);
        }
        let class = if key < 0x1000 { 0 } else { real(key as VALUE) };
        let name = match class {
            0 => ruby_object::internal_name(flags),
            class => match name(class) {
                Some(name) if is_final(&name) => name,
                name => {
                    // It may still get a name, so it is looked up again once the place cache has dropped it.
                    self.unnamed.insert(key);
                    let name = name.unwrap_or_else(|| anonymous_name(class));
                    return (sites.anonymous_class(&name, identities.of(class)), false);
                }
            },
        };
        let id = sites.class(&name);
        self.by_address.insert(key, id);
        (id, true)
    }

    /// The class at this address if it is certainly alive: a known one, or one that the VM never frees.
    pub fn known(
        &mut self,
        sites: &mut Sites,
        identities: &mut Identities,
        flags: Flags,
        class: VALUE,
    ) -> Option<ClassId> {
        // SAFETY: the variables are set while the VM boots.
        let core = unsafe { [rb_sys::rb_cString, rb_sys::rb_cArray, rb_sys::rb_cHash] };
        if core.contains(&class) {
            return Some(self.id(sites, identities, flags, class).0);
        }
        self.by_address.get(&class).copied()
    }

    /// The object at this address was freed or replaced. True if it was a known class.
    pub fn forget(&mut self, address: VALUE) -> bool {
        let named = self.by_address.remove(&{ address }).is_some();
        self.unnamed.remove(&{ address }) || named
    }

    /// Addresses of the classes.
    pub fn addresses(&self) -> impl Iterator<Item = VALUE> + '_ {
        (self.by_address.keys().copied())
            .filter(|key| *key >= 0x1000)
            .chain(self.unnamed.iter().copied())
            .map(|key| key as VALUE)
    }

    /// Keeps the classes for which `lives` is true. True if some were removed.
    pub fn keep(&mut self, lives: impl Fn(u64) -> bool) -> bool {
        let before = self.by_address.len() + self.unnamed.len();
        self.by_address.retain(|key, _| *key < 0x1000 || lives(*key));
        self.unnamed.retain(|key| lives(*key));
        self.by_address.len() + self.unnamed.len() < before
    }

    /// Classes moved in memory.
    pub fn relocate(&mut self, moved: impl Fn(u64) -> Option<u64>) {
        let classes = std::mem::take(&mut self.by_address);
        let now = |key: u64| if key < 0x1000 { Some(key) } else { moved(key) };
        self.by_address =
            classes.into_iter().filter_map(|(key, id)| Some((now(key)?, id))).collect();
        let unnamed = std::mem::take(&mut self.unnamed);
        self.unnamed = unnamed.into_iter().filter_map(now).collect();
    }
}

/// True for the name of a constant. An anonymous class may still be assigned to one, and a temporary name, which is never a
/// constant name, may be replaced.
fn is_final(name: &str) -> bool {
    name.starts_with(|first: char| first.is_uppercase())
}

/// The class itself, or its first ancestor that is neither a singleton class nor an included module; 0 if there is none, as for
/// the last module included in a module. Ruby 4.0's own function follows that 0.
pub fn real(mut class: VALUE) -> VALUE {
    while class != 0 {
        // SAFETY: a class that is alive: the class word of an object, or an ancestor of that.
        let flags = unsafe { Flags::of(class) };
        if !flags.is(ruby_value_type::RUBY_T_ICLASS) && !is_singleton(class, flags) {
            break;
        }
        // SAFETY: as above; follows a superclass pointer.
        class = unsafe { rb_sys::rb_class_get_superclass(class) };
    }
    class
}

/// True for a singleton class. `flags` are those of the class, which is alive.
pub fn is_singleton(class: VALUE, flags: Flags) -> bool {
    /// RUBY_FL_SINGLETON: FL_USER0, since 3.4 FL_USER1.
    const SINGLETON: usize = if cfg!(ruby_gte_3_4) { 1 << 13 } else { 1 << 12 };
    if !flags.is(ruby_value_type::RUBY_T_CLASS) {
        return false;
    }
    match super::symbols::symbols().class_singleton_p {
        // SAFETY: a class that is alive.
        Some(singleton) => unsafe { singleton(class) },
        None => flags.0 & SINGLETON != 0,
    }
}

/// Name of a class that has one. rb_mod_name returns the String that the class holds, and so allocates nothing.
fn name(class: VALUE) -> Option<String> {
    // SAFETY: a class that is alive (see `real`).
    let name = unsafe { rb_sys::rb_mod_name(class) };
    // SAFETY: nil or a String that the class holds; the bytes are copied before anything else happens.
    unsafe { ruby_object::text(name) }
}

/// Name of the class of objects with this class word, if it has one. Allocates nothing.
pub fn real_name(class_word: VALUE) -> Option<String> {
    let class = real(class_word);
    if class == 0 { None } else { name(class) }
}

/// Display name of the class of objects with this class word. Allocates nothing.
pub fn display_name(class_word: VALUE) -> Option<String> {
    let class = real(class_word);
    (class != 0).then(|| name(class).unwrap_or_else(|| anonymous_name(class)))
}

/// An anonymous class is named after its nearest named ancestor.
fn anonymous_name(class: VALUE) -> String {
    // SAFETY: a class that is alive; its ancestors are, too.
    let parent = unsafe { rb_sys::rb_class_get_superclass(class) };
    let parent = if parent == 0 { 0 } else { real(parent) };
    match (parent, if parent == 0 { None } else { name(parent) }) {
        (0, _) => "#<Class>".into(),
        (_, Some(name)) => format!("#<Class < {name}>"),
        (_, None) => anonymous_name(parent),
    }
}

/// True if `class` is Thread or inherits from it.
pub fn is_thread(class: VALUE) -> bool {
    // SAFETY: the variable is set while the VM boots.
    inherits(class, unsafe { rb_sys::rb_cThread })
}

/// True if `class` is Ractor or inherits from it.
pub fn is_ractor(class: VALUE) -> bool {
    // SAFETY: the variable is set while the VM boots.
    (super::symbols::symbols().ractor_class)
        .is_some_and(|ractor| inherits(class, unsafe { *ractor }))
}

/// True if `ancestor` is the class, which is alive, or one of its ancestors.
pub fn inherits(mut class: VALUE, ancestor: VALUE) -> bool {
    while class != 0 {
        if class == ancestor {
            return true;
        }
        // SAFETY: a class that is alive (the class of a new object, or its ancestor).
        class = unsafe { rb_sys::rb_class_get_superclass(class) };
    }
    false
}
