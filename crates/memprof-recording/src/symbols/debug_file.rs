//! Finds the file with a library's debugging information, as gdb does.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::elf_file::{Elf, ElfFile, open};

/// The file for a library: by build id, or by its debug link.
pub fn find(library: &Path, elf: &Elf<'_>, debug_files: &Path) -> Option<ElfFile> {
    let id = elf.build_id();
    let by_id = id.and_then(|id| by_build_id(debug_files, id)).and_then(|path| {
        let file = ElfFile::open(&path)?;
        let is_same = file.parse()?.build_id() == id;
        is_same.then_some(file)
    });
    by_id.or_else(|| by_link(library, elf, debug_files))
}

/// `.build-id/ab/cdef.debug`
fn by_build_id(debug_files: &Path, id: &[u8]) -> Option<PathBuf> {
    let (first, rest) = id.split_first()?;
    let mut path = format!(".build-id/{first:02x}/");
    for byte in rest {
        let _ = write!(path, "{byte:02x}");
    }
    path.push_str(".debug");
    Some(debug_files.join(path))
}

fn by_link(library: &Path, elf: &Elf<'_>, debug_files: &Path) -> Option<ElfFile> {
    let (name, expected) = elf.debug_link()?;
    let name = Path::new(OsStr::from_bytes(name));
    // A plain file name, not a path.
    if name.file_name() != Some(name.as_os_str()) {
        return None;
    }
    let directory = library.parent()?;
    let mirrored = debug_files.join(directory.strip_prefix("/").ok()?);
    let mut paths = [directory, &directory.join(".debug"), &mirrored]
        .map(|directory| directory.join(name))
        .into_iter();
    let found = paths.find(|path| path != library && checksum(path) == Some(expected))?;
    ElfFile::open(&found)
}

/// CRC-32 of the file's bytes, as in zip files.
fn checksum(path: &Path) -> Option<u32> {
    let mut file = open(path)?;
    let mut chunk = vec![0_u8; 1 << 16];
    let mut sum = crc32fast::Hasher::new();
    loop {
        let length = file.read(&mut chunk).ok()?;
        if length == 0 {
            return Some(sum.finalize());
        }
        sum.update(&chunk[..length]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn computes_the_checksum_that_objcopy_stores() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        std::fs::write(&path, b"123456789").unwrap();
        assert_eq!(checksum(&path), Some(0xcbf4_3926));
        assert_eq!(checksum(directory.path()), None);
    }

    #[test]
    fn names_the_file_of_a_build() {
        let path = by_build_id(Path::new("/d"), &[0xab, 0x0c, 0xff]).unwrap();
        assert_eq!(path, Path::new("/d/.build-id/ab/0cff.debug"));
        assert_eq!(by_build_id(Path::new("/d"), &[]), None);
    }
}
