//! Reads line by line.

use super::limits::too_large;
use super::target::Target;
use super::window::Window;
use super::{Fallible, Skipped, Stop};

/// The kind of a line.
#[derive(PartialEq, Eq)]
pub(super) enum Line {
    /// A record, or an empty line.
    Record,
    /// The last line: the dump is complete.
    Footer,
}

/// A format with one record per line.
pub(super) trait Lines {
    /// Called before the first line.
    fn begin(&mut self, window: &Window<'_>, target: &mut Target<'_>) -> Fallible<()>;

    /// Reads the line that starts here up to its line break. A broken line yields no record.
    fn line(&mut self, window: &mut Window<'_>, target: &mut Target<'_>) -> Fallible<Line>;

    /// Whether the dump is complete; called after the last line.
    fn is_whole(&self, end: &End) -> bool {
        end.intact
    }
}

/// The end of the input.
pub(super) struct End {
    /// Whether there was a last line.
    pub footer: bool,
    /// Whether nothing seems to be missing.
    pub intact: bool,
}

/// Reads all lines and skips broken ones. Returns whether the dump is complete.
pub(super) fn read(
    window: &mut Window<'_>,
    target: &mut Target<'_>,
    skipped: &mut Skipped,
    lines: &mut impl Lines,
) -> Fallible<bool> {
    let mut number = 0;
    let mut footer = false;
    let mut last_broken = false;
    lines.begin(window, target)?;
    loop {
        window.ensure()?;
        if window.is_over() {
            break;
        }
        number += 1;
        window.begin();
        window.spaces();
        if window.end_line().is_ok() {
            window.skip(1);
            continue;
        }
        match lines.line(window, target) {
            Ok(kind) => {
                footer |= kind == Line::Footer;
                window.skip_line()?;
            }
            Err(Stop::Broken) => {
                // A break where the input ends does not count as a broken line.
                if window.skip_line()? {
                    skipped.note(number);
                } else {
                    last_broken = true;
                }
            }
            Err(Stop::TooLarge(most)) => {
                let error = too_large(&format!("the record in line {number}"), most);
                return Err(Stop::Input(error));
            }
            Err(stop) => return Err(stop),
        }
    }
    let intact = !(last_broken || window.cut());
    Ok(lines.is_whole(&End { footer, intact }))
}

impl Window<'_> {
    /// Fails unless only spaces precede the end of the line. Does not move past it.
    #[inline(always)]
    pub fn end_line(&mut self) -> Fallible<()> {
        if self.byte() == b'\n' {
            return Ok(());
        }
        self.ensure()?;
        self.spaces();
        match self.byte() {
            b'\n' => Ok(()),
            _ => Err(Stop::Broken),
        }
    }
}
