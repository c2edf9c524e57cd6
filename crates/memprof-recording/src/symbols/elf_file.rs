//! Reads parts of an ELF file, which may be large, on demand.

use std::borrow::Cow;
use std::cell::Cell;
use std::fs::{File, OpenOptions};
use std::io::Read;
use std::ops::Range;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use object::elf::{self, FileHeader64, Sym64};
use object::read::StringTable;
use object::read::elf::{
    CompressionHeader, FileHeader, ProgramHeader, SectionHeader, SectionTable, Sym,
};
use object::{Endianness, ReadCache, ReadRef};
use rustc_hash::FxHashMap;

/// Limit for a symbol or line table. A browser has 20 MB.
const MOST_BYTES: u64 = 1 << 28;
/// Limit for all reads of a file: a recording may refer to a maliciously damaged one.
pub const MOST_BYTES_OF_FILE: u64 = 1 << 30;
/// Opening a pipe doesn't block. Linux has this value on all architectures that memprof supports.
#[cfg(target_os = "linux")]
const NONBLOCK: i32 = 0o4000;
#[cfg(not(target_os = "linux"))]
const NONBLOCK: i32 = 4;
const PAGE: u64 = 4096;

type Header = FileHeader64<Endianness>;
type Data<'d> = &'d ElfFile;

/// An open file.
pub struct ElfFile {
    cache: ReadCache<File>,
    /// Bytes that may still be read.
    left: Cell<u64>,
}

impl<'d> ReadRef<'d> for &'d ElfFile {
    fn len(self) -> Result<u64, ()> {
        (&self.cache).len()
    }

    fn read_bytes_at(self, offset: u64, size: u64) -> Result<&'d [u8], ()> {
        self.left.set(self.left.get().checked_sub(size).ok_or(())?);
        self.cache.read_bytes_at(offset, size)
    }

    fn read_bytes_at_until(self, range: Range<u64>, delimiter: u8) -> Result<&'d [u8], ()> {
        self.cache.read_bytes_at_until(range, delimiter)
    }
}

/// The parsed headers of a file.
pub struct Elf<'d> {
    data: Data<'d>,
    endian: Endianness,
    header: &'d Header,
    sections: SectionTable<'d, Header, Data<'d>>,
}

/// A function.
pub struct Symbol<'d> {
    /// Start address, in the file's address space.
    pub start: u64,
    /// Size in bytes.
    pub size: u64,
    place: u32,
    names: StringTable<'d, Data<'d>>,
}

impl Symbol<'_> {
    pub fn name(&self) -> String {
        let name = self.names.get(self.place).unwrap_or_default();
        String::from_utf8_lossy(name).into_owned()
    }
}

/// None if it cannot be read, or is not a regular file. Checked before opening, which has side effects on devices, and again
/// afterwards, as the file may have been replaced.
pub fn open(path: &Path) -> Option<File> {
    if !path.metadata().ok()?.is_file() {
        return None;
    }
    let mut options = OpenOptions::new();
    let file = options.read(true).custom_flags(NONBLOCK).open(path).ok()?;
    file.metadata().ok()?.is_file().then_some(file)
}

impl ElfFile {
    /// None if it cannot be read, or is not a regular file.
    pub fn open(path: &Path) -> Option<ElfFile> {
        Some(ElfFile { cache: ReadCache::new(open(path)?), left: Cell::new(MOST_BYTES_OF_FILE) })
    }

    /// None if it is not a 64-bit ELF file.
    pub fn parse(&self) -> Option<Elf<'_>> {
        let data = self;
        let header = Header::parse(data).ok()?;
        let endian = header.endian().ok()?;
        let sections = header.sections(endian, data).ok()?;
        Some(Elf { data, endian, header, sections })
    }
}

impl<'d> Elf<'d> {
    /// Base address of the first loaded segment, without relocation.
    pub fn base(&self) -> Option<u64> {
        let segments = self.header.program_headers(self.endian, self.data).ok()?;
        let loaded = segments.iter().filter(|segment| segment.p_type(self.endian) == elf::PT_LOAD);
        let first = loaded.map(|segment| segment.p_vaddr(self.endian)).min()?;
        Some(first / PAGE * PAGE)
    }

