//! The lines of a file, one by one.

use std::borrow::Cow;
use std::io::{self, Read};

/// Bytes read at once.
const WINDOW: usize = 1 << 18;
/// Requests are never larger: a longer line is not a request.
const LONGEST: usize = 1 << 24;

/// Reads lines.
pub struct Lines<R> {
    input: R,
    buffer: Vec<u8>,
    /// Start of the next line in the buffer, and end of the data.
    begin: usize,
    end: usize,
    /// Bytes that were read.
    pub done: u64,
}

/// A line.
pub enum Found<'l> {
    Text(Cow<'l, str>),
    /// The line was skipped.
    TooLong,
}

impl<R: Read> Lines<R> {
    pub fn new(input: R) -> Lines<R> {
        Lines { input, buffer: vec![0; WINDOW], begin: 0, end: 0, done: 0 }
    }

    /// The next line without its line feed, its offset, and that of the following line; `None` at the end.
    pub fn next(&mut self) -> io::Result<Option<(Found<'_>, u64, u64)>> {
        let offset = self.position();
        let mut searched = self.begin;
        let mut too_long = false;
        loop {
            let new = &self.buffer[searched..self.end];
            if let Some(length) = memchr::memchr(b'\n', new) {
                let line = self.begin..searched + length;
                self.begin = line.end + 1;
                return Ok(Some((self.found(line, too_long), offset, self.position())));
            }
            if self.end - self.begin > LONGEST {
                too_long = true;
                self.begin = self.end;
            }
            self.make_room();
            searched = self.end;
            let count = self.fill()?;
            if count == 0 {
                let line = self.begin..self.end;
                self.begin = self.end;
                let last = too_long || !line.is_empty();
                return Ok(last.then(|| (self.found(line, too_long), offset, self.done)));
            }
        }
    }

    /// Offset of the next line in the input.
    fn position(&self) -> u64 {
        self.done - (self.end - self.begin) as u64
    }

    /// Moves the remaining data to the start of the buffer; grows the buffer if it is full.
    fn make_room(&mut self) {
        self.buffer.copy_within(self.begin..self.end, 0);
        self.end -= self.begin;
        self.begin = 0;
        if self.end == self.buffer.len() {
            self.buffer.resize(self.end * 2, 0);
        }
    }

    fn fill(&mut self) -> io::Result<usize> {
        loop {
            match self.input.read(&mut self.buffer[self.end..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
                Ok(count) => {
                    self.end += count;
                    self.done += count as u64;
                    return Ok(count);
                }
            }
        }
    }

    fn found(&self, line: std::ops::Range<usize>, too_long: bool) -> Found<'_> {
        if too_long {
            return Found::TooLong;
        }
        Found::Text(String::from_utf8_lossy(&self.buffer[line]))
    }
}
