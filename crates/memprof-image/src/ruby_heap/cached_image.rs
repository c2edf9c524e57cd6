//! An image with a cache for scattered reads.

use std::cell::RefCell;

use crate::image::Image;
use crate::recent::Recent;

/// An image with the parts that one reader read last: unlike those of [`Image::word`], they need no lock.
pub(crate) struct CachedImage<'i> {
    image: &'i Image,
    recent: RefCell<Recent>,
}

impl<'i> CachedImage<'i> {
    pub fn new(image: &'i Image) -> CachedImage<'i> {
        CachedImage { image, recent: RefCell::default() }
    }

    /// The word at an address, if the image has it.
    pub fn word(&self, address: u64) -> Option<u64> {
        self.recent.borrow_mut().word(self.image, address)
    }

    /// Four bytes at an address.
    pub fn half(&self, address: u64) -> Option<u32> {
        Some(self.word(address)? as u32)
    }

    /// Fills the buffer with bytes from an address on. Returns false if the image lacks some of them.
    pub fn bytes(&self, address: u64, length: usize, buffer: &mut Vec<u8>) -> bool {
        // Prevents an absurd length from exhausting memory.
        let there = self.image.segment(address).map(|segment| {
            let end = segment.readable().end;
            usize::try_from(end.saturating_sub(address)).unwrap_or(usize::MAX)
        });
        if length > 0 && there.is_none_or(|there| there < length) {
            buffer.clear();
            return false;
        }
        self.recent.borrow_mut().bytes(self.image, address, length, buffer);
        buffer.len() == length
    }

    /// A zero-terminated text up to a maximum length.
    pub fn c_string(&self, address: u64, most: usize) -> Option<String> {
        let mut bytes = Vec::new();
        for at in (address..).take(most + 1) {
            match self.word(at)? as u8 {
                0 => return String::from_utf8(bytes).ok(),
                byte => bytes.push(byte),
            }
        }
        None
    }
}
