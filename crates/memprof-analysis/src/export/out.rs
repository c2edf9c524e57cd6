//! Buffered output.

use std::io::{self, Write};

/// Bytes buffered before they are written.
const PIECE: usize = 1 << 18;

/// Text that is written when enough of it is buffered.
pub(super) struct Out<'w> {
    /// The buffer to append to. Call [`Out::flush_if_full`] now and then.
    pub text: Vec<u8>,
    out: &'w mut dyn Write,
}

impl<'w> Out<'w> {
    pub fn new(out: &'w mut dyn Write) -> Out<'w> {
        Out { text: Vec::with_capacity(PIECE + 4096), out }
    }

    /// Appends a text.
    #[inline]
    pub fn push(&mut self, text: &str) {
        self.text.extend_from_slice(text.as_bytes());
    }

    /// Appends a number.
    #[inline]
    pub fn number(&mut self, number: impl itoa::Integer) {
        self.text.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
    }

    /// Appends a text as JSON.
    #[inline]
    pub fn json(&mut self, text: &str) {
        json(&mut self.text, text);
    }

    /// Writes the buffer if it is full.
    #[inline]
    pub fn flush_if_full(&mut self) -> io::Result<()> {
        if self.text.len() < PIECE {
            return Ok(());
        }
        self.finish()
    }

    /// Writes the rest.
    pub fn finish(&mut self) -> io::Result<()> {
        self.out.write_all(&self.text)?;
        self.text.clear();
        Ok(())
    }
}

/// Appends a text as JSON.
#[inline]
pub(super) fn json(out: &mut Vec<u8>, text: &str) {
    serde_json::to_writer(&mut *out, text).expect("a vector takes all that is written to it");
}
