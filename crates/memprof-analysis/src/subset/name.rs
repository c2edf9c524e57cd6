//! Names to look for: literal or a regexp.

use crate::query::Pattern;
use crate::questions::Error;

/// A name, or a pattern for names.
#[derive(Clone, Debug, PartialEq)]
pub enum Name {
    /// Exactly this.
    Is(String),
    /// A pattern that names match.
    Matches(Pattern),
}

impl Name {
    /// Reads `Session`, `/Plan/` or `/plan/i`.
    ///
    /// # Errors
    /// If the text between the slashes is not a valid regexp.
    pub fn parse(text: &str) -> Result<Name, Error> {
        let regexp = text.strip_prefix('/').and_then(|rest| rest.rsplit_once('/'));
        match regexp {
            Some((source, flags @ ("" | "i"))) => {
                let pattern = Pattern::new(source, flags == "i");
                pattern.map(Name::Matches).map_err(Error::Question)
            }
            _ => Ok(Name::Is(text.to_owned())),
        }
    }

    /// True if the name matches.
    pub fn holds(&self, name: &str) -> bool {
        match self {
            Name::Is(text) => text == name,
            Name::Matches(pattern) => pattern.matches(name),
        }
    }
}
