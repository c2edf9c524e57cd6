//! The common characteristic of blocks of one kind.

use crate::analysis::Analysis;
use crate::blocks::{Block, Kind};
use crate::containers::Container;
use crate::ruby_pages::ObjectType;

/// Distinguishes blocks of one kind from others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Signature {
    /// The first word, which points to constant data of a file.
    Word(u64),
    /// The type of the object that references the block directly.
    Ruby(&'static str),
    /// The role in a container of the C++ standard library.
    Container(Container),
    /// None of these.
    Unknown,
}

impl Signature {
    /// The first word and an object that references the block may be remnants: a colour takes half a word, and the other half may
    /// be that of an address; an object's slot may have remains of an earlier one. A certain role excludes both.
    pub fn of(analysis: &Analysis, number: u32, block: Block) -> Signature {
        let word = analysis.signature(block).map(Signature::Word);
        if block.kind != Kind::Used {
            return word.unwrap_or(Signature::Unknown);
        }
        let container = analysis.container(number);
        let owner = || analysis.direct_owner(number);
        // The struct of a T_DATA object may be a node of a list itself, as that of a Thread is.
        let is_struct = || owner().is_some_and(|object| object.name() == "DATA");
        let role = |wanted: fn(Container) -> bool| {
            container.filter(|container| wanted(*container)).map(Signature::Container)
        };
        let certain = |wanted: fn(Container) -> bool| role(wanted).filter(|_| !is_struct());
        certain(|container| !container.begins_with_element())
            .or(word)
            .or_else(|| certain(Container::is_certain))
            .or_else(|| owner().map(|object| Signature::Ruby(object.name())))
            .or_else(|| role(|_| true))
            .unwrap_or(Signature::Unknown)
    }

    /// The C++ class whose objects have it.
    pub fn class(self, analysis: &Analysis) -> Option<String> {
        match self {
            Signature::Word(word) => analysis.class_of_cxx(word),
            _ => None,
        }
    }

    /// Its text: a word in hexadecimal digits, or a pattern.
    pub fn text(self) -> Option<String> {
        match self {
            Signature::Word(word) => Some(format!("{word:x}")),
            Signature::Ruby(name) => Some(pattern(name)),
            Signature::Container(container) => Some(pattern_of(container)),
            Signature::Unknown => None,
        }
    }

    /// Rejects signatures that no block can have, such as misspelled ones.
    pub fn check(analysis: &Analysis, wanted: &str) -> Result<(), String> {
        if matches!(wanted, "-" | "?") {
            return Ok(());
        }
        if wanted.starts_with('%') {
            let of_containers = Container::ALL.into_iter().map(pattern_of);
            let patterns: Vec<String> =
                ObjectType::names().map(pattern).chain(of_containers).collect();
            if patterns.iter().any(|pattern| pattern == wanted) {
                return Ok(());
            }
            return Err(format!(
                "unknown pattern \"{wanted}\"; expected one of: {}",
                patterns.join(", ")
            ));
        }
        let is_constant = |word| analysis.is_constant(word);
        if hexadecimal(wanted).is_some_and(is_constant) || analysis.has_constant_place(wanted) {
            return Ok(());
        }
        Err(format!(
            "invalid signature \"{wanted}\"; expected an address of constant data (7f12a0, libc.so.6+0x12a0), a pattern such as %RubyString, - or ?"
        ))
    }

    /// Whether it matches: a word, a place in a file, a pattern, `-` or `?`.
    pub fn matches(self, analysis: &Analysis, wanted: &str) -> bool {
        match (self, wanted) {
            (Signature::Unknown, "-" | "?") => true,
            (Signature::Ruby(_) | Signature::Container(_), "-") => true,
            (Signature::Ruby(name), wanted) => pattern(name) == wanted,
            (Signature::Container(container), wanted) => {
                wanted.strip_prefix('%') == Some(container.name())
            }
            (Signature::Word(word), wanted) => {
                hexadecimal(wanted) == Some(word)
                    || analysis.in_file(word).is_some_and(|place| place == wanted)
            }
            (Signature::Unknown, _) => false,
        }
    }
}

fn hexadecimal(text: &str) -> Option<u64> {
    u64::from_str_radix(text.strip_prefix("0x").unwrap_or(text), 16).ok()
}

/// `%RubyString` for STRING.
fn pattern(name: &str) -> String {
    let (first, rest) = name.split_at(1);
    format!("%Ruby{first}{}", rest.to_lowercase())
}

/// `%LongString`.
fn pattern_of(container: Container) -> String {
    format!("%{}", container.name())
}
