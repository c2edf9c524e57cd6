//! How large a dump may be. Compression makes gigabytes of a few megabytes, so the size of a file bounds nothing.

use std::io;

const MIB: u64 = 1024 * 1024;

/// Bytes that are read of a dump at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of memory that one record may take while it is read: its text, and 16 for each of its values. Nearly all
    /// records are streamed or small; a String or an Array of gigabytes is not.
    pub record: u64,
    /// Bytes of the dump without its compression.
    pub total: u64,
}

impl Limits {
    /// For a dump of unknown origin, which may have so many bytes. Of a small one no record needs much memory.
    pub fn strict(total: u64) -> Limits {
        Limits {
            record: (total / (16 * MIB)).clamp(64, 512) * MIB,
            total,
        }
    }

    /// Fails if so many bytes of a dump are too many.
    pub(super) fn check(&self, total: u64) -> io::Result<()> {
        if total > self.total {
            return Err(too_large("unpacked, it", self.total));
        }
        Ok(())
    }
}

impl Default for Limits {
    /// For a dump that its reader trusts.
    fn default() -> Limits {
        Limits {
            record: 1024 * MIB,
            total: u64::MAX,
        }
    }
}

/// What of a dump is larger than it may be.
pub(super) fn too_large(what: &str, most: u64) -> io::Error {
    let limit = match most {
        most if most >= MIB && most % MIB == 0 => format!("{} MiB", most / MIB),
        most => format!("{most} bytes"),
    };
    let text = format!("{what} is larger than the limit of {limit}");
    io::Error::new(io::ErrorKind::FileTooLarge, text)
}
