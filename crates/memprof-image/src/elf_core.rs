//! ELF core files, as written by the kernel and gdb's gcore.

use std::fs::File;
use std::sync::Mutex;

use object::elf::{self, FileHeader64};
use object::read::elf::{FileHeader, ProgramHeader};
use object::{Endianness, ReadCache, ReadRef};

use crate::error::{Error, unreadable};
use crate::image::{Image, Machine, WORD};
use crate::notes::Notes;
use crate::segment::{Access, Segment};

/// Notes take some hundred bytes per thread and mapping.
const MAX_NOTES: u64 = 1 << 28;
/// The limit of program addresses; the kernel's vsyscall page is above it.
const MAX_ADDRESS: u64 = 1 << 48;

impl Image {
    /// Opens a core file.
    ///
    /// # Errors
    /// If it cannot be read, is not a core file, or is of an unsupported processor.
    pub fn of_core(file: File) -> Result<Image, Error> {
        let length = file.metadata()?.len();
        let cache = ReadCache::new(&file);
        let (machine, mut segments, notes) = parsed(&cache, length)?;
        let missing = (segments.iter_mut()).map(|segment| cut(segment, length)).sum();
        segments.sort_unstable_by_key(|segment| segment.start);
        // Overlapping segments are damaged: each address has one meaning.
        segments.dedup_by(|later, earlier| later.start < earlier.end);
        drop(cache);
        let mut image = Image {
            source: file,
            recent: Mutex::default(),
            segments,
            machine,
            missing,
            files: notes.files,
            threads: notes.threads,
            command: notes.command,
            pid: notes.pid,
            signal: notes.signal,
        };
        for (range, file) in notes.mapped {
            let first = (image.segments).partition_point(|segment| segment.start < range.start);
            for segment in &mut image.segments[first..] {
                if segment.end > range.end {
                    break;
                }
                segment.file = Some(file);
            }
        }
        Ok(image)
    }
}

fn parsed<'d>(
    data: impl ReadRef<'d>,
    length: u64,
) -> Result<(Machine, Vec<Segment>, Notes), Error> {
    let ident = data.read_bytes_at(0, 16).unwrap_or_default();
    if !ident.starts_with(&elf::ELFMAG) {
        return unreadable("this is not an ELF core file");
    }
    if ident[4] != elf::ELFCLASS64.0 || ident[5] != elf::ELFDATA2LSB.0 {
        return unreadable(
            "this is a core file of another architecture; 64-bit, little endian is read",
        );
    }
    let header = FileHeader64::<Endianness>::parse(data)?;
    let endian = header.endian()?;
    if header.e_type(endian) != elf::ET_CORE {
        return unreadable("this is an ELF file, but no core file");
    }
    let machine = match header.e_machine(endian) {
        elf::EM_X86_64 => Machine::X86_64,
        elf::EM_AARCH64 => Machine::Aarch64,
        other => {
            return unreadable(format!(
                "this is a core file of machine {}; x86-64 and aarch64 are read",
                other.0
            ));
        }
    };
    let mut segments = Vec::new();
    let mut notes = Notes::default();
    for program in header.program_headers(endian, data)? {
        let (start, size) = (program.p_vaddr(endian), program.p_memsz(endian));
        let (offset, stored) = (program.p_offset(endian), program.p_filesz(endian));
        match program.p_type(endian) {
            elf::PT_NOTE if stored <= MAX_NOTES.min(length) && offset <= length - stored => {
                let Some(mut each) = program.notes(endian, data)? else {
                    continue;
                };
                while let Some(note) = each.next()? {
                    notes.add(note.n_type(endian), note.name(), note.desc(), machine);
                }
            }
            elf::PT_LOAD
                if size > 0 && start.checked_add(size).is_some_and(|end| end <= MAX_ADDRESS) =>
            {
                let flags = program.p_flags(endian);
                segments.push(Segment {
                    start,
                    end: start + size,
                    stored: stored.min(size),
                    offset,
                    access: Access {
                        read: flags.0 & elf::PF_R.0 != 0,
                        write: flags.0 & elf::PF_W.0 != 0,
                        execute: flags.0 & elf::PF_X.0 != 0,
                    },
                    file: None,
                });
            }
            _ => {}
        }
    }
    if segments.is_empty() {
        return unreadable("this core file contains no memory");
    }
    Ok((machine, segments, notes))
}

/// Cuts a segment to the bytes in the file, and returns how many are missing.
fn cut(segment: &mut Segment, length: u64) -> u64 {
    let there = length.saturating_sub(segment.offset) & !(WORD - 1);
    let missing = segment.stored.saturating_sub(there);
    segment.stored -= missing;
    missing
}
