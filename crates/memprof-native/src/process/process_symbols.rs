//! Addresses of functions in a process, from the tables used by its loader.
//!
//! They are read from memory without opening files: the process controls what its files are, and they may be gone. It also
//! controls its memory, so each loop has a limit, and address arithmetic wraps around.

use std::fs;
use std::io;

use super::error::SnapshotError;
use super::maps::{self, Mapping};
use super::ptrace;

/// The objects that a process has loaded.
pub struct Symbols {
    pid: i32,
    objects: Vec<Object>,
}

/// Addresses of an object's tables.
struct Object {
    pid: i32,
    /// Added to the addresses in the tables.
    bias: u64,
    symbols: u64,
    strings: u64,
    gnu_hash: Option<u64>,
    hash: Option<u64>,
}

const ELF: [u8; 4] = *b"\x7fELF";
/// 64 bits, least significant byte first.
const CLASS: [u8; 2] = [2, 1];
#[cfg(target_arch = "x86_64")]
const MACHINE: u16 = 62;
#[cfg(target_arch = "aarch64")]
const MACHINE: u16 = 183;

const PT_LOAD: u32 = 1;
const PT_DYNAMIC: u32 = 2;
const PF_X: u32 = 1;
const HEADER_BYTES: u64 = 56;

const DT_NULL: u64 = 0;
const DT_HASH: u64 = 4;
const DT_STRTAB: u64 = 5;
const DT_SYMTAB: u64 = 6;
const DT_GNU_HASH: u64 = 0x6fff_fef5;
const DYNAMIC_BYTES: u64 = 16;

const SYMBOL_BYTES: u64 = 24;

/// Several times the numbers in real processes.
const MOST_OBJECTS: usize = 64;
const MOST_HEADERS: u16 = 128;
const MOST_DYNAMIC: u64 = 512;
const MOST_IN_CHAIN: u64 = 1024;

impl Symbols {
    /// Finds the objects whose file names begin with one of these names, and the program itself.
    pub fn of(pid: i32, names: &[&str]) -> Result<Symbols, SnapshotError> {
        let maps = maps::of(pid)?;
        if maps.is_empty() {
            return Err(SnapshotError::NoMemory);
        }
        let program = fs::read_link(format!("/proc/{pid}/exe"))?;
        let program = program.to_string_lossy();
        let beginnings = maps.iter().filter(|mapping| {
            let name = mapping.path.rsplit('/').next().unwrap_or_default();
            let wanted = mapping.path == program || names.iter().any(|one| name.starts_with(one));
            wanted && mapping.offset == 0
        });
        let mut objects = Vec::new();
        for mapping in beginnings.take(MOST_OBJECTS) {
            if mapping.path == program && sound(is_foreign(pid, mapping.start))? == Some(true) {
                return Err(SnapshotError::Foreign);
            }
            objects.extend(sound(Object::at(pid, mapping.start, &maps))?);
        }
        Ok(Symbols { pid, objects })
    }

    /// Address of a function or variable that an object exports.
    pub fn find(&self, name: &str) -> Result<u64, SnapshotError> {
        for object in &self.objects {
            if let Some(address) = sound(object.find(name.as_bytes()))?.flatten() {
                return Ok(address);
            }
        }
        Err(SnapshotError::Missing(name.to_owned()))
    }

    /// Copies memory of the process.
    pub fn read(&self, address: u64, bytes: &mut [u8]) -> Result<(), SnapshotError> {
        ptrace::read(self.pid, address, bytes)?;
        Ok(())
    }
}

impl Object {
    /// The object whose ELF header is at this address.
    fn at(pid: i32, start: u64, maps: &[Mapping]) -> io::Result<Object> {
        if bytes(pid, start)? != ELF || bytes(pid, start.wrapping_add(4))? != CLASS {
            return Err(damaged());
        }
        let headers = start.wrapping_add(long(pid, start.wrapping_add(32))?);
        let count = half(pid, start.wrapping_add(56))?.min(MOST_HEADERS);
        let (mut first, mut code, mut dynamic) = (None, None, None);
        for index in 0..u64::from(count) {
            let header = entry(headers, index, HEADER_BYTES);
            let address = || long(pid, header.wrapping_add(16));
            match word(pid, header)? {
                PT_LOAD => {
                    first = first.or(Some(address()?));
                    if word(pid, header.wrapping_add(4))? & PF_X != 0 {
                        code = Some(address()?);
                    }
                }
                PT_DYNAMIC => dynamic = Some(address()?),
                _ => {}
            }
        }
        let (Some(first), Some(code), Some(dynamic)) = (first, code, dynamic) else {
            return Err(damaged());
        };
        let bias = start.wrapping_sub(first & !0xfff);
        let code = bias.wrapping_add(code);
        // A program may also have mapped the file just to read it.
        let holds_code = |one: &Mapping| one.executable && (one.start..one.end).contains(&code);
        if !maps.iter().any(holds_code) {
            return Err(damaged());
        }
        Object::with_tables(pid, bias, bias.wrapping_add(dynamic))
    }

