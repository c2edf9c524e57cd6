//! Type names: lowercase here, uppercase in objspace and heap_dump output.

use super::record::Kind;

/// Moved objects have no uppercase name: objspace does not know them.
const KINDS: [(Kind, &str, &str); 23] = [
    (Kind::NONE, "none", "NONE"),
    (Kind::OBJECT, "object", "OBJECT"),
    (Kind::CLASS, "class", "CLASS"),
    (Kind::MODULE, "module", "MODULE"),
    (Kind::FLOAT, "float", "FLOAT"),
    (Kind::STRING, "string", "STRING"),
    (Kind::REGEXP, "regexp", "REGEXP"),
    (Kind::ARRAY, "array", "ARRAY"),
    (Kind::HASH, "hash", "HASH"),
    (Kind::STRUCT, "struct", "STRUCT"),
    (Kind::BIGNUM, "bignum", "BIGNUM"),
    (Kind::FILE, "file", "FILE"),
    (Kind::DATA, "data", "DATA"),
    (Kind::MATCH, "match", "MATCH"),
    (Kind::COMPLEX, "complex", "COMPLEX"),
    (Kind::RATIONAL, "rational", "RATIONAL"),
    (Kind::BLOCK, "block", "BLOCK"),
    (Kind::SYMBOL, "symbol", "SYMBOL"),
    (Kind::IMEMO, "imemo", "IMEMO"),
    (Kind::NODE, "node", "NODE"),
    (Kind::ICLASS, "iclass", "ICLASS"),
    (Kind::ZOMBIE, "zombie", "ZOMBIE"),
    (Kind::MOVED, "moved", "UNKNOWN"),
];

const UNKNOWN: (&str, &str) = ("unknown", "UNKNOWN");

/// Both names by type number.
static NAMES: [(&str, &str); 32] = {
    let mut names = [UNKNOWN; 32];
    let mut place = 0;
    while place < KINDS.len() {
        names[KINDS[place].0.0 as usize] = (KINDS[place].1, KINDS[place].2);
        place += 1;
    }
    names
};

/// Lowercase name of a type.
#[inline]
pub(super) fn lower(kind: Kind) -> &'static str {
    NAMES.get(usize::from(kind.0)).unwrap_or(&UNKNOWN).0
}

/// Uppercase name of a type, without `T_`.
#[inline]
pub(super) fn upper(kind: Kind) -> &'static str {
    NAMES.get(usize::from(kind.0)).unwrap_or(&UNKNOWN).1
}

/// The type with a lowercase name.
pub(super) fn from_lower(name: &str) -> Option<Kind> {
    let mut kinds = KINDS.iter();
    kinds.find(|kind| kind.1 == name).map(|kind| kind.0)
}

/// The type with an uppercase name.
pub(super) fn from_upper(name: &str) -> Kind {
    let mut kinds = KINDS.iter();
    kinds.find(|kind| kind.2 == name).map_or(Kind::MOVED, |kind| kind.0)
}
