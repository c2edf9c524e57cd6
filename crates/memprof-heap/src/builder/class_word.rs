//! The word of an object that has its class. Not all objects have one there.

use memprof_dump::record::{Detail, Kind, Object, Tables};

/// Imemos whose second word is an object that they mark: the iseq of an env, the refinements of a cref, the class that
/// defines a method, the value of a constant. Up to Ruby 3.1 `dump_all` writes it as their `class`, and leaves it out of
/// their `references`. Of the others the word is no reference: a callcache does not mark the class that it is for.
const MARKING: [&str; 6] = ["constcache", "cref", "env", "iseq", "ment", "svar"];

/// The imemo that has a class: its owner's (Ruby 4.0).
const FIELDS: &str = "fields";

/// What a dump gives as the class of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClassWord {
    /// The class.
    Class(u64),
    /// Another object that it refers to.
    Reference(u64),
    /// Neither.
    Nothing,
}

impl ClassWord {
    pub fn of(tables: &Tables, object: &Object<'_>) -> ClassWord {
        match (object.kind, &object.detail) {
            // The next one to be finalized, or where the object is now.
            (Kind::ZOMBIE | Kind::MOVED | Kind::NODE, _) => ClassWord::Nothing,
            (Kind::IMEMO, Detail::Imemo { name, .. }) => match tables.name(*name) {
                FIELDS => ClassWord::Class(object.class),
                name if MARKING.contains(&name) && is_address(object.class) => {
                    ClassWord::Reference(object.class)
                }
                _ => ClassWord::Nothing,
            },
            (Kind::IMEMO, _) => ClassWord::Nothing,
            _ => ClassWord::Class(object.class),
        }
    }

    /// The class's address; 0 if there is none.
    pub fn class(self) -> u64 {
        match self {
            ClassWord::Class(address) => address,
            _ => 0,
        }
    }

    /// The address of what is no class.
    pub fn reference(self) -> Option<u64> {
        match self {
            ClassWord::Reference(address) => Some(address),
            _ => None,
        }
    }
}

/// Numbers, symbols, nil and the like are no objects of the heap.
fn is_address(word: u64) -> bool {
    word % 8 == 0 && word > 8
}
