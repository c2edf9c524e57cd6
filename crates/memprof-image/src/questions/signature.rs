//! What blocks of one kind have in common.

use crate::analysis::Analysis;
use crate::blocks::{Block, Kind};

/// What distinguishes blocks of one kind from others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Signature {
    /// The first word, which points to constant data of a file.
    Word(u64),
    /// The type of the object that references the block itself.
    Ruby(&'static str),
    /// Neither.
    Unknown,
}

impl Signature {
    pub fn of(analysis: &Analysis, number: u32, block: Block) -> Signature {
        if let Some(word) = analysis.signature(block) {
            return Signature::Word(word);
        }
        let owner = (block.kind == Kind::Used && !analysis.ruby.pages.is_empty())
            .then(|| analysis.owner(number))
            .flatten();
        match owner.filter(|(_, directly)| *directly) {
            Some((object, _)) => match analysis.object_type(object) {
                Some(object) => Signature::Ruby(object.name()),
                None => Signature::Unknown,
            },
            None => Signature::Unknown,
        }
    }

    /// As it is written: a word in hexadecimal digits, or a pattern.
    pub fn text(self) -> Option<String> {
        match self {
            Signature::Word(word) => Some(format!("{word:x}")),
            Signature::Ruby(name) => Some(pattern(name)),
            Signature::Unknown => None,
        }
    }

    /// Whether it is the one that is asked for: a word, a place in a file, a pattern, `-` or `?`.
    pub fn matches(self, analysis: &Analysis, wanted: &str) -> bool {
        match (self, wanted) {
            (Signature::Unknown, "-" | "?") | (Signature::Ruby(_), "-") => true,
            (Signature::Ruby(name), wanted) => pattern(name) == wanted,
            (Signature::Word(word), wanted) => {
                let digits = wanted.strip_prefix("0x").unwrap_or(wanted);
                u64::from_str_radix(digits, 16) == Ok(word)
                    || analysis.in_file(word).is_some_and(|place| place == wanted)
            }
            (Signature::Unknown, _) => false,
        }
    }
}

/// `%RubyString` for STRING.
fn pattern(name: &str) -> String {
    let (first, rest) = name.split_at(1);
    format!("%Ruby{first}{}", rest.to_lowercase())
}
