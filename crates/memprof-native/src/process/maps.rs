//! The memory mappings of a process.

use std::fs;
use std::io;

/// One line of /proc/PID/maps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// First address.
    pub start: u64,
    /// Address after the last.
    pub end: u64,
    /// Whether the mapping is executable.
    pub executable: bool,
    /// Offset in the file.
    pub offset: u64,
    /// The file, or a name in brackets; empty for memory without a name.
    pub path: String,
}

/// The mappings of a process, by address.
pub fn of(pid: i32) -> io::Result<Vec<Mapping>> {
    let text = fs::read(format!("/proc/{pid}/maps"))?;
    Ok(String::from_utf8_lossy(&text).lines().filter_map(mapping).collect())
}

/// `7f00-7f10 r-xp 00001000 08:01 42    /usr/lib/libc.so.6`
fn mapping(line: &str) -> Option<Mapping> {
    let mut words = line.splitn(6, ' ');
    let (start, end) = words.next()?.split_once('-')?;
    let permissions = words.next()?;
    let offset = words.next()?;
    let path = words.nth(2).unwrap_or_default().trim_start();
    Some(Mapping {
        start: u64::from_str_radix(start, 16).ok()?,
        end: u64::from_str_radix(end, 16).ok()?,
        executable: permissions.as_bytes().get(2) == Some(&b'x'),
        offset: u64::from_str_radix(offset, 16).ok()?,
        path: path.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_lines_with_and_without_a_file() {
        let line = "7f0000001000-7f0000002000 r-xp 00003000 08:01 42                 /usr/lib/a b.so (deleted)";
        let found = mapping(line).unwrap();
        assert_eq!((found.start, found.end), (0x7f00_0000_1000, 0x7f00_0000_2000));
        assert!(found.executable);
        assert_eq!((found.offset, found.path.as_str()), (0x3000, "/usr/lib/a b.so (deleted)"));
        let nameless = mapping("1000-2000 rw-p 00000000 00:00 0 ").unwrap();
        assert_eq!((nameless.executable, nameless.path.as_str()), (false, ""));
        assert_eq!(mapping("no mapping"), None);
    }

    #[test]
    fn finds_the_code_of_this_process() {
        let here = finds_the_code_of_this_process as *const () as u64;
        let maps = of(std::process::id() as i32).unwrap();
        let around = maps.iter().find(|one| (one.start..one.end).contains(&here));
        assert!(around.is_some_and(|one| one.executable));
    }
}
