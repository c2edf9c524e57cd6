//! Reading line by line.

use super::limits::too_large;
use super::target::Target;
use super::window::Window;
use super::{Fallible, Skipped, Stop};

/// What a line was.
#[derive(PartialEq, Eq)]
pub(super) enum Line {
    /// A record, or nothing.
    Record,
    /// The last one: the dump is whole.
    Footer,
}

/// A format that has one record a line.
pub(super) trait Lines {
    /// Before the first line.
    fn begin(&mut self, window: &Window<'_>, target: &mut Target<'_>) -> Fallible<()>;

    /// Reads the line that begins here up to its line break. A broken line yields nothing.
    fn line(&mut self, window: &mut Window<'_>, target: &mut Target<'_>) -> Fallible<Line>;

    /// Whether the dump is whole, behind the last line.
    fn is_whole(&self, end: &End) -> bool {
        end.intact
    }
}

/// How the input ended.
pub(super) struct End {
    /// There was a last line.
    pub footer: bool,
    /// Nothing shows that something is missing.
    pub intact: bool,
}

/// Reads all lines; those that are broken are left out. Returns whether the dump is whole.
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
                // The break, where nothing more comes, is no broken line.
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
    /// Fails unless nothing but spaces comes before the end of the line. Stays there.
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
