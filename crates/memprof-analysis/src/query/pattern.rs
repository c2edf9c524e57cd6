//! Regular expressions.

use regex::{Regex, RegexBuilder};

/// Maximum length of a regexp in bytes: its parsed form takes up to some thousand times as many.
const LONGEST: usize = 4096;

/// Maximum size of a compiled regexp in bytes; one `\w` takes 30,000.
const LARGEST: usize = 2 << 20;

/// A regular expression. `^` and `$` match at line boundaries, as in Ruby.
#[derive(Clone, Debug)]
pub struct Pattern {
    source: String,
    ignore_case: bool,
    regex: Regex,
}

impl Pattern {
    /// Compiles a regexp.
    ///
    /// # Errors
    /// A description of the syntax error.
    pub fn new(source: &str, ignore_case: bool) -> Result<Pattern, String> {
        if source.len() > LONGEST {
            return Err(format!("the regexp has more than {LONGEST} bytes"));
        }
        let regex = RegexBuilder::new(source)
            .case_insensitive(ignore_case)
            .multi_line(true)
            .nest_limit(100)
            .size_limit(LARGEST)
            .dfa_size_limit(LARGEST)
            .build()
            .map_err(|error| in_words(&error))?;
        Ok(Pattern { source: source.to_owned(), ignore_case, regex })
    }

    /// Its text, without the slashes around it.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// True if upper and lower case are the same.
    pub fn ignores_case(&self) -> bool {
        self.ignore_case
    }

    /// True if it matches somewhere in the text.
    pub fn matches(&self, text: &str) -> bool {
        self.regex.is_match(text)
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Pattern) -> bool {
        self.source == other.source && self.ignore_case == other.ignore_case
    }
}

fn in_words(error: &regex::Error) -> String {
    match error {
        regex::Error::CompiledTooBig(_) => "the regexp is too large when compiled".to_owned(),
        // The preceding lines draw the regexp.
        error => {
            let text = error.to_string();
            let last = text.rsplit("error: ").next().unwrap_or(&text);
            format!("the regexp is not valid: {}", last.trim())
        }
    }
}
