//! Groups: objects of one type, class and internal name. A heap has thousands of objects per group, so columns have the group's
//! number, and the shared facts are stored here once.

use rustc_hash::FxHashMap;

use super::NONE;
use super::names::Names;
use super::pages::{Addresses, Numbers};
use memprof_dump::record::{Flags, Kind, NameId};

/// A group while the dump is read, its class by code.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct RawGroup {
    pub kind: Kind,
    pub class: u32,
    pub class_name: Option<NameId>,
    pub name: Option<NameId>,
}

/// The facts that a dump has about a class or module.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClassFacts {
    pub object: u32,
    pub name: Option<NameId>,
    /// First a code, then a number.
    pub superclass: u32,
}

/// Objects of one type, class and internal name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group {
    /// Type.
    pub kind: Kind,
    /// Number of the class object that the objects reference, possibly a singleton class; [`NONE`] if they have none, or the dump
    /// does not contain it.
    pub class: u32,
    /// Number of the class that Ruby's `class` returns, in [`super::Heap::classes`].
    pub shown: u32,
    /// Type of data, kind of imemo.
    pub name: Option<NameId>,
}

/// A class as Ruby's `class` method returns it, or a substitute for one: `<iseq>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Class {
    /// Name; `#<Class:0x7f12>` for an anonymous one, `<iseq>` for internal objects.
    pub name: NameId,
    /// Number of the class object; [`NONE`] if it has none.
    pub object: u32,
}

/// Name and superclass of a class or module in the dump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClassObject {
    /// Number of the object.
    pub object: u32,
    /// Name; `None` for an anonymous one.
    pub name: Option<NameId>,
    /// Number of the superclass, which may be an internal one; [`NONE`] if it has none.
    pub superclass: u32,
    /// Number of the class that it is the singleton class of, is a part of, or is itself.
    pub real: u32,
}

/// Maximum length of a superclass chain: a broken dump may have cycles.
const STEPS: usize = 1000;

/// Determines the classes of groups.
pub(super) struct Naming<'n> {
    pub names: &'n mut Names,
    pub addresses: &'n Addresses,
    pub group: &'n [u32],
    pub flags: &'n [u32],
    pub facts: &'n [ClassFacts],
    pub raw: &'n [RawGroup],
    pub classes: Vec<Class>,
    pub by_object: FxHashMap<u32, u32>,
    pub by_name: FxHashMap<NameId, u32>,
}

impl Naming<'_> {
    fn facts_of(&self, id: u32) -> Option<&ClassFacts> {
        let found = self.facts.binary_search_by_key(&id, |facts| facts.object);
        found.ok().map(|index| &self.facts[index])
    }

    /// The user-visible class: not a singleton class or a copy of a module in a superclass chain.
    pub fn real(&self, mut id: u32) -> u32 {
        for _ in 0..STEPS {
            let Some(&group) = self.group.get(id as usize) else {
                return NONE;
            };
            let singleton = self.flags[id as usize] & Flags::SINGLETON.0 != 0;
            if !singleton && self.raw[group as usize].kind != Kind::ICLASS {
                return id;
            }
            match self.facts_of(id) {
                Some(facts) => id = facts.superclass,
                None => return NONE,
            }
        }
        NONE
    }

    fn class_of_object(&mut self, id: u32) -> u32 {
        if let Some(&class) = self.by_object.get(&id) {
            return class;
        }
        let facts = self.facts_of(id);
        let name = match facts.and_then(|facts| facts.name) {
            Some(name) => name,
            None => {
                let text = format!("#<Class:{:#x}>", self.addresses.of(id));
                self.names.own(&text)
            }
        };
        self.classes.push(Class { name, object: id });
        let class = self.classes.len() as u32 - 1;
        self.by_object.insert(id, class);
        class
    }

    fn class_of_name(&mut self, name: NameId) -> u32 {
        let next = self.classes.len() as u32;
        let class = *self.by_name.entry(name).or_insert(next);
        if class == next {
            self.classes.push(Class { name, object: NONE });
        }
        class
    }

    fn shown(&mut self, raw: &RawGroup, class: u32) -> u32 {
        // An iclass, the copy of a module among a class's ancestors, references the module as objects reference their class, but
        // is not an instance of it.
        let is_copy = raw.kind == Kind::ICLASS;
        if class != NONE && !is_copy {
            let real = self.real(class);
            if real != NONE {
                return self.class_of_object(real);
            }
        }
        if let Some(name) = raw.class_name.filter(|_| !is_copy) {
            return self.class_of_name(name);
        }
        let text = match raw.name {
            _ if raw.class != NONE && class == NONE && !is_copy => "<unknown class>".to_owned(),
            Some(name) => format!("<{}>", self.names.name(name)),
            None => format!("<{}>", raw.kind.name()),
        };
        let name = self.names.own(&text);
        self.class_of_name(name)
    }

    /// All groups.
    pub fn groups(&mut self, numbers: &Numbers) -> Vec<Group> {
        let raw = self.raw;
        raw.iter()
            .map(|raw| {
                let class = match raw.class {
                    NONE => NONE,
                    code => numbers.id(code),
                };
                Group { kind: raw.kind, class, shown: self.shown(raw, class), name: raw.name }
            })
            .collect()
    }

    /// All classes and modules in the dump.
    pub fn class_objects(&self) -> Vec<ClassObject> {
        let objects = self.facts.iter().map(|facts| ClassObject {
            object: facts.object,
            name: facts.name,
            superclass: facts.superclass,
            real: self.real(facts.object),
        });
        objects.collect()
    }
}
