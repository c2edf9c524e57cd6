//! Text with source locations. They are separate fields in an answer, so that views can shorten paths without parsing
//! sentences.

use std::fmt;

use serde::{Serialize, Serializer};

use super::words;

/// A part of a phrase.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Part {
    /// Literal text.
    Text(String),
    /// A source location.
    Place {
        /// Path.
        file: String,
        /// Line; 0 if unknown.
        line: u32,
    },
}

/// A sequence of parts. Converted to text, locations have full paths.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Phrase(Vec<Part>);

impl Phrase {
    /// Appends a text.
    pub fn text(mut self, text: impl AsRef<str>) -> Phrase {
        let text = text.as_ref();
        match self.0.last_mut() {
            _ if text.is_empty() => {}
            Some(Part::Text(last)) => last.push_str(text),
            _ => self.0.push(Part::Text(text.to_owned())),
        }
        self
    }

    /// Appends a source location.
    pub fn place(mut self, file: &str, line: u32) -> Phrase {
        self.0.push(Part::Place { file: file.to_owned(), line });
        self
    }

    /// Appends another phrase.
    pub fn phrase(mut self, other: Phrase) -> Phrase {
        for part in other.0 {
            self = match part {
                Part::Text(text) => self.text(text),
                place => {
                    self.0.push(place);
                    self
                }
            };
        }
        self
    }

    /// Appends steps of a path, separated by arrows.
    pub fn steps(mut self, steps: impl IntoIterator<Item = Phrase>) -> Phrase {
        for (step, number) in steps.into_iter().zip(0..) {
            let arrow = if number == 0 { "" } else { words::ARROW };
            self = self.text(arrow).phrase(step);
        }
        self
    }

    /// True if the text is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl From<String> for Phrase {
    fn from(text: String) -> Phrase {
        Phrase::default().text(text)
    }
}

impl fmt::Display for Phrase {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|part| match part {
            Part::Text(text) => out.write_str(text),
            Part::Place { file, line } => out.write_str(&words::place(file, *line)),
        })
    }
}

impl Serialize for Phrase {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn places_stay_apart_and_texts_become_one() {
        let phrase =
            Phrase::default().text("Proc ").place("/app/a -> b.rb", 3).text("(local ").text("x)");
        assert_eq!(phrase.to_string(), "Proc /app/a -> b.rb:3(local x)");
        let parts = serde_json::to_value(&phrase).expect("JSON");
        assert_eq!(parts, json!(["Proc ", { "file": "/app/a -> b.rb", "line": 3 }, "(local x)"]));
    }

    #[test]
    fn steps_have_arrows_between_them() {
        let step = |text: &str| Phrase::from(text.to_owned());
        let steps = Phrase::default().steps([step("$a"), step("B@c")]);
        assert_eq!(steps.to_string(), "$a -> B@c");
        assert!(Phrase::default().steps([]).is_empty());
    }
}
