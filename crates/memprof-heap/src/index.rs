//! The index: a heap as it was linked and computed, in a file beside the dump.
//!
//! The texts stand first, as they are written while the dump is read. Columns follow, then small tables, then a directory
//! in JSON that says where each part is, with its checksum, and of which dump this is the index. An index whose dump has
//! changed, that another version wrote, that belongs to another user, or that is damaged, is rebuilt.

mod fingerprint;
mod index_reader;
mod index_writer;
mod unfinished;

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::Source;
pub(super) use fingerprint::Fingerprint;
pub(super) use index_reader::read;
pub(super) use index_writer::{begin, write};
pub use unfinished::Unfinished;
pub(super) use unfinished::remove_stale;

/// First bytes of an index, and the last.
const MAGIC: [u8; 8] = *b"mempidx\x89";
/// Changes with anything that an index has or means.
const VERSION: u32 = 8;
/// Where the texts begin.
pub(super) const HEAD: u64 = 16;

/// Where the index of a dump is.
pub fn path_of(dump: &Path) -> PathBuf {
    let mut name = dump.as_os_str().to_owned();
    name.push(".memprof-index");
    name.into()
}

/// Where a part is.
#[derive(Serialize, Deserialize)]
struct Place {
    name: String,
    offset: u64,
    length: u64,
    checksum: u32,
}

/// What stands at the end of an index.
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
