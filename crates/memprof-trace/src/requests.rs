//! The requests of a file, line by line.

use std::io::{self, Read};

use crate::entry::Entry;
use crate::line::Line;
use crate::lines::{Found, Lines};

/// Bytes between two progress reports.
const STEP: u64 = 1 << 20;

/// Position of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Its number, from 1.
    pub line: u64,
    /// Its first byte.
    pub offset: u64,
    /// Bytes, including the line feed.
    pub length: u64,
}

/// Reads a file to its end: `visit` receives the request of each line that is not blank, or `None` if it is not one.
pub fn each(
    input: impl Read,
    progress: impl Fn(u64),
    mut visit: impl FnMut(Place, Option<Entry<'_>>) -> io::Result<()>,
) -> io::Result<()> {
    let mut lines = Lines::new(input);
    let mut place = Place { line: 0, offset: 0, length: 0 };
    let mut reported = 0;
    while let Some((found, offset, end)) = lines.next()? {
        place = Place { line: place.line + 1, offset, length: end - offset };
        match &found {
            Found::Text(text) if is_blank(text) => continue,
            Found::Text(text) => visit(place, Line::read(text).and_then(Entry::of))?,
            Found::TooLong => visit(place, None)?,
        }
        if lines.done >= reported + STEP {
            reported = lines.done;
            progress(reported);
        }
    }
    Ok(())
}

fn is_blank(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_whitespace() || byte == 0 || byte == 0x0b)
}
