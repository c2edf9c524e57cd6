//! A mapping, and the part of it in the image.

use std::ops::Range;

/// Permissions of a memory range.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// Readable.
    pub read: bool,
    /// Writable.
    pub write: bool,
    /// Executable.
    pub execute: bool,
}

/// A mapping of the process.
#[derive(Clone, Debug)]
pub struct Segment {
    /// First address.
    pub start: u64,
    /// The address of its end.
    pub end: u64,
    /// Bytes stored in the image, from the first address on.
    pub stored: u64,
    /// The offset of these bytes in the file.
    pub offset: u64,
    /// The permissions.
    pub access: Access,
    /// The mapped file, as an index of [`Image::files`](crate::Image::files).
    pub file: Option<u32>,
}

impl Segment {
    /// Bytes of the mapping.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.end - self.start
    }

    /// The range of addresses.
    #[must_use]
    pub fn range(&self) -> Range<u64> {
        self.start..self.end
    }

    /// The addresses of the stored bytes.
    #[must_use]
    pub fn readable(&self) -> Range<u64> {
        self.start..self.start + self.stored
    }

    /// Whether it is writable and not backed by a file.
    #[must_use]
    pub fn is_anonymous(&self) -> bool {
        self.access.write && self.file.is_none()
    }
}