    fn with_tables(pid: i32, bias: u64, dynamic: u64) -> io::Result<Object> {
        let (mut symbols, mut strings, mut gnu_hash, mut hash) = (None, None, None, None);
        for index in 0..MOST_DYNAMIC {
            let place = entry(dynamic, index, DYNAMIC_BYTES);
            let table = match long(pid, place)? {
                DT_NULL => break,
                DT_SYMTAB => &mut symbols,
                DT_STRTAB => &mut strings,
                DT_GNU_HASH => &mut gnu_hash,
                DT_HASH => &mut hash,
                _ => continue,
            };
            let value = long(pid, place.wrapping_add(8))?;
            // glibc has added the bias to addresses, musl has not.
            *table = Some(match value < bias {
                true => value.wrapping_add(bias),
                false => value,
            });
        }
        Ok(Object {
            pid,
            bias,
            symbols: symbols.ok_or_else(damaged)?,
            strings: strings.ok_or_else(damaged)?,
            gnu_hash,
            hash,
        })
    }

    fn find(&self, name: &[u8]) -> io::Result<Option<u64>> {
        match (self.gnu_hash, self.hash) {
            (Some(table), _) => self.find_by_gnu_hash(table, name),
            (None, Some(table)) => self.find_by_hash(table, name),
            (None, None) => Ok(None),
        }
    }

    fn find_by_gnu_hash(&self, table: u64, name: &[u8]) -> io::Result<Option<u64>> {
        let hash = name
            .iter()
            .fold(5381u32, |hash, &byte| hash.wrapping_mul(33).wrapping_add(u32::from(byte)));
        let count = word(self.pid, table)?;
        let first = u64::from(word(self.pid, table.wrapping_add(4))?);
        let filter = u64::from(word(self.pid, table.wrapping_add(8))?);
        let buckets = entry(table.wrapping_add(16), filter, 8);
        let chains = entry(buckets, u64::from(count), 4);
        let bucket = hash.checked_rem(count).ok_or_else(damaged)?;
        let start = u64::from(word(self.pid, entry(buckets, u64::from(bucket), 4))?);
        if start < first.max(1) {
            return Ok(None);
        }
        for index in start..start + MOST_IN_CHAIN {
            let link = word(self.pid, entry(chains, index - first, 4))?;
            if link | 1 == hash | 1 {
                if let Some(address) = self.symbol(index, name)? {
                    return Ok(Some(address));
                }
            }
            if link & 1 == 1 {
                break;
            }
        }
        Ok(None)
    }

    fn find_by_hash(&self, table: u64, name: &[u8]) -> io::Result<Option<u64>> {
        let hash = name.iter().fold(0u32, |hash, &byte| {
            let hash = (hash << 4).wrapping_add(u32::from(byte));
            let high = hash & 0xf000_0000;
            (hash ^ (high >> 24)) & !high
        });
        let count = word(self.pid, table)?;
        let buckets = table.wrapping_add(8);
        let chains = entry(buckets, u64::from(count), 4);
        let bucket = hash.checked_rem(count).ok_or_else(damaged)?;
        let mut index = u64::from(word(self.pid, entry(buckets, u64::from(bucket), 4))?);
        for _ in 0..MOST_IN_CHAIN {
            if index == 0 {
                break;
            }
            if let Some(address) = self.symbol(index, name)? {
                return Ok(Some(address));
            }
            index = u64::from(word(self.pid, entry(chains, index, 4))?);
        }
        Ok(None)
    }

    /// Address of the symbol at this index, if it has this name and the object defines it.
    fn symbol(&self, index: u64, name: &[u8]) -> io::Result<Option<u64>> {
        let symbol = entry(self.symbols, index, SYMBOL_BYTES);
        if half(self.pid, symbol.wrapping_add(6))? == 0 {
            return Ok(None);
        }
        let mut text = vec![0; name.len() + 1];
        let place = entry(self.strings, u64::from(word(self.pid, symbol)?), 1);
        // The memory may end after a shorter name.
        let read = sound(ptrace::read(self.pid, place, &mut text))?;
        if read.is_none() || text.strip_suffix(&[0]) != Some(name) {
            return Ok(None);
        }
        let value = long(self.pid, symbol.wrapping_add(8))?;
        Ok(Some(self.bias.wrapping_add(value)))
    }
}

