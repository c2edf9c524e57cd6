//! The index: a linked heap with its computed values, in a file beside the dump.
//!
//! The texts come first, as they are written while the dump is read. Columns follow, then small tables, then a JSON directory
//! with the place and checksum of each part and a fingerprint of the dump. An index is rebuilt if its dump has changed, another
//! version wrote it, it belongs to another user, or it is damaged.

mod index_reader;
mod index_writer;
mod unfinished;

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::Source;
pub(super) use index_reader::read;
pub(super) use index_writer::{begin, write};
pub use unfinished::Unfinished;
pub(super) use unfinished::remove_stale;

/// First and last bytes of an index.
const MAGIC: [u8; 8] = *b"mempidx\x89";
/// Incremented with any change of the format or its meaning.
const VERSION: u32 = 8;
/// Where the texts begin.
pub(super) const HEAD: u64 = 16;
/// Bytes sampled at each place of a fingerprint.
const SAMPLE: u64 = 4096;
const SAMPLES: u64 = 16;

/// The path of a dump's index.
pub fn path_of(dump: &Path) -> PathBuf {
    let mut name = dump.as_os_str().to_owned();
    name.push(".memprof-index");
    name.into()
}

/// The place of a part.
#[derive(Serialize, Deserialize)]
struct Place {
    name: String,
    offset: u64,
    length: u64,
    checksum: u32,
}

/// The directory at the end of an index.
#[derive(Serialize, Deserialize)]
struct Directory {
    fingerprint: Fingerprint,
    source: Source,
    objects: u32,
    categories: Vec<String>,
    notes: Vec<(u8, String)>,
    texts: (u64, u64),
    places: Vec<Place>,
}

/// Identifies the dump of an index.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Fingerprint {
    length: u64,
    modified: (i64, i64),
    sample: u32,
}

impl Fingerprint {
    /// The fingerprint of a dump: its length, modification time, and a sample of its bytes.
    pub fn of(dump: &File) -> io::Result<Fingerprint> {
        let metadata = dump.metadata()?;
        let length = metadata.len();
        let mut hasher = crc32fast::Hasher::new();
        let mut sample = vec![0; SAMPLE as usize];
        for number in 0..SAMPLES {
            let at = length.saturating_sub(SAMPLE) / (SAMPLES - 1) * number;
            let count = dump.read_at(&mut sample, at)?;
            hasher.update(&sample[..count]);
        }
        Ok(Fingerprint {
            length,
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            sample: hasher.finalize(),
        })
    }
}
