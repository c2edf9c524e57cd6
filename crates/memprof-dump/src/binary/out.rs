//! Writes the bytes of a block.
//!
//! A vector would update its length after each byte, and the next byte would have to wait for that: a record has two dozen
//! small numbers. So the position is counted here, in a register while a record is written, and the memory is reserved in
//! advance.

/// Writable bytes of a window, and those of its memory.
const HALF: usize = 64;
const WINDOW: usize = 2 * HALF;

/// Writes to a block. [`Out::end`] commits the output.
pub(super) struct Out<'a> {
    bytes: &'a mut Vec<u8>,
    at: usize,
}

impl<'a> Out<'a> {
    /// Writes after the first `at` bytes; the rest is free room.
    #[inline(always)]
    pub fn new(bytes: &'a mut Vec<u8>, at: usize) -> Out<'a> {
        Out { bytes, at }
    }

    /// Number of bytes written.
    #[inline(always)]
    pub fn end(self) -> usize {
        self.at
    }

    /// Room for a few numbers, at most 64 bytes. [`Out::keep`] commits them.
    #[inline(always)]
    pub fn window(&mut self) -> Window<'_> {
        Window { bytes: self.room(), at: 0 }
    }

    /// Commits this many bytes of the last window.
    #[inline(always)]
    pub fn keep(&mut self, bytes: usize) {
        self.at += bytes;
    }

    /// Appends a byte.
    #[inline(always)]
    pub fn push(&mut self, byte: u8) {
        let mut window = self.window();
        window.push(byte);
        let bytes = window.end();
        self.keep(bytes);
    }

    /// Appends eight bytes, little-endian.
    #[inline(always)]
    pub fn fixed(&mut self, word: u64) {
        let mut window = self.window();
        window.fixed(word);
        let bytes = window.end();
        self.keep(bytes);
    }

    /// Appends bytes as they are.
    #[inline(always)]
    pub fn raw(&mut self, bytes: &[u8]) {
        let end = self.at + bytes.len();
        if end > self.bytes.len() {
            grow(self.bytes, end);
        }
        self.bytes[self.at..end].copy_from_slice(bytes);
        self.at = end;
    }

    /// Appends a number, seven bits per byte, lowest first.
    #[inline(always)]
    pub fn varint(&mut self, number: u64) {
        let mut window = self.window();
        window.varint(number);
        let bytes = window.end();
        self.keep(bytes);
    }

    /// Appends a signed number; those near zero are short.
    #[inline(always)]
    pub fn zigzag(&mut self, number: i64) {
        let mut window = self.window();
        window.zigzag(number);
        let bytes = window.end();
        self.keep(bytes);
    }

    /// Appends a text or other bytes, preceded by their number.
    #[inline(always)]
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.varint(bytes.len() as u64);
        self.raw(bytes);
    }

    /// Appends an address as its distance from another, in steps of 8.
    #[inline(always)]
    pub fn address(&mut self, address: u64, base: u64) {
        let mut window = self.window();
        window.address(address, base);
        let bytes = window.end();
        self.keep(bytes);
    }

    /// Runs rare writes in a separate function: passing the position to a called function would keep it in memory all the
    /// time.
    #[inline(always)]
    pub fn apart(&mut self, write: impl FnOnce(&mut Out<'_>)) {
        self.at = apart(self.bytes, self.at, write);
    }

    /// Room for a window.
    #[inline(always)]
    fn room(&mut self) -> &mut [u8; WINDOW] {
        if self.bytes.len() < self.at + WINDOW {
            grow(self.bytes, self.at + WINDOW);
        }
        match self.bytes[self.at..].first_chunk_mut() {
            Some(room) => room,
            None => unreachable!("room was made"),
        }
    }
}

/// Room for a few numbers, checked once for all of them.
pub(super) struct Window<'a> {
    bytes: &'a mut [u8; WINDOW],
    at: usize,
}

