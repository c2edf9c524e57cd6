//! Names of types: in small letters here, in capitals in what objspace and heap_dump write.

use super::record::Kind;

/// Objects that were moved have no name in capitals: objspace does not know them.
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

/// Both names by number.
static NAMES: [(&str, &str); 32] = {
    let mut names = [UNKNOWN; 32];
    let mut place = 0;
    while place < KINDS.len() {
        names[KINDS[place].0.0 as usize] = (KINDS[place].1, KINDS[place].2);
        place += 1;
    }
    names
};

/// Name of a type in small letters.
#[inline]
pub(super) fn lower(kind: Kind) -> &'static str {
    NAMES.get(usize::from(kind.0)).unwrap_or(&UNKNOWN).0
}

/// Name of a type in capitals, without `T_`.
#[inline]
pub(super) fn upper(kind: Kind) -> &'static str {
    NAMES.get(usize::from(kind.0)).unwrap_or(&UNKNOWN).1
}

/// The type of a name in small letters.
pub(super) fn from_lower(name: &str) -> Option<Kind> {
    let mut kinds = KINDS.iter();
    kinds.find(|kind| kind.1 == name).map(|kind| kind.0)
}

/// The type of a name in capitals.
pub(super) fn from_upper(name: &str) -> Kind {
    let mut kinds = KINDS.iter();
    kinds
        .find(|kind| kind.2 == name)
        .map_or(Kind::MOVED, |kind| kind.0)
}
