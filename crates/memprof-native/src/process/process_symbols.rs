//! Addresses of functions in a process, from the tables of the files that it has mapped.

use std::collections::HashSet;
use std::fs;

use super::error::SnapshotError;
use super::maps::{self, Mapping};

/// The objects that a process has loaded.
pub struct Symbols {
    pid: i32,
    objects: Vec<Object>,
}

struct Object {
    path: String,
    /// What is added to an address in the file's tables.
    bias: u64,
    file: Vec<u8>,
}

const ELF: &[u8] = b"\x7fELF";
/// 64 bits, least significant byte first.
const CLASS: [u8; 2] = [2, 1];
const DYNAMIC_SYMBOLS: u32 = 11;
const LOAD: u32 = 1;
const SYMBOL_BYTES: usize = 24;
#[cfg(target_arch = "x86_64")]
const MACHINE: u16 = 62;
#[cfg(target_arch = "aarch64")]
const MACHINE: u16 = 183;

impl Symbols {
    /// Reads the objects whose file names begin with one of these, and the program itself.
    pub fn of(pid: i32, names: &[&str]) -> Result<Symbols, SnapshotError> {
        let maps = maps::of(pid)?;
        if maps.is_empty() {
            return Err(SnapshotError::NoMemory);
        }
        let program = fs::read_link(format!("/proc/{pid}/exe"))?;
        let program = program.to_string_lossy().into_owned();
        let mut seen = HashSet::new();
        let mut objects = Vec::new();
        for mapping in maps {
            let name = mapping.path.rsplit('/').next().unwrap_or_default();
            let wanted = mapping.path == program || names.iter().any(|one| name.starts_with(one));
            if wanted && mapping.offset == 0 && seen.insert(mapping.path.clone()) {
                objects.extend(object(pid, &mapping));
            }
        }
        let executable = objects.iter().find(|object| object.path == program);
        if executable.is_some_and(|object| half(&object.file, 18) != Some(MACHINE)) {
            return Err(SnapshotError::Foreign);
        }
        Ok(Symbols { pid, objects })
    }

    /// Address of a function or variable that an object exports.
    pub fn find(&self, name: &str) -> Result<u64, SnapshotError> {
        let mut places = self.objects.iter().filter_map(|object| object.find(name));
        places
            .next()
            .ok_or_else(|| SnapshotError::Missing(name.to_owned()))
    }

    /// Copies memory of the process.
    pub fn read(&self, address: u64, bytes: &mut [u8]) -> Result<(), SnapshotError> {
        super::ptrace::read(self.pid, address, bytes)?;
        Ok(())
    }
}

/// The file is read as the process sees it, which may be in a container. A file that was replaced is not there any more,
/// and /proc/PID/map_files has it still; as it has that of a process with a root of its own (chroot), whose maps name it as
/// we see it. Who may not read that takes the file of this name, if both have the same mounts.
fn object(pid: i32, mapping: &Mapping) -> Option<Object> {
    let mapped = format!(
        "/proc/{pid}/map_files/{:x}-{:x}",
        mapping.start, mapping.end
    );
    let file = match mapping.path.ends_with(" (deleted)") {
        true => fs::read(mapped).ok()?,
        false => fs::read(format!("/proc/{pid}/root{}", mapping.path))
            .or_else(|_| fs::read(mapped))
            .ok()
            .or_else(|| {
                let mounts = |pid: &str| fs::read_link(format!("/proc/{pid}/ns/mnt")).ok();
                let same = mounts("self").is_some() && mounts("self") == mounts(&pid.to_string());
                same.then(|| fs::read(&mapping.path).ok()).flatten()
            })?,
    };
    if !file.starts_with(ELF) || file.get(4..6) != Some(&CLASS) {
        return None;
    }
    let first = headers(&file).find(|at| word(&file, *at) == Some(LOAD))?;
    let bias = mapping
        .start
        .wrapping_sub(long(&file, first + 16)? & !0xfff);
    Some(Object {
        path: mapping.path.clone(),
        bias,
        file,
    })
}

impl Object {
    fn find(&self, name: &str) -> Option<u64> {
        let file = &self.file;
        let sections = long(file, 40)? as usize;
        let (size, count) = (usize::from(half(file, 58)?), usize::from(half(file, 60)?));
        let section = |index: usize| sections.checked_add(index.checked_mul(size)?);
        let table = (0..count)
            .filter_map(section)
            .find(|at| word(file, at + 4) == Some(DYNAMIC_SYMBOLS))?;
        let (start, length) = (
            long(file, table + 24)? as usize,
            long(file, table + 32)? as usize,
        );
        let names = long(file, section(word(file, table + 40)? as usize)? + 24)? as usize;
        let symbols = file.get(start..start.checked_add(length)?)?;
        let symbol = symbols.chunks_exact(SYMBOL_BYTES).find(|symbol| {
            half(symbol, 6) != Some(0)
                && word(symbol, 0)
                    .and_then(|at| text(file, names.checked_add(at as usize)?))
                    .is_some_and(|text| text == name.as_bytes())
        })?;
        Some(self.bias.wrapping_add(long(symbol, 8)?))
    }
}

/// Offsets of the program headers.
fn headers(file: &[u8]) -> impl Iterator<Item = usize> {
    let start = long(file, 32).unwrap_or(0) as usize;
    let size = usize::from(half(file, 54).unwrap_or(0));
    let count = usize::from(half(file, 56).unwrap_or(0));
    (0..count).filter_map(move |index| start.checked_add(index * size))
}

fn text(file: &[u8], at: usize) -> Option<&[u8]> {
    let rest = file.get(at..)?;
    rest.split(|byte| *byte == 0).next()
}

fn bytes<const N: usize>(file: &[u8], at: usize) -> Option<[u8; N]> {
    file.get(at..at.checked_add(N)?)?.try_into().ok()
}

fn half(file: &[u8], at: usize) -> Option<u16> {
    bytes(file, at).map(u16::from_le_bytes)
}

fn word(file: &[u8], at: usize) -> Option<u32> {
    bytes(file, at).map(u32::from_le_bytes)
}

fn long(file: &[u8], at: usize) -> Option<u64> {
    bytes(file, at).map(u64::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_a_function_of_libc() {
        let symbols = Symbols::of(std::process::id() as i32, &["libc.so", "libc-"]).unwrap();
        let expected = libc::getppid as *const () as u64;
        assert_eq!(symbols.find("getppid").unwrap(), expected);
        assert!(matches!(
            symbols.find("no_such_function"),
            Err(SnapshotError::Missing(name)) if name == "no_such_function"
        ));
    }

    #[test]
    fn broken_files_have_no_symbols() {
        let file = fs::read("/proc/self/exe").unwrap();
        for length in (0..4096).step_by(7).chain([file.len() / 2]) {
            let object = Object {
                path: String::new(),
                bias: 0,
                file: file[..length].to_vec(),
            };
            assert_eq!(object.find("no_such_function"), None);
        }
    }
}
