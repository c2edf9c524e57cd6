//! The sorted table of functions next to an object's unwinding tables (`.eh_frame_hdr`; Linux Standard Base Core 5.0,
//! 10.6.2).

use std::ops::Range;

/// A copy of an object's table.
pub(super) struct EhFrameHdr {
    /// Address of the original.
    address: usize,
    data: Vec<u8>,
}

const VERSION: u8 = 1;
/// Pointer encodings (DW_EH_PE): a signed 4-byte word, relative to itself or to the table, or an unsigned one.
const SDATA4_RELATIVE_TO_ITSELF: u8 = 0x1b;
const SDATA4_RELATIVE_TO_TABLE: u8 = 0x3b;
const UDATA4: u8 = 0x03;
/// Version and three encodings, the address of `.eh_frame`, and the number of functions.
const HEAD: usize = 12;
/// A function: its start, and its description.
const ENTRY: usize = 8;

impl EhFrameHdr {
    /// None if the table is of a kind that no linker writes.
    pub(super) fn new(address: usize, data: &[u8]) -> Option<EhFrameHdr> {
        let head = data.get(..HEAD)?;
        let expected = [VERSION, SDATA4_RELATIVE_TO_ITSELF, UDATA4, SDATA4_RELATIVE_TO_TABLE];
        if head[..4] != expected {
            return None;
        }
        let count = u32::from_le_bytes(head[8..].try_into().ok()?) as usize;
        let length = HEAD + count.checked_mul(ENTRY)?;
        Some(EhFrameHdr { address, data: data.get(..length)?.to_vec() })
    }

    /// Start of `.eh_frame`.
    pub(super) fn eh_frame(&self) -> usize {
        (self.address + 4).wrapping_add_signed(self.word(4))
    }

    pub(super) fn address(&self) -> usize {
        self.address
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.data
    }

    /// The function around an address: from the last start at or before it to the next one.
    pub(super) fn function(&self, address: usize) -> Option<Range<usize>> {
        let count = (self.data.len() - HEAD) / ENTRY;
        let start = |at: usize| self.address.wrapping_add_signed(self.word(HEAD + at * ENTRY));
        let (mut low, mut high) = (0, count);
        while low < high {
            let middle = low + (high - low) / 2;
            if start(middle) <= address {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        let end = if low < count { start(low) } else { usize::MAX };
        Some(start(low.checked_sub(1)?)..end)
    }

    fn word(&self, at: usize) -> isize {
        let bytes = self.data.get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
        bytes.map_or(0, i32::from_le_bytes) as isize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(functions: &[i32]) -> Vec<u8> {
        let mut data = vec![1, 0x1b, 3, 0x3b];
        data.extend(0x100i32.to_le_bytes());
        data.extend((functions.len() as u32).to_le_bytes());
        for function in functions {
            data.extend(function.to_le_bytes());
            data.extend(0i32.to_le_bytes());
        }
        data
    }

    #[test]
    fn a_function_begins_before_its_addresses() {
        let hdr = EhFrameHdr::new(0x1000, &table(&[-0x800, -0x700, 0x40])).unwrap();
        assert_eq!(hdr.eh_frame(), 0x1104);
        let starts = [0x7ff, 0x800, 0x8ff, 0x900, 0x103f, 0x1040, 0x9999];
        let found = starts.map(|address| hdr.function(address).map(|function| function.start));
        let expected =
            [None, Some(0x800), Some(0x800), Some(0x900), Some(0x900), Some(0x1040), Some(0x1040)];
        assert_eq!(found, expected);
        assert_eq!(hdr.function(0x8ff), Some(0x800..0x900));
    }

    #[test]
    fn no_table_is_read_beyond_its_end() {
        let whole = table(&[1, 2, 3]);
        for length in 0..whole.len() {
            assert!(EhFrameHdr::new(0x1000, &whole[..length]).is_none());
        }
        for at in 0..4 {
            let mut other = whole.clone();
            other[at] ^= 0x40;
            assert!(EhFrameHdr::new(0x1000, &other).is_none());
        }
        let empty = EhFrameHdr::new(0x1000, &table(&[])).unwrap();
        assert_eq!(empty.function(9), None);
    }
}
