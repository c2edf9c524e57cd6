//! The current part of the text. It moves on at token boundaries, so a line may have any length.

use super::feed::{Feed, HEAD, PAD, Piece};
use super::{Fallible, Stop};

/// Bytes available after [`Window::ensure`], unless the text ends: no key, number or address is longer.
pub(super) const AHEAD: usize = 256;

/// Written by some editors and shells before UTF-8 text.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Text that was read, up to a moving end.
pub(super) struct Window<'o> {
    pub feed: Feed<'o>,
    bytes: Vec<u8>,
    at: usize,
    /// End of the text read so far.
    end: usize,
    /// Up to this position, [`AHEAD`] bytes are available.
    safe: usize,
    over: bool,
    cut: bool,
    /// Bytes that the values of this record take, and their limit.
    held: u64,
    most: u64,
}

impl<'o> Window<'o> {
    /// Begins with a piece that was already read. A record may take at most `most` bytes of memory.
    pub fn new(feed: Feed<'o>, first: Piece, most: u64) -> Fallible<Window<'o>> {
        let mut window = Window {
            feed,
            bytes: vec![0; HEAD + PAD],
            at: HEAD,
            end: HEAD,
            safe: 0,
            over: false,
            cut: false,
            held: 0,
            most,
        };
        window.take(first);
        window.ensure()?;
        if window.starts_with(BYTE_ORDER_MARK) {
            window.skip(BYTE_ORDER_MARK.len());
        }
        Ok(window)
    }

    /// Whether the compressed data is truncated.
    pub fn cut(&self) -> bool {
        self.cut
    }

    /// Whether the text has ended.
    #[inline(always)]
    pub fn is_over(&self) -> bool {
        self.at >= self.end && self.over
    }

    /// Makes [`AHEAD`] bytes available, unless the text ends before.
    #[inline(always)]
    pub fn ensure(&mut self) -> Fallible<()> {
        if self.at <= self.safe {
            return Ok(());
        }
        self.refill()
    }

    #[cold]
    fn refill(&mut self) -> Fallible<()> {
        self.check(0)?;
        while !self.over && self.end - self.at < AHEAD {
            let piece = self.feed.next().map_err(Stop::Input)?;
            self.take(piece);
        }
        Ok(())
    }

    /// Begins a record.
    #[inline(always)]
    pub fn begin(&mut self) {
        self.held = 0;
    }

    /// Counts bytes kept for this record until it is passed on. The limit is checked when more is read.
    #[inline(always)]
    pub fn hold(&mut self, bytes: u64) {
        self.held += bytes;
    }

    /// Fails if this record takes too much memory with this many more bytes.
    pub fn check(&self, more: usize) -> Fallible<()> {
        if self.held + more as u64 > self.most {
            return Err(Stop::TooLarge(self.most));
        }
        Ok(())
    }

    /// Puts the rest of the text before a new piece.
    fn take(&mut self, piece: Piece) {
        match piece {
            Piece::Text { mut bytes, end } => {
                let rest = &self.bytes[self.at..self.end];
                // Never longer than a request that could not be met.
                let start = HEAD - rest.len().min(HEAD);
                bytes[start..HEAD].copy_from_slice(&rest[..HEAD - start]);
                let empty = std::mem::replace(&mut self.bytes, bytes);
                self.feed.recycle(empty);
                self.at = start;
                self.end = end;
                self.safe = (end + 1).saturating_sub(AHEAD);
            }
            Piece::End { cut } => {
                self.over = true;
                self.cut = cut;
                self.safe = usize::MAX;
                // As after any other line, so that no token extends beyond the end.
                self.bytes[self.end] = b'\n';
            }
            _ => {}
        }
    }

    /// The available text from here on.
    #[inline(always)]
    pub fn rest(&self) -> &[u8] {
        self.bytes.get(self.at..self.end).unwrap_or(&[])
    }

    /// The next byte; a line break at the end.
    #[inline(always)]
    pub fn byte(&self) -> u8 {
        self.bytes.get(self.at).copied().unwrap_or(b'\n')
    }

    /// The next bytes, including those after the end.
    #[inline(always)]
    pub fn bytes<const COUNT: usize>(&self) -> Option<&[u8; COUNT]> {
        self.bytes.get(self.at..)?.first_chunk()
    }

    /// Eight bytes, the first in the lowest byte.
    #[inline(always)]
    pub fn eight(&self, ahead: usize) -> u64 {
        let bytes = self.bytes.get(self.at + ahead..);
        let bytes = bytes.and_then(|bytes| bytes.first_chunk());
        bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes))
    }

    #[inline(always)]
    pub fn starts_with(&self, text: &[u8]) -> bool {
        let bytes = self.bytes.get(self.at..self.at + text.len());
        bytes == Some(text)
    }

    #[inline(always)]
    pub fn skip(&mut self, count: usize) {
        self.at += count;
    }

    /// A part of [`rest`](Self::rest), relative to here.
    #[inline(always)]
    pub fn slice(&self, from: usize, to: usize) -> &[u8] {
        self.bytes.get(self.at + from..self.at + to).unwrap_or(&[])
    }

    /// Text before this position, counted back from here.
    #[inline(always)]
    pub fn behind(&self, from: usize, to: usize) -> &[u8] {
        let range = self.at.saturating_sub(from)..self.at.saturating_sub(to);
        self.bytes.get(range).unwrap_or(&[])
    }

    /// Moves past the end of the line; false if the text ended before.
    pub fn skip_line(&mut self) -> Fallible<bool> {
        loop {
            if let Some(place) = memchr::memchr(b'\n', self.rest()) {
                self.at += place + 1;
                return Ok(true);
            }
            self.at = self.at.max(self.end);
            self.ensure()?;
            if self.is_over() {
                return Ok(false);
            }
        }
    }

    /// Appends the rest of the line to `out`, and moves to its end.
    pub fn line(&mut self, out: &mut Vec<u8>) -> Fallible<()> {
        loop {
            let rest = self.rest();
            let end = memchr::memchr(b'\n', rest);
            out.extend_from_slice(&rest[..end.unwrap_or(rest.len())]);
            self.at += end.unwrap_or(rest.len());
            self.check(out.len())?;
            if end.is_some() {
                return Ok(());
            }
            self.ensure()?;
            if self.is_over() {
                return Ok(());
            }
        }
    }
}
