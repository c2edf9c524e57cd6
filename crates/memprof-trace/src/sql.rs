//! Normalized text of SQL statements: the same for all statements that differ only in their values.
//!
//! Literals and placeholders become `?`, lists of them a single one, comments and runs of blanks a blank. Personal data of a
//! statement is in its literals, so in doubt, a text counts as a literal: a double-quoted one is a string in MySQL, and in
//! SQLite wherever a name is not possible.

mod double_quotes;
mod scanner;
#[cfg(test)]
mod tests;

use double_quotes::Context;
use scanner::Scanner;

/// Maximum bytes of a normalized text, without the mark at its end.
pub const LONGEST: usize = 1000;
/// Maximum bytes of a statement to process.
const LOOKED_AT: usize = 1 << 16;
/// Marks the end of a truncated text.
const CUT: &str = "…";

/// A dialect of SQL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// MySQL and MariaDB.
    Mysql,
    /// PostgreSQL and compatible databases.
    Postgres,
    /// SQLite.
    Sqlite,
    /// Any other, such as Oracle and SQL Server.
    Other,
}

impl Dialect {
    /// The dialect of an Active Record adapter or a client gem.
    pub fn of(adapter: &str) -> Dialect {
        let adapter = adapter.to_ascii_lowercase();
        let has = |names: &[&str]| names.iter().any(|name| adapter.contains(name));
        if has(&["mysql", "trilogy", "maria"]) {
            Dialect::Mysql
        } else if has(&["postg", "cockroach", "redshift", "pg"]) {
            Dialect::Postgres
        } else if has(&["sqlite"]) {
            Dialect::Sqlite
        } else {
            Dialect::Other
        }
    }
}

/// The text of a statement without its values.
pub fn normalize(sql: &[u8], dialect: Dialect) -> String {
    let looked_at = &sql[..sql.len().min(LOOKED_AT)];
    let mut text = Text {
        out: Vec::with_capacity(looked_at.len().min(LONGEST)),
        blank: false,
        first_literal: None,
    };
    let ended = write(Scanner::new(looked_at, dialect), &mut text);
    // An unterminated literal: what was taken for literals may have been the text between them.
    if !ended && sql.len() <= LOOKED_AT {
        text.out.truncate(text.first_literal.unwrap_or_default());
        text.out.extend_from_slice(b"?");
    }
    text.finish(!ended || sql.len() > LOOKED_AT)
}

/// Writes the parts of a statement that fit; false if a literal is unterminated.
fn write(mut scanner: Scanner<'_>, text: &mut Text) -> bool {
    let mut context = Context::default();
    while text.out.len() <= LONGEST {
        let Some(part) = scanner.next(&text.out) else {
            return true;
        };
        match part {
            Part::Blank => text.blank = !text.out.is_empty(),
            Part::Value => text.value(),
            Part::Endless => return false,
            Part::Name(bytes) => text.push(bytes),
            Part::Quoted(bytes) if scanner.is_sqlite() && context.is_value(bytes, &scanner) => {
                text.value();
            }
            Part::Quoted(bytes) => text.push(bytes),
            Part::Symbol(byte) => text.symbol(byte),
        }
        context.follow(&part);
    }
    true
}

/// A token of a statement.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Part<'a> {
    /// Blanks and comments.
    Blank,
    /// A literal or a placeholder.
    Value,
    /// An unterminated literal.
    Endless,
    /// A keyword or a name.
    Name(&'a [u8]),
    /// A double-quoted text, including its quotes.
    Quoted(&'a [u8]),
    /// Anything else.
    Symbol(u8),
}

/// The text written so far.
struct Text {
    out: Vec<u8>,
    /// Whether to write a blank before the next part.
    blank: bool,
    first_literal: Option<usize>,
}

impl Text {
    fn push(&mut self, bytes: &[u8]) {
        if std::mem::take(&mut self.blank) {
            self.out.push(b' ');
        }
        self.out.extend_from_slice(bytes);
    }

    fn value(&mut self) {
        self.first_literal.get_or_insert(self.out.len());
        self.push(b"?");
        self.fold(b"?");
    }

    fn symbol(&mut self, byte: u8) {
        self.push(&[byte]);
        if byte == b')' {
            self.fold(b"(?)");
        }
    }

    /// `?, ?` becomes `?`, and `(?), (?)` becomes `(?)`.
    fn fold(&mut self, item: &[u8]) {
        let before = |text: &'_ [u8], end: &[u8]| {
            text.strip_suffix(end).map(|rest| rest.trim_ascii_end().len())
        };
        let folded = before(&self.out, item)
            .and_then(|size| before(&self.out[..size], b","))
            .filter(|&size| self.out[..size].ends_with(item));
        if let Some(size) = folded {
            self.out.truncate(size);
        }
    }

    fn finish(mut self, mut cut: bool) -> String {
        if self.out.len() > LONGEST {
            self.out.truncate(LONGEST);
            cut = true;
            // Don't cut inside a character.
            let whole = self.out.utf8_chunks().next();
            let valid = whole.map_or(0, |chunk| chunk.valid().len());
            if LONGEST - valid < 4 {
                self.out.truncate(valid);
            }
        }
        let text = String::from_utf8_lossy(&self.out);
        let text = text.trim_end_matches([';', ' ']);
        format!("{text}{}", if cut { CUT } else { "" })
    }
}
