//! Limits on the size of a dump. A few megabytes may decompress to gigabytes, so the size of a file bounds nothing.

use std::io;

const MIB: u64 = 1024 * 1024;

/// Limits for reading a dump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of memory that one record may take while it is read: its text, and 16 for each of its values. Nearly all
    /// records are streamed or small; a String or an Array of gigabytes is not.
    pub record: u64,
    /// Bytes of the dump when decompressed.
    pub total: u64,
}

impl Limits {
    /// For a dump of unknown origin, with this limit on its size. The records of a small dump need little memory.
    pub fn strict(total: u64) -> Limits {
        Limits { record: (total / (16 * MIB)).clamp(64, 512) * MIB, total }
    }

    /// Fails if this many bytes exceed the limit.
    pub(super) fn check(&self, total: u64) -> io::Result<()> {
        if total > self.total {
            return Err(too_large("unpacked, it", self.total));
        }
        Ok(())
    }
}

impl Default for Limits {
    /// For a trusted dump.
    fn default() -> Limits {
        Limits { record: 1024 * MIB, total: u64::MAX }
    }
}

/// The error for a part of a dump that exceeds its limit.
pub(super) fn too_large(what: &str, most: u64) -> io::Error {
    let limit = match most {
        most if most >= MIB && most % MIB == 0 => format!("{} MiB", most / MIB),
        most => format!("{most} bytes"),
    };
    let text = format!("{what} is larger than the limit of {limit}");
    io::Error::new(io::ErrorKind::FileTooLarge, text)
}
