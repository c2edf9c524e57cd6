//! How much of the values of a program a dump contains: the `values:` option.

use std::hash::Hasher;
use std::str::FromStr;

use super::format::named;
use super::record::Content;

/// What is written of the text of strings, symbols, regexps and large integers. Other numbers are written under
/// [`Policy::Full`] and [`Policy::Truncate`] only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Policy {
    /// All of it.
    Full,
    /// At most [`KEPT`] bytes from its beginning.
    Truncate,
    /// A mark that equal texts share, and the length.
    Hash,
    /// The length.
    Length,
    /// Nothing.
    None,
}

/// What replaces a number, and the name of a file that is none, in a dump without contents.
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

    /// As in the `values:` option.
    pub fn name(self) -> &'static str {
        let mut names = Policy::NAMES.iter();
        names
            .find(|(_, policy)| *policy == self)
            .map_or("", |(name, _)| name)
    }
}

impl FromStr for Policy {
    type Err = String;

    fn from_str(name: &str) -> Result<Policy, String> {
        named("values", name, &Policy::NAMES)
    }
}

/// Secret of the marks of one dump. Without it a mark could be found again by hashing a list of likely texts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Key(pub [u64; 2]);

/// A policy with the key for its marks.
#[derive(Clone, Copy)]
pub struct Values {
    /// What is written.
    pub policy: Policy,
    /// Key of marks.
    pub key: Key,
}

impl Values {
    /// Everything is written.
    pub const FULL: Values = Values {
        policy: Policy::Full,
        key: Key([0; 2]),
    };

    /// What is written of a text that has these bytes.
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

    /// What is written of a text of this length, in bytes.
    #[inline]
    pub fn length(&self, length: u64) -> Option<u64> {
        (self.policy != Policy::None).then_some(length)
    }

    /// What takes the place of a symbol's name; `None` if the name may be written.
    pub fn symbol(&self, name: &str) -> Option<String> {
        match self.policy {
            Policy::Full | Policy::Truncate => None,
            Policy::Hash => Some(format!("{:#018x}", self.mark(name.as_bytes()))),
            Policy::Length | Policy::None => Some("...".to_owned()),
        }
    }

    /// True if numbers and the beginning of a text may be written, as of a hash key in the label of its entry.
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

/// The first bytes of a text, without a character that would be cut.
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
mod tests;