impl Window<'_> {
    /// Number of bytes written.
    #[inline(always)]
    pub fn end(self) -> usize {
        self.at
    }

    /// Appends a byte.
    #[inline(always)]
    pub fn push(&mut self, byte: u8) {
        self.word(byte.into(), 1);
    }

    /// Appends the lowest bytes of a word. Writes the whole word regardless.
    #[inline(always)]
    fn word(&mut self, word: u64, bytes: usize) {
        debug_assert!(self.at + bytes <= HALF);
        // The mask shows the compiler that `at` is inside the window, without a bounds check.
        let at = self.at % HALF;
        self.bytes[at..at + 8].copy_from_slice(&word.to_le_bytes());
        self.at += bytes;
    }

    /// Appends eight bytes, little-endian.
    #[inline(always)]
    pub fn fixed(&mut self, word: u64) {
        self.word(word, 8);
    }

    /// Like [`Out::varint`].
    #[inline(always)]
    pub fn varint(&mut self, number: u64) {
        if number < 0x80 {
            return self.word(number, 1);
        }
        let mut number = number;
        while number >> 56 != 0 {
            self.push(number as u8 | 0x80);
            number >>= 7;
        }
        let (word, bytes) = spread(number);
        self.word(word, bytes);
    }

    /// Like [`Out::zigzag`].
    #[inline(always)]
    pub fn zigzag(&mut self, number: i64) {
        self.varint((number << 1 ^ number >> 63) as u64);
    }

    /// Like [`Out::address`].
    #[inline(always)]
    pub fn address(&mut self, address: u64, base: u64) {
        let distance = address.wrapping_sub(base) as i64;
        if distance & 7 == 0 {
            let steps = distance >> 3;
            self.varint(((steps << 1 ^ steps >> 63) as u64) << 1);
        } else {
            self.varint(ABSOLUTE);
            self.fixed(address);
        }
    }
}

/// Bit 0 of an address written in full.
pub(super) const ABSOLUTE: u64 = 1;

#[cold]
#[inline(never)]
fn apart(bytes: &mut Vec<u8>, at: usize, write: impl FnOnce(&mut Out<'_>)) -> usize {
    let mut out = Out::new(bytes, at);
    write(&mut out);
    out.end()
}

#[cold]
#[inline(never)]
fn grow(bytes: &mut Vec<u8>, length: usize) {
    bytes.resize(length + length / 2, 0);
}

/// The bytes of a number of at most 56 bits, seven bits each, and their number. Each step halves the pieces of the previous
/// one: numbers have any length, and a loop would be mispredicted each time.
#[inline(always)]
fn spread(number: u64) -> (u64, usize) {
    let word = number & 0x0fff_ffff | (number & 0x00ff_ffff_f000_0000) << 4;
    let word = word & 0x0000_3fff_0000_3fff | (word & 0x0fff_c000_0fff_c000) << 2;
    let word = word & 0x007f_007f_007f_007f | (word & 0x3f80_3f80_3f80_3f80) << 1;
    let bits = 64 - (number | 1).leading_zeros();
    let bytes = (bits as usize).div_ceil(7);
    // All bytes but the last have the continuation bit.
    let follows = 0x0080_8080_8080_8080 & !(u64::MAX << (8 * (bytes - 1)));
    (word | follows, bytes)
}

#[cfg(test)]
mod tests {
    use super::super::decode::Cursor;
    use super::*;

    #[test]
    fn numbers_of_every_length_come_back() {
        let powers = (0..64).flat_map(|bit| [(1u64 << bit) - 1, 1 << bit]);
        for number in powers.chain([u64::MAX]) {
            let mut bytes = Vec::new();
            let mut out = Out::new(&mut bytes, 0);
            out.varint(number);
            let end = out.end();
            let length = (64 - (number | 1).leading_zeros()).div_ceil(7);
            assert_eq!(end, length as usize, "{number:#x}");
            assert_eq!(Cursor::new(&bytes[..end]).varint().ok(), Some(number));
        }
    }
}
