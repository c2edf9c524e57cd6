//! Errors in a query, with their position.

use std::fmt;

/// A syntax error in a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// The message.
    pub message: String,
    /// The position in the query, in bytes.
    pub at: usize,
    /// The length of the faulty part in bytes; 0 if something is missing there.
    pub length: usize,
}

/// Characters of a long query that are shown on each side of the spot.
const SHOWN: usize = 60;

impl Error {
    /// The line of the query with the spot, and a line with carets under the spot.
    ///
    /// Characters that a terminal does not display as one character become replacement characters. Long lines are cut
    /// around the spot.
    pub fn pointing(&self, query: &str) -> String {
        let at = self.at.min(query.len());
        let bytes = query.as_bytes();
        let newline = |byte: &u8| *byte == b'\n';
        let begin = bytes[..at].iter().rposition(newline).map_or(0, |at| at + 1);
        let end = bytes[at..].iter().position(newline);
        let end = end.map_or(query.len(), |length| at + length);
        // Both are next to a newline or an end of the query, so these are whole characters.
        let line = query.get(begin..end).unwrap_or_default();

        let chars: Vec<(usize, char)> =
            line.char_indices().map(|(offset, char)| (begin + offset, printable(char))).collect();
        let spot = chars.partition_point(|(offset, _)| *offset < at);
        let after = self.at.saturating_add(self.length);
        let after = chars.partition_point(|(offset, _)| *offset < after);
        let first = spot.saturating_sub(SHOWN);
        let last = chars.len().min(spot + SHOWN);

        let cut = |cut: bool| if cut { "…" } else { "" };
        let shown: String = chars[first..last].iter().map(|(_, char)| char).collect();
        let width = |chars: &[(usize, char)]| chars.iter().map(|(_, char)| columns(*char)).sum();
        let before: usize = width(&chars[first..spot]);
        let carets: usize = width(&chars[spot..after.clamp(spot, last)]);
        format!(
            "{}{shown}{}\n{}{}",
            cut(first > 0),
            cut(last < chars.len()),
            " ".repeat(usize::from(first > 0) + before),
            "^".repeat(carets.max(1))
        )
    }
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

/// A word of the query in quotes, for a message; long ones are cut.
pub(super) fn shown(word: &str) -> String {
    match word.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{:?}...", &word[..end]),
        None => format!("{word:?}"),
    }
}

/// The character; a space for a tab, and U+FFFD for control and bidirectional characters.
fn printable(char: char) -> char {
    match char {
        '\t' => ' ',
        '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => '\u{fffd}',
        char if char.is_control() => '\u{fffd}',
        char => char,
    }
}

/// Width of the character in terminal columns. The ranges are those of UAX #11, without their gaps.
fn columns(char: char) -> usize {
    match u32::from(char) {
        0x300..=0x36f | 0x20d0..=0x20ff | 0x200b..=0x200d | 0xfe00..=0xfe0f => 0,
        0x1100..=0x115f
        | 0x2e80..=0x303e
        | 0x3041..=0xa4cf
        | 0xac00..=0xd7a3
        | 0xf900..=0xfaff
        | 0xfe30..=0xfe6f
        | 0xff00..=0xff60
        | 0xffe0..=0xffe6
        | 0x1f300..=0x1f64f
        | 0x1f680..=0x1f6ff
        | 0x1f900..=0x1f9ff
        | 0x20000..=0x3fffd => 2,
        _ => 1,
    }
}
