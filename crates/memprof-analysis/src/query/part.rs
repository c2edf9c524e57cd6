//! A text to search for in other texts.

use memchr::memmem::Finder;

/// A text to search for in many other texts.
#[derive(Clone, Debug)]
pub struct Part {
    text: String,
    /// Boxed because it is large, and queries are nested.
    finder: Box<Finder<'static>>,
}

impl Part {
    /// The text itself.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// True if the text contains it.
    #[inline]
    pub fn is_in(&self, text: &str) -> bool {
        self.finder.find(text.as_bytes()).is_some()
    }

    /// True if bytes contain it, decoded as by [`String::from_utf8_lossy`]: invalid UTF-8 becomes U+FFFD.
    #[inline]
    pub fn is_in_bytes(&self, bytes: &[u8]) -> bool {
        if self.text.contains(char::REPLACEMENT_CHARACTER) {
            return self.is_in(&String::from_utf8_lossy(bytes));
        }
        // A character never begins within another one, so a match in the bytes is a match in the text.
        self.finder.find(bytes).is_some()
    }
}

impl From<String> for Part {
    fn from(text: String) -> Part {
        let finder = Box::new(Finder::new(&text).into_owned());
        Part { text, finder }
    }
}

impl PartialEq for Part {
    fn eq(&self, other: &Part) -> bool {
        self.text == other.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_in_bytes_what_is_in_the_text() {
        let texts: [&[u8]; 8] = [
            b"",
            b"a",
            b"caf\xc3\xa9",
            b"caf\xc3",
            b"\xa9\xc3\xa9",
            b"\xf0\x9f\xc3\xa9\xff",
            b"\xef\xbf\xbd",
            b"\xe2\x82a",
        ];
        for part in ["", "a", "\u{e9}", "f\u{e9}", "\u{fffd}", "\u{fffd}a", "fa"] {
            let part = Part::from(part.to_owned());
            for bytes in texts {
                let text = String::from_utf8_lossy(bytes);
                let found = text.contains(part.as_str());
                assert_eq!(
                    (part.is_in(&text), part.is_in_bytes(bytes)),
                    (found, found),
                    "{part:?} {text:?}"
                );
            }
        }
    }
}
