//! A range of addresses of an image, and how much of it is there.

use std::ops::Range;

/// What a process may do with a range of its memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// May be read.
    pub read: bool,
    /// May be written to.
    pub write: bool,
    /// May be executed.
    pub execute: bool,
}

/// A mapping of the process.
#[derive(Clone, Debug)]
pub struct Segment {
    /// First address.
    pub start: u64,
    /// First address behind it.
    pub end: u64,
    /// Bytes that the image has of it, from its first address on.
    pub stored: u64,
    /// Where these bytes are in the file.
    pub offset: u64,
    /// What the process may do with it.
    pub access: Access,
    /// The file that was mapped, as an index of [`Image::files`](crate::Image::files).
    pub file: Option<u32>,
}

impl Segment {
    /// Bytes of the mapping.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.end - self.start
    }

    /// Its addresses.
    #[must_use]
    pub fn range(&self) -> Range<u64> {
        self.start..self.end
    }

    /// The addresses whose bytes the image has.
    #[must_use]
    pub fn readable(&self) -> Range<u64> {
        self.start..self.start + self.stored
    }

    /// Whether the process could write to it, and no file is behind it.
    #[must_use]
    pub fn is_anonymous(&self) -> bool {
        self.access.write && self.file.is_none()
    }
}
