//! Stacks of one frame each, as the recorder knows no callers.

use std::io::{self, Write};

use super::{Value, one_line, ranked};
use crate::summary::Summary;

pub fn write(summary: &Summary, value: Value, out: &mut dyn Write) -> io::Result<()> {
    for (location, bytes) in ranked(summary, value) {
        writeln!(out, "{} {bytes}", one_line(location).replace(';', ":"))?;
    }
    Ok(())
}
