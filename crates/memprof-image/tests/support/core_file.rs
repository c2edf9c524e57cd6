//! Builds core files from images, and damages them.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU32, Ordering};

use memprof_image::Image;

/// An unlinked file.
pub fn file(bytes: &[u8]) -> File {
    static FILES: AtomicU32 = AtomicU32::new(0);
    let number = FILES.fetch_add(1, Ordering::Relaxed);
    let name = format!("memprof-core-{}-{number}", std::process::id());
    let path = std::env::temp_dir().join(name);
    let mut file =
        File::options().read(true).write(true).create_new(true).open(&path).expect("a file");
    std::fs::remove_file(&path).expect("to remove it");
    file.write_all(bytes).expect("to write it");
    file
}

/// Pseudorandom numbers, the same in each run (xorshift).
pub struct Numbers(pub u64);

impl Numbers {
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit.max(1)
    }
}

/// A core file whose words can be overwritten and restored.
pub struct DamagedCore {
    file: File,
    overwritten: Vec<(u64, [u8; 8])>,
}

impl DamagedCore {
    pub fn new(core: &[u8]) -> DamagedCore {
        DamagedCore { file: file(core), overwritten: Vec::new() }
    }

    pub fn file(&self) -> File {
        self.file.try_clone().expect("a descriptor")
    }

    /// The word at an offset; zero behind the end.
    pub fn word(&self, at: u64) -> u64 {
        let mut word = [0; 8];
        let _ = self.file.read_at(&mut word, at);
        u64::from_le_bytes(word)
    }

    pub fn overwrite(&mut self, at: u64, value: u64) {
        self.overwritten.push((at, self.word(at).to_le_bytes()));
        let bytes = value.to_le_bytes();
        self.file.write_at(&bytes, at).expect("to write");
    }

    pub fn restore(&mut self) {
        for (at, word) in self.overwritten.drain(..).rev() {
            self.file.write_at(&word, at).expect("to write");
        }
    }
}

/// Writable memory of an image as a core file, with a thread whose registers are zero.
pub fn core_of(image: &Image) -> Vec<u8> {
    let mut notes = Vec::new();
    let mut status = vec![0; 112 + 27 * 8 + 8];
    status[32..36].copy_from_slice(&7u32.to_le_bytes());
    note(&mut notes, b"CORE\0\0\0\0", 1, &status);
    note(&mut notes, b"CORE\0\0\0\0", 0x4649_4c45, &files(image));
    let mut segments: Vec<(u64, u64, Vec<u8>)> = Vec::new();
    for segment in image.segments.iter().filter(|segment| segment.access.write) {
        let mut bytes = vec![0; segment.stored as usize];
        let count = image.read(segment.start, &mut bytes);
        // Untouched memory is zero; kernels do not store it either.
        let used = bytes[..count].iter().rposition(|byte| *byte != 0).map_or(0, |at| at + 1);
        bytes.truncate(used.next_multiple_of(4096).min(count));
        segments.push((segment.start, segment.size(), bytes));
    }
    let mut file = vec![0x7f, b'E', b'L', b'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    for half in [4u16, 62] {
        file.extend(half.to_le_bytes());
    }
    file.extend(1u32.to_le_bytes());
    for word in [0u64, 64, 0] {
        file.extend(word.to_le_bytes());
    }
    file.extend(0u32.to_le_bytes());
    for half in [64u16, 56, segments.len() as u16 + 1, 0, 0, 0] {
        file.extend(half.to_le_bytes());
    }
    let mut offset = 64 + 56 * (segments.len() as u64 + 1);
    let header = |file: &mut Vec<u8>, kind: u32, words: [u64; 6]| {
        file.extend(kind.to_le_bytes());
        file.extend(6u32.to_le_bytes());
        words.iter().for_each(|word| file.extend(word.to_le_bytes()));
    };
    let size = notes.len() as u64;
    header(&mut file, 4, [offset, 0, 0, size, 0, 4]);
    offset += size;
    for (start, size, bytes) in &segments {
        header(&mut file, 1, [offset, *start, 0, bytes.len() as u64, *size, 4096]);
        offset += bytes.len() as u64;
    }
    file.extend(notes);
    segments.iter().for_each(|(.., bytes)| file.extend(bytes));
    file
}

fn note(notes: &mut Vec<u8>, name: &[u8; 8], kind: u32, content: &[u8]) {
    for half in [5, content.len() as u32, kind] {
        notes.extend(half.to_le_bytes());
    }
    notes.extend(name);
    notes.extend(content);
    notes.resize(notes.len().next_multiple_of(4), 0);
}

fn files(image: &Image) -> Vec<u8> {
    let mapped: Vec<_> =
        image.segments.iter().filter_map(|segment| Some((segment, segment.file?))).collect();
    let mut content = Vec::new();
    let mut names = Vec::new();
    for word in [mapped.len() as u64, 4096] {
        content.extend(word.to_le_bytes());
    }
    for (segment, file) in mapped {
        for word in [segment.start, segment.end, 0] {
            content.extend(word.to_le_bytes());
        }
        names.extend(image.files[file as usize].as_bytes());
        names.push(0);
    }
    content.extend(names);
    content
}
