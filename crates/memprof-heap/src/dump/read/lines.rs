//! Reading line by line.

use super::input::Input;
use super::{Fallible, Skipped, Stop};

/// What a line was.
#[derive(PartialEq, Eq)]
pub(super) enum Line {
    /// A record.
    Record,
    /// The last one: the dump is whole.
    Footer,
}

/// How the input ended.
pub(super) struct End {
    /// There was a last line.
    pub footer: bool,
    /// Nothing shows that something is missing.
    pub intact: bool,
}

/// Hands every line to `line`; those that are broken are left out.
pub(super) fn read(
    input: &mut Input,
    skipped: &mut Skipped,
    mut line: impl FnMut(&[u8]) -> Fallible<Line>,
) -> Fallible<End> {
    let mut buffer = Vec::new();
    let mut number = 0;
    let mut footer = false;
    let mut last_broken = false;
    while input.line(&mut buffer).map_err(Stop::Input)? > 0 {
        number += 1;
        let ended = buffer.ends_with(b"\n");
        let text = buffer.trim_ascii();
        match line(text) {
            _ if text.is_empty() => {}
            Ok(kind) => footer |= kind == Line::Footer,
            // The break, where nothing more comes, is no broken line.
            Err(Stop::Broken) if !ended => last_broken = true,
            Err(Stop::Broken) => skipped.note(number),
            Err(stop) => return Err(stop),
        }
        // A line of many megabytes comes rarely.
        buffer.clear();
        buffer.shrink_to(1024 * 1024);
    }
    let intact = !(last_broken || input.cut());
    Ok(End { footer, intact })
}