    /// Whether it exports these names at these addresses.
    pub fn exports(&self, all: &FxHashMap<u64, &str>) -> bool {
        let (names, symbols) = self.symbols(elf::SHT_DYNSYM).unwrap_or_default();
        all.iter().all(|(start, name)| {
            symbols.iter().any(|symbol| {
                symbol.st_value(self.endian) == *start
                    && symbol.name(self.endian, names) == Ok(name.as_bytes())
            })
        })
    }

    /// Calls `visit` with every function of the symbol table, if it has one: global ones first.
    pub fn each_function(&self, mut visit: impl FnMut(Symbol<'d>)) -> Option<()> {
        let (names, symbols) = self.symbols(elf::SHT_SYMTAB)?;
        for local in [false, true] {
            for symbol in symbols {
                let is_function = symbol.st_type() == elf::STT_FUNC
                    && symbol.st_shndx(self.endian) != elf::SHN_UNDEF;
                if is_function && (symbol.st_bind() == elf::STB_LOCAL) == local {
                    visit(Symbol {
                        start: symbol.st_value(self.endian),
                        size: symbol.st_size(self.endian),
                        place: symbol.st_name(self.endian),
                        names,
                    });
                }
            }
        }
        Some(())
    }

    /// The build id, which is the same in the file of debugging information.
    pub fn build_id(&self) -> Option<&'d [u8]> {
        self.sections.iter().find_map(|section| {
            let mut notes = section.notes(self.endian, self.data).ok()??;
            while let Ok(Some(note)) = notes.next() {
                if note.name() == elf::ELF_NOTE_GNU
                    && note.n_type(self.endian) == elf::NT_GNU_BUILD_ID
                {
                    return Some(note.desc());
                }
            }
            None
        })
    }

    /// Name and checksum of the file with its debugging information.
    pub fn debug_link(&self) -> Option<(&'d [u8], u32)> {
        let (_, section) = (self.sections).section_by_name(self.endian, b".gnu_debuglink")?;
        let bytes = section.data(self.endian, self.data).ok()?;
        let name = bytes.split(|&byte| byte == 0).next()?;
        let checksum = bytes.get((name.len() + 1).next_multiple_of(4)..)?.first_chunk()?;
        Some((name, u32::from_le_bytes(*checksum)))
    }

    /// Whether it has a line table.
    pub fn has_lines(&self) -> bool {
        self.sections
            .section_by_name(self.endian, b".debug_line")
            .is_some_and(|(_, section)| section.sh_type(self.endian) != elf::SHT_NOBITS)
    }

    /// The bytes of a section, decompressed if necessary.
    pub fn section(&self, name: &[u8]) -> Option<Cow<'d, [u8]>> {
        let (_, section) = self.sections.section_by_name(self.endian, name)?;
        let Some((header, offset, length)) = section.compression(self.endian, self.data).ok()?
        else {
            let is_fit = section.sh_size(self.endian) <= MOST_BYTES;
            return is_fit.then(|| section.data(self.endian, self.data).ok().map(Cow::Borrowed))?;
        };
        let size = header.ch_size(self.endian);
        if size > MOST_BYTES {
            return None;
        }
        let packed = self.data.read_bytes_at(offset, length).ok()?;
        let mut bytes = Vec::new();
        match header.ch_type(self.endian) {
            elf::ELFCOMPRESS_ZLIB => {
                flate2::read::ZlibDecoder::new(packed).take(size).read_to_end(&mut bytes)
            }
            elf::ELFCOMPRESS_ZSTD => {
                zstd::Decoder::new(packed).ok()?.take(size).read_to_end(&mut bytes)
            }
            _ => return None,
        }
        .ok()?;
        Some(Cow::Owned(bytes))
    }

    fn symbols(
        &self,
        kind: elf::SectionType,
    ) -> Option<(StringTable<'d, Data<'d>>, &'d [Sym64<Endianness>])> {
        let mut sections = self.sections.iter();
        let section = sections.find(|section| section.sh_type(self.endian) == kind)?;
        if section.sh_size(self.endian) > MOST_BYTES {
            return None;
        }
        let table = self.sections.symbols(self.endian, self.data, kind).ok()?;
        Some((table.strings(), table.symbols()))
    }
}