/// Whether a program was built for another processor or word size.
fn is_foreign(pid: i32, start: u64) -> io::Result<bool> {
    let is_own = bytes(pid, start.wrapping_add(4))? == CLASS
        && half(pid, start.wrapping_add(18))? == MACHINE;
    Ok(bytes(pid, start)? == ELF && !is_own)
}

/// Malformed tables report the same error as unmapped addresses.
fn damaged() -> io::Error {
    io::Error::from_raw_os_error(libc::EFAULT)
}

/// None if the data is malformed. Other errors mean that reading is forbidden, or that the process ended.
fn sound<T>(read: io::Result<T>) -> io::Result<Option<T>> {
    match read {
        Err(error) if error.raw_os_error() == Some(libc::EFAULT) => Ok(None),
        read => read.map(Some),
    }
}

/// Address of an entry of a table.
fn entry(table: u64, index: u64, size: u64) -> u64 {
    table.wrapping_add(index.wrapping_mul(size))
}

fn bytes<const N: usize>(pid: i32, address: u64) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    ptrace::read(pid, address, &mut bytes)?;
    Ok(bytes)
}

fn half(pid: i32, address: u64) -> io::Result<u16> {
    bytes(pid, address).map(u16::from_le_bytes)
}

fn word(pid: i32, address: u64) -> io::Result<u32> {
    bytes(pid, address).map(u32::from_le_bytes)
}

