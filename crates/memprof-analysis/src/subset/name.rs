//! Names that are looked for: as they are, or by a regexp.

use crate::query::Pattern;
use crate::questions::Error;

/// A name, or what names have to match.
#[derive(Clone, Debug, PartialEq)]
pub enum Name {
    /// Exactly this.
    Is(String),
    /// What matches.
    Matches(Pattern),
}

impl Name {
    /// Reads `Session`, `/Plan/` or `/plan/i`.
    ///
    /// # Errors
    /// If it is no regexp between its slashes.
    pub fn parse(text: &str) -> Result<Name, Error> {
        let regexp = text
            .strip_prefix('/')
            .and_then(|rest| rest.rsplit_once('/'));
        match regexp {
            Some((source, flags @ ("" | "i"))) => {
                let pattern = Pattern::new(source, flags == "i");
                pattern.map(Name::Matches).map_err(Error::Question)
            }
            _ => Ok(Name::Is(text.to_owned())),
        }
    }

    /// True if it is the name.
    pub fn holds(&self, name: &str) -> bool {
        match self {
            Name::Is(text) => text == name,
            Name::Matches(pattern) => pattern.matches(name),
        }
    }
}
