//! The inverse of [`super::encode`].

use super::super::read::{Fallible, Stop};

/// The rest of a block.
#[derive(Clone, Copy)]
pub(super) struct Cursor<'a> {
    bytes: &'a [u8],
}

impl<'a> Cursor<'a> {
    pub fn new(bytes: &'a [u8]) -> Cursor<'a> {
        Cursor { bytes }
    }

    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    #[inline]
    pub fn byte(&mut self) -> Fallible<u8> {
        let (first, rest) = self.bytes.split_first().ok_or(Stop::Broken)?;
        self.bytes = rest;
        Ok(*first)
    }

    #[inline]
    pub fn take(&mut self, count: u64) -> Fallible<&'a [u8]> {
        let count = usize::try_from(count).map_err(|_| Stop::Broken)?;
        let split = self.bytes.split_at_checked(count);
        let (taken, rest) = split.ok_or(Stop::Broken)?;
        self.bytes = rest;
        Ok(taken)
    }

    #[inline]
    pub fn varint(&mut self) -> Fallible<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(Stop::Broken)
    }

    #[inline]
    pub fn zigzag(&mut self) -> Fallible<i64> {
        Ok(unzigzag(self.varint()?))
    }

    /// A varint that fits into a smaller type.
    pub fn number<T: TryFrom<u64>>(&mut self) -> Fallible<T> {
        T::try_from(self.varint()?).map_err(|_| Stop::Broken)
    }

    /// Eight bytes, little-endian.
    pub fn fixed(&mut self) -> Fallible<u64> {
        let bytes = self.take(8)?.try_into().map_err(|_| Stop::Broken)?;
        Ok(u64::from_le_bytes(bytes))
    }

    pub fn bytes(&mut self) -> Fallible<&'a [u8]> {
        let length = self.varint()?;
        self.take(length)
    }

    pub fn text(&mut self) -> Fallible<&'a str> {
        std::str::from_utf8(self.bytes()?).map_err(|_| Stop::Broken)
    }

    #[inline]
    pub fn address(&mut self, base: u64) -> Fallible<u64> {
        let number = self.varint()?;
        if number & super::out::ABSOLUTE != 0 {
            return self.fixed();
        }
        let steps = unzigzag(number >> 1);
        Ok(base.wrapping_add((steps << 3) as u64))
    }
}

fn unzigzag(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}
