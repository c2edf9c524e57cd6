//! Decides whether a double-quoted text is a name or a string.
//!
//! SQLite takes it for a name if there is such a column, and otherwise for a string. So here it is a value wherever values are
//! expected: after an operator, among the arguments of a function, in `VALUES (...)` and `IN (...)`.

use super::Part;
use super::scanner::Scanner;

/// Words followed by names, or by subqueries in brackets.
const BEFORE_NAMES: [&str; 33] = [
    "ADD",
    "ALL",
    "AS",
    "BY",
    "COLUMN",
    "CONSTRAINT",
    "DELETE",
    "DISTINCT",
    "EXCEPT",
    "EXISTS",
    "FROM",
    "HAVING",
    "INDEX",
    "INTERSECT",
    "INTO",
    "JOIN",
    "KEY",
    "ON",
    "OR",
    "OVER",
    "REFERENCES",
    "RELEASE",
    "RETURNING",
    "SAVEPOINT",
    "SELECT",
    "SET",
    "TABLE",
    "TO",
    "UNION",
    "UNIQUE",
    "UPDATE",
    "USING",
    "WHERE",
];
/// Words followed by values.
const BEFORE_VALUES: [&str; 15] = [
    "BETWEEN", "CASE", "ELSE", "ESCAPE", "GLOB", "ILIKE", "IN", "IS", "LIKE", "LIMIT", "MATCH",
    "NOT", "REGEXP", "THEN", "WHEN",
];
const OPERATORS: &[u8] = b"=<>!|+-*/%~&^:";
const LONGEST_WORD: usize = 16;

/// The context before a text.
#[derive(Default)]
pub(super) struct Context {
    last: Last,
    word: String,
    /// For each open bracket, whether it contains values.
    brackets: Vec<bool>,
    closed: bool,
    between: bool,
}

#[derive(Clone, Copy, Default, PartialEq)]
enum Last {
    #[default]
    Nothing,
    Word,
    Operator,
    Opening,
    Comma,
    Dot,
    Other,
}

impl Context {
    pub fn is_value(&self, quoted: &[u8], scanner: &Scanner<'_>) -> bool {
        if self.last == Last::Dot || scanner.following() == Some(b'.') || quoted.len() < 3 {
            return false;
        }
        match self.last {
            Last::Operator => true,
            Last::Word if self.word == "AND" => self.between,
            Last::Word => BEFORE_VALUES.contains(&&*self.word),
            Last::Opening | Last::Comma => self.brackets.last().copied().unwrap_or_default(),
            _ => false,
        }
    }

    pub fn follow(&mut self, part: &Part<'_>) {
        if *part == Part::Blank {
            return;
        }
        if self.last == Last::Word && self.word == "AND" {
            self.between = false; // this is the second value
        }
        self.last = match *part {
            Part::Name(name) => self.name(name),
            Part::Symbol(b'(') => {
                self.brackets.push(self.opens_values());
                Last::Opening
            }
            Part::Symbol(b')') => {
                self.closed = self.brackets.pop().unwrap_or_default();
                Last::Other
            }
            Part::Symbol(b',') => Last::Comma,
            Part::Symbol(b'.') => Last::Dot,
            Part::Symbol(byte) if OPERATORS.contains(&byte) => Last::Operator,
            _ => Last::Other,
        };
    }

    fn name(&mut self, name: &[u8]) -> Last {
        if name.first() == Some(&b'`') {
            return Last::Other;
        }
        self.word.clear();
        let word = String::from_utf8_lossy(&name[..name.len().min(LONGEST_WORD)]);
        self.word.push_str(&word.to_ascii_uppercase());
        match &*self.word {
            "BETWEEN" => self.between = true,
            "AND" => return Last::Word,
            "SELECT" if self.last == Last::Opening => {
                if let Some(values) = self.brackets.last_mut() {
                    *values = false;
                }
            }
            _ => self.between &= !BEFORE_NAMES.contains(&&*self.word),
        }
        Last::Word
    }

    fn opens_values(&self) -> bool {
        match self.last {
            Last::Word => self.word != "AND" && !BEFORE_NAMES.contains(&&*self.word),
            Last::Operator => true,
            Last::Comma => self.closed,
            Last::Opening => self.brackets.last().copied().unwrap_or_default(),
            _ => false,
        }
    }
}
