//! Identifies the dump of an index.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};

use serde::{Deserialize, Serialize};

/// Bytes sampled at each place of a fingerprint.
const SAMPLE: u64 = 4096;
const SAMPLES: u64 = 16;

/// Identifies the dump of an index.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in super::super) struct Fingerprint {
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
