//! The class word of an object. Not every object has its class there.

use memprof_dump::record::{Detail, Kind, Object, Tables};

/// Imemos that mark the object in their second word: the iseq of an env, the refinements of a cref, the class that defines a
/// method, the value of a constant. Up to Ruby 3.1 `dump_all` writes it as their `class`, and leaves it out of their
/// `references`. The word of other imemos is not a reference: a callcache does not mark its class.
const MARKING: [&str; 6] = ["constcache", "cref", "env", "iseq", "ment", "svar"];

/// The only imemo with a class: its owner's (Ruby 4.0).
const FIELDS: &str = "fields";

/// The meaning of the address that a dump gives as an object's class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClassWord {
    /// The class.
    Class(u64),
    /// Another object that it references.
    Reference(u64),
    /// Neither.
    Nothing,
}

impl ClassWord {
    pub fn of(tables: &Tables, object: &Object<'_>) -> ClassWord {
        match (object.kind, &object.detail) {
            // The word is the next object to be finalized, or the new address of a moved object.
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

    /// The class's address; 0 if it has none.
    pub fn class(self) -> u64 {
        match self {
            ClassWord::Class(address) => address,
            _ => 0,
        }
    }

    /// The address of a referenced object that is not the class.
    pub fn reference(self) -> Option<u64> {
        match self {
            ClassWord::Reference(address) => Some(address),
            _ => None,
        }
    }
}

/// Numbers, symbols, nil and the like are not heap objects.
fn is_address(word: u64) -> bool {
    word % 8 == 0 && word > 8
}
