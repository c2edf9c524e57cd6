//! The amount of program values in a dump: the `values:` option.

use std::hash::Hasher;
use std::str::FromStr;

use super::format::named;
use super::record::Content;

/// The written part of strings, symbols, regexps and large integers. Other numbers are written under [`Policy::Full`] and
/// [`Policy::Truncate`] only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Policy {
    /// All of it.
    Full,
    /// At most the first [`KEPT`] bytes.
    Truncate,
    /// A mark that equal texts share, and the length.
    Hash,
    /// The length.
    Length,
    /// Nothing.
    None,
}

/// Replaces a number, or a name that is not a file's, in a dump without contents.
pub const HIDDEN: &str = "(hidden)";

/// Bytes that [`Policy::Truncate`] keeps.
pub const KEPT: usize = 128;

impl Policy {
    const NAMES: [(&'static str, Policy); 5] = [
        ("full", Policy::Full),
        ("truncate", Policy::Truncate),
        ("hash", Policy::Hash),
        ("length", Policy::Length),
        ("none", Policy::None),
    ];

    /// Name in the `values:` option.
    pub fn name(self) -> &'static str {
        let mut names = Policy::NAMES.iter();
        names.find(|(_, policy)| *policy == self).map_or("", |(name, _)| name)
    }
}

impl FromStr for Policy {
    type Err = String;

    fn from_str(name: &str) -> Result<Policy, String> {
        named("values", name, &Policy::NAMES)
    }
}

/// Secret key for the marks of one dump. Without it, hashing likely texts would reveal those behind marks.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Key(pub [u64; 2]);

/// A policy with the key for its marks.
#[derive(Clone, Copy)]
pub struct Values {
    /// The policy.
    pub policy: Policy,
    /// The key for marks.
    pub key: Key,
}

impl Values {
    /// Writes everything.
    pub const FULL: Values = Values { policy: Policy::Full, key: Key([0; 2]) };

    /// The written part of a text with these bytes.
    #[inline]
    pub fn content<'a>(&self, bytes: &'a [u8]) -> Content<'a> {
        match self.policy {
            Policy::Full => Content::Full(bytes),
            Policy::Truncate if bytes.len() <= KEPT => Content::Full(bytes),
            Policy::Truncate => Content::Truncated(beginning(bytes, KEPT)),
            Policy::Hash => Content::Mark(self.mark(bytes)),
            Policy::Length | Policy::None => Content::Absent,
        }
    }

    /// The written length of a text with this many bytes.
    #[inline]
    pub fn length(&self, length: u64) -> Option<u64> {
        (self.policy != Policy::None).then_some(length)
    }

    /// The replacement for a symbol's name; `None` if the name may be written.
    pub fn symbol(&self, name: &str) -> Option<String> {
        match self.policy {
            Policy::Full | Policy::Truncate => None,
            Policy::Hash => Some(format!("{:#018x}", self.mark(name.as_bytes()))),
            Policy::Length | Policy::None => Some("...".to_owned()),
        }
    }

    /// Whether numbers and the start of a text may be written, such as a hash key in the label of its entry.
    pub fn previews(&self) -> bool {
        self.policy <= Policy::Truncate
    }

    /// The mark of a text: its keyed hash (SipHash-2-4).
    pub fn mark(&self, bytes: &[u8]) -> u64 {
        let Key([first, second]) = self.key;
        // Deprecated in favour of a hasher whose keys cannot be set.
        #[allow(deprecated)]
        let mut hasher = std::hash::SipHasher::new_with_keys(first, second);
        hasher.write(bytes);
        hasher.finish()
    }
}

/// The first bytes of a text, without a truncated character.
pub fn beginning(bytes: &[u8], most: usize) -> &[u8] {
    let Some(kept) = bytes.get(..most) else {
        return bytes;
    };
    match std::str::from_utf8(kept) {
        Err(error) if error.error_len().is_none() => &kept[..error.valid_up_to()],
        _ => kept,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(policy: Policy, key: u64) -> Values {
        Values { policy, key: Key([key, 2]) }
    }

    #[test]
    fn each_policy_writes_less() {
        let text = [b'x'; 200];
        let content = |policy| values(policy, 1).content(&text);
        assert_eq!(content(Policy::Full), Content::Full(&text));
        assert_eq!(content(Policy::Truncate), Content::Truncated(&text[..128]));
        assert!(matches!(content(Policy::Hash), Content::Mark(_)));
        assert_eq!(content(Policy::Length), Content::Absent);
        assert_eq!(content(Policy::None), Content::Absent);
        assert_eq!(values(Policy::Length, 1).length(200), Some(200));
        assert_eq!(values(Policy::None, 1).length(200), None);
        assert_eq!(values(Policy::Truncate, 1).content(b"short"), Content::Full(b"short"));
    }

    #[test]
    fn a_mark_is_the_texts_and_the_keys() {
        let hash = values(Policy::Hash, 1);
        assert_eq!(hash.mark(b"secret"), hash.mark(b"secret"));
        assert_ne!(hash.mark(b"secret"), hash.mark(b"secret "));
        assert_ne!(hash.mark(b"secret"), values(Policy::Hash, 3).mark(b"secret"));
    }

    #[test]
    fn symbols_are_hidden_with_the_strings() {
        assert_eq!(values(Policy::Full, 1).symbol("password"), None);
        let marked = values(Policy::Hash, 1).symbol("password").unwrap();
        assert!(marked.starts_with("0x") && marked.len() == 18);
        assert_eq!(values(Policy::Length, 1).symbol("password").unwrap(), "...");
    }

    #[test]
    fn characters_are_not_cut() {
        assert_eq!(beginning("aé".as_bytes(), 2), b"a");
        assert_eq!(beginning("aé".as_bytes(), 3), "aé".as_bytes());
        assert_eq!(beginning(b"\xff\xff\xff", 2), b"\xff\xff");
    }

    #[test]
    fn names_of_policies() {
        assert_eq!("hash".parse(), Ok(Policy::Hash));
        let error = "all".parse::<Policy>().unwrap_err();
        assert_eq!(
            error,
            "unknown values \"all\"; expected one of: full, truncate, hash, length, none"
        );
    }
}
