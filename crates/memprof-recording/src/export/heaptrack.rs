//! heaptrack's data file, version 3: lines of a letter and hexadecimal numbers. Strings, frames and traces are numbered from 1,
//! allocations of a size and a trace from 0.

use std::fmt::Write as _;
use std::io::{self, Read, Seek, SeekFrom, Write};

use memprof_profile::profile::estimates;
use rustc_hash::FxHashMap;

use super::{one_line, written};
use crate::reader::{Error, read};
use crate::record::{Event, Record};
use crate::samples::Scale;
use crate::stacks::{Frame, Native};
use crate::summary::Summary;

/// The first version of heaptrack with this file format, and the format's version.
const VERSION: &str = "v 10400 3";
const PAGE: u64 = 4096;
/// The module of Ruby frames.
const RUBY: &str = "ruby";

pub fn write<I: Read + Seek>(input: &mut I, out: &mut dyn Write) -> Result<(), Error> {
    let names = names(input)?;
    input.seek(SeekFrom::Start(0))?;
    let mut lines = Lines {
        out,
        names,
        strings: FxHashMap::default(),
        allocations: FxHashMap::default(),
        frames: 0,
        scale: Scale::default(),
        clock: None,
    };
    let mut failed = None;
    read(input, &mut |record| written(lines.add(record), &mut failed))?;
    let clock = lines.clock.take();
    written(lines.clock(clock), &mut failed);
    failed.map_or(Ok(()), |error| Err(error.into()))
}

/// Named native frames by frame number: names come at the end of a recording, or from the files of libraries.
fn names(input: &mut dyn Read) -> Result<FxHashMap<u64, Native>, Error> {
    let frames = Summary::read(input)?.stacks.frames.into_iter();
    let named = frames.zip(1..).filter_map(|(frame, number)| match frame {
        Frame::Native(native) if !native.function.is_empty() => Some((number, native)),
        _ => None,
    });
    Ok(named.collect())
}

struct Lines<'a> {
    out: &'a mut dyn Write,
    names: FxHashMap<u64, Native>,
    strings: FxHashMap<String, u64>,
    allocations: FxHashMap<(u64, u64), u64>,
    frames: u64,
    scale: Scale,
    /// Milliseconds and RSS, not yet written.
    clock: Option<(u64, u64)>,
}

impl Lines<'_> {
    fn add(&mut self, record: Record<'_>) -> io::Result<()> {
        match record {
            Record::Start { command, .. } => {
                writeln!(self.out, "{VERSION}")?;
                let command = one_line(&String::from_utf8_lossy(command));
                writeln!(self.out, "X {command}\nI {PAGE:x} 0")
            }
            // heaptrack expects the time after the events before it.
            Record::Clock { ms, rss } => {
                let clock = self.clock.replace((ms, rss));
                self.clock(clock)
            }
            Record::RubyFrame { path, line, method } => {
                let path = String::from_utf8_lossy(path).into_owned();
                let function = match method {
                    [] => format!("{path}:{line}"),
                    _ => String::from_utf8_lossy(method).into_owned(),
                };
                let (module, function) = (self.string(RUBY)?, self.string(&function)?);
                let file = self.string(&path)?;
                self.frames += 1;
                // Ruby frames have no address, so a number distinguishes them.
                let number = self.frames;
                writeln!(self.out, "i {number:x} {module:x} {function:x} {file:x} {line:x}")
            }
            Record::NativeFrame { address, module, .. } => {
                self.frames += 1;
                let module = self.string(&String::from_utf8_lossy(module))?;
                let mut line = format!("i {address:x} {module:x}");
                if let Some(native) = self.names.remove(&self.frames) {
                    let _ = write!(line, " {:x}", self.string(&native.function)?);
                    if !native.file.is_empty() {
                        let _ = write!(line, " {:x} {:x}", self.string(&native.file)?, native.line);
                    }
                }
                writeln!(self.out, "{line}")
            }
            Record::Node { parent, frame } => writeln!(self.out, "t {frame:x} {parent:x}"),
            Record::Allocation(event) => self.event('+', event),
            Record::Free(event) => self.event('-', event),
            Record::Samples { period } => {
                self.scale = Scale::new(Some(period));
                // heaptrack skips comments, but nothing it displays has room for this.
                writeln!(self.out, "# {}", estimates(period))
            }
            Record::Addresses | Record::Name { .. } | Record::End { .. } => Ok(()),
        }
    }

    fn clock(&mut self, clock: Option<(u64, u64)>) -> io::Result<()> {
        match clock {
            Some((ms, rss)) => writeln!(self.out, "c {ms:x}\nR {:x}", rss / PAGE),
            None => Ok(()),
        }
    }

    fn event(&mut self, letter: char, Event { node, size, .. }: Event) -> io::Result<()> {
        // A sample gets the bytes that it represents: then sums of bytes are right, though numbers of calls are not.
        let size = self.scale.bytes(self.scale.weight(size).bytes);
        let next = self.allocations.len() as u64;
        let number = *self.allocations.entry((node, size)).or_insert(next);
        if number == next {
            writeln!(self.out, "a {size:x} {node:x}")?;
        }
        writeln!(self.out, "{letter} {number:x}")
    }

    /// The number of a string, written on its first use.
    fn string(&mut self, text: &str) -> io::Result<u64> {
        let text = one_line(text);
        if let Some(number) = self.strings.get(&text) {
            return Ok(*number);
        }
        writeln!(self.out, "s {:x} {text}", text.len())?;
        let number = self.strings.len() as u64 + 1;
        self.strings.insert(text, number);
        Ok(number)
    }
}