fn long(pid: i32, address: u64) -> io::Result<u64> {
    bytes(pid, address).map(u64::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIBC: [&str; 2] = ["libc.so", "libc-"];

    fn own_pid() -> i32 {
        std::process::id() as i32
    }

    #[test]
    fn finds_a_function_of_libc() {
        let symbols = Symbols::of(own_pid(), &LIBC).unwrap();
        let expected = libc::getppid as *const () as u64;
        assert_eq!(symbols.find("getppid").unwrap(), expected);
        assert!(matches!(
            symbols.find("no_such_function"),
            Err(SnapshotError::Missing(name)) if name == "no_such_function"
        ));
    }

    #[test]
    fn finds_a_function_of_another_process_until_it_ends() {
        // SAFETY: the child calls one function that a forked child of a multithreaded program may call.
        let child = unsafe { libc::fork() };
        if child == 0 {
            loop {
                // SAFETY: waits for a signal.
                unsafe { libc::pause() };
            }
        }
        let symbols = Symbols::of(child, &LIBC);
        let found = symbols.as_ref().map(|symbols| symbols.find("getppid"));
        // SAFETY: kills the child and waits for it.
        unsafe {
            libc::kill(child, libc::SIGKILL);
            libc::waitpid(child, std::ptr::null_mut(), 0);
        }
        let expected = libc::getppid as *const () as u64;
        assert_eq!(found.unwrap().unwrap(), expected);
        let found = symbols.unwrap().find("getppid");
        assert!(matches!(found, Err(SnapshotError::Gone)), "{found:?}");
    }

    #[derive(Clone, Copy, PartialEq)]
    enum Table {
        Hash,
        GnuHash,
    }

    const DYNAMIC: u64 = 176;
    const TABLE: u64 = 272;
    const SYMBOLS: u64 = 336;
    const STRINGS: u64 = 408;
    const IMAGE_BYTES: usize = 512;
    /// The value of the function "b" in the image.
    const VALUE: u64 = 0x1234;

    /// An object with the functions "a" and "b", whose hashes share a bucket.
    fn image(kind: Table, bias: u64) -> Vec<u8> {
        let mut image = Vec::new();
        let mut put = |at: u64, bytes: &[u8]| {
            image.resize(at as usize, 0);
            image.extend(bytes);
        };
        put(0, &ELF);
        put(4, &CLASS);
        put(18, &MACHINE.to_le_bytes());
        put(32, &64u64.to_le_bytes());
        put(56, &2u16.to_le_bytes());
        put(64, &PT_LOAD.to_le_bytes());
        put(68, &PF_X.to_le_bytes());
        put(64 + HEADER_BYTES, &PT_DYNAMIC.to_le_bytes());
        put(64 + HEADER_BYTES + 16, &DYNAMIC.to_le_bytes());
        let tag = match kind {
            Table::Hash => DT_HASH,
            Table::GnuHash => DT_GNU_HASH,
        };
        let dynamic = [(tag, TABLE), (DT_SYMTAB, SYMBOLS), (DT_STRTAB, STRINGS)];
        for (index, (tag, value)) in (0..).zip(dynamic) {
            put(entry(DYNAMIC, index, 16), &tag.to_le_bytes());
            put(entry(DYNAMIC, index, 16) + 8, &(bias + value).to_le_bytes());
        }
        let gnu = |name: u32| (5381 * 33 + name) & !1;
        let table = match kind {
            // Buckets, symbols; first of the bucket; next of each.
            Table::Hash => vec![1, 3, 1, 0, 2, 0],
            // Buckets, first symbol, words of the filter, its shift; the filter; first of the bucket; hashes.
            Table::GnuHash => vec![1, 1, 1, 0, 0, 0, 1, gnu(97), gnu(98) | 1],
        };
        for (index, value) in (0..).zip(table) {
            put(entry(TABLE, index, 4), &u32::to_le_bytes(value));
        }
        for (index, name) in [(1, 1u32), (2, 3)] {
            let symbol = entry(SYMBOLS, index, SYMBOL_BYTES);
            put(symbol, &name.to_le_bytes());
            put(symbol + 6, &1u16.to_le_bytes());
            put(symbol + 8, &(VALUE * (index - 1)).to_le_bytes());
        }
        put(STRINGS, b"\0a\0b\0");
        image.resize(IMAGE_BYTES, 0);
        image
    }

    /// Looks for "b" in a copy of the image at the start of a page.
    fn find_in(image: &[u8], page: &mut [u8], executable: bool) -> io::Result<Option<u64>> {
        page[..image.len()].copy_from_slice(image);
        let start = page.as_ptr() as u64;
        let mapping = Mapping {
            start,
            end: start + page.len() as u64,
            executable,
            offset: 0,
            path: String::new(),
        };
        Object::at(own_pid(), start, &[mapping])?.find(b"b")
    }

    fn with_page(check: impl Fn(&mut [u8])) {
        let mut memory = vec![0; 3 * 4096];
        let at = memory.as_ptr().align_offset(4096);
        check(&mut memory[at..at + 4096]);
    }

    #[test]
    fn finds_a_function_by_both_tables_relocated_or_not() {
        with_page(|page| {
            let start = page.as_ptr() as u64;
            for kind in [Table::Hash, Table::GnuHash] {
                for bias in [0, start] {
                    let found = find_in(&image(kind, bias), page, true);
                    assert_eq!(found.unwrap(), Some(start + VALUE));
                    assert!(find_in(&image(kind, bias), page, false).is_err());
                }
            }
        });
    }

    #[test]
    fn damaged_tables_neither_panic_nor_take_long() {
        with_page(|page| {
            let beginning = std::time::Instant::now();
            let start = page.as_ptr() as u64;
            let mut outcomes = [0; 3];
            for kind in [Table::Hash, Table::GnuHash] {
                let whole = image(kind, start);
                let values = [0, 1, 2, 3, 0x7fff_ffff, u32::MAX - 23, u32::MAX].map(u64::from);
                let longs = [1 << 47, 1 << 63, u64::MAX - 7, u64::MAX, start, start + 4095];
                for at in (0..IMAGE_BYTES - 8).step_by(2) {
                    let mut try_with = |bytes: &[u8]| {
                        let mut damaged = whole.clone();
                        damaged[at..at + bytes.len()].copy_from_slice(bytes);
                        outcomes[match find_in(&damaged, page, true) {
                            Ok(Some(_)) => 0,
                            Ok(None) => 1,
                            Err(_) => 2,
                        }] += 1;
                    };
                    for value in values {
                        try_with(&value.to_le_bytes()[..2]);
                        try_with(&value.to_le_bytes()[..4]);
                        try_with(&value.to_le_bytes());
                    }
                    longs.iter().for_each(|long| try_with(&long.to_le_bytes()));
                }
            }
            assert!(outcomes.iter().all(|count| *count > 100), "{outcomes:?}");
            assert!(beginning.elapsed().as_secs() < 60);
        });
    }

    #[test]
    fn chains_without_an_end_are_left() {
        with_page(|page| {
            let mut circle = image(Table::Hash, 0);
            let own = entry(TABLE, 4, 4) as usize;
            circle[own..own + 4].copy_from_slice(&1u32.to_le_bytes());
            assert_eq!(find_in(&circle, page, true).unwrap(), None);
        });
    }
}
