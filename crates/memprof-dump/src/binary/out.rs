//! Bytes of a block on their way.
//!
//! A vector would note its length behind each byte, and the next byte would have to wait for that: a record is two dozen
//! small numbers. So the place is counted here, in a register for as long as a record is written, and memory has
//! room already.

/// Bytes of a window that may be written to, and those of its memory.
const HALF: usize = 64;
const WINDOW: usize = 2 * HALF;

/// Writes to a block. What it has written is kept by [`Out::end`].
pub(super) struct Out<'a> {
    bytes: &'a mut Vec<u8>,
    at: usize,
}

impl<'a> Out<'a> {
    /// Writes behind the first `at` bytes; all that is behind them is room.
    #[inline(always)]
    pub fn new(bytes: &'a mut Vec<u8>, at: usize) -> Out<'a> {
        Out { bytes, at }
    }

    /// Number of bytes that are written.
    #[inline(always)]
    pub fn end(self) -> usize {
        self.at
    }

    /// Room for a few numbers: not more than 64 bytes. They are kept by [`Out::keep`].
    #[inline(always)]
    pub fn window(&mut self) -> Window<'_> {
        Window {
            bytes: self.room(),
            at: 0,
        }
    }

    /// Keeps so many bytes of the last window.
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

    /// Appends eight bytes, the lowest first.
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

    /// Appends a number, seven bits a byte, the lowest first.
    #[inline(always)]
    pub fn varint(&mut self, number: u64) {
        let mut window = self.window();
        window.varint(number);
        let bytes = window.end();
        self.keep(bytes);
    }

    /// Appends a number with a sign; those near zero are short.
    #[inline(always)]
    pub fn zigzag(&mut self, number: i64) {
        let mut window = self.window();
        window.zigzag(number);
        let bytes = window.end();
        self.keep(bytes);
    }

    /// Appends a text or other bytes, and before them their number.
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

    /// Writes what is seldom written, in a function of its own: were the place handed to one that is called, it would be
    /// in memory all the time.
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

/// Room for a few numbers, which is looked for once for all of them.
pub(super) struct Window<'a> {
    bytes: &'a mut [u8; WINDOW],
    at: usize,
}

impl Window<'_> {
    /// Number of bytes that are written.
    #[inline(always)]
    pub fn end(self) -> usize {
        self.at
    }

    /// Appends a byte.
    #[inline(always)]
    pub fn push(&mut self, byte: u8) {
        self.word(byte.into(), 1);
    }

    /// Appends the lowest bytes of a word. All of it is written, whether it is meant or not.
    #[inline(always)]
    fn word(&mut self, word: u64, bytes: usize) {
        debug_assert!(self.at + bytes <= HALF);
        // Within the window whatever `at` is, as the compiler sees, which then need not look.
        let at = self.at % HALF;
        self.bytes[at..at + 8].copy_from_slice(&word.to_le_bytes());
        self.at += bytes;
    }

    /// Appends eight bytes, the lowest first.
    #[inline(always)]
    pub fn fixed(&mut self, word: u64) {
        self.word(word, 8);
    }

    /// As [`Out::varint`].
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

    /// As [`Out::zigzag`].
    #[inline(always)]
    pub fn zigzag(&mut self, number: i64) {
        self.varint((number << 1 ^ number >> 63) as u64);
    }

    /// As [`Out::address`].
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

/// Bit 0 of an address that is written in full.
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

/// The bytes of a number of at most 56 bits, seven bits in each, and how many they are. Each step moves half of what the
/// one before has in a piece: numbers come in any length, and a loop would take the processor by surprise each time.
#[inline(always)]
fn spread(number: u64) -> (u64, usize) {
    let word = number & 0x0fff_ffff | (number & 0x00ff_ffff_f000_0000) << 4;
    let word = word & 0x0000_3fff_0000_3fff | (word & 0x0fff_c000_0fff_c000) << 2;
    let word = word & 0x007f_007f_007f_007f | (word & 0x3f80_3f80_3f80_3f80) << 1;
    let bits = 64 - (number | 1).leading_zeros();
    let bytes = (bits as usize).div_ceil(7);
    // All but the last byte say that one follows.
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
