//! `/proc/PID/smaps`: the mappings of a process and the memory of each.

/// A mapping. Sizes are bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mapping {
    pub start: u64,
    pub end: u64,
    /// Such as `rw-p`.
    pub permissions: String,
    /// Path of the file, a name in brackets, or nothing for anonymous memory.
    pub name: String,
    pub rss: u64,
    pub pss: u64,
    /// Resident, and in no other process.
    pub private: u64,
    pub swap: u64,
}

impl Mapping {
    pub fn is_inaccessible(&self) -> bool {
        self.permissions.starts_with("---")
    }

    pub fn is_executable(&self) -> bool {
        self.permissions.contains('x')
    }
}

/// Parses the text of the file; unknown lines are skipped.
pub fn parse(text: &[u8]) -> Vec<Mapping> {
    let mut mappings: Vec<Mapping> = Vec::new();
    for line in text.split(|&byte| byte == b'\n') {
        let line = String::from_utf8_lossy(line);
        if let Some(mapping) = heading(&line) {
            mappings.push(mapping);
        } else if let (Some(mapping), Some((key, value))) =
            (mappings.last_mut(), line.split_once(':'))
        {
            let value = value.trim().strip_suffix(" kB");
            let bytes = value.and_then(|kib| Some(kib.trim().parse::<u64>().ok()? << 10));
            if let Some(bytes) = bytes {
                match key {
                    "Rss" => mapping.rss = bytes,
                    "Pss" => mapping.pss = bytes,
                    "Private_Clean" | "Private_Dirty" => mapping.private += bytes,
                    "Swap" => mapping.swap = bytes,
                    _ => {}
                }
            }
        }
    }
    mappings
}

/// `7f3a1c000000-7f3a1c021000 rw-p 00000000 00:00 0      [heap]`
fn heading(line: &str) -> Option<Mapping> {
    let (start, rest) = line.split_once('-')?;
    let (end, rest) = rest.split_once(' ')?;
    let (permissions, rest) = rest.split_once(' ')?;
    // Offset, device, inode; the name follows after blanks, and may contain blanks.
    let mut rest = rest.splitn(4, ' ').skip(2);
    rest.next()?;
    Some(Mapping {
        start: u64::from_str_radix(start, 16).ok()?,
        end: u64::from_str_radix(end, 16).ok()?,
        permissions: permissions.to_owned(),
        name: rest.next().unwrap_or("").trim_start().to_owned(),
        ..Mapping::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_names_with_blanks_sizes_and_private_pages() {
        let text = b"55d0-55e0 r--p 00000000 fe:01 1311 /opt/my app/\xff.so\n\
            Size:                 16 kB\nRss:                  12 kB\nPss:                   6 kB\n\
            Private_Clean:         4 kB\nPrivate_Dirty:         1 kB\nSwap:                  8 kB\nVmFlags: rd mr mw\n\
            7f00-7f10 rw-p 00000000 00:00 0 \nRss:                   4 kB\n\
            7ffc-7ffd rw-p 00000000 00:00 0                          [stack]\n";
        let mappings = parse(text);
        let names: Vec<&str> = mappings.iter().map(|mapping| &*mapping.name).collect();
        assert_eq!(names, ["/opt/my app/\u{fffd}.so", "", "[stack]"]);
        let first = &mappings[0];
        assert_eq!((first.start, first.end), (0x55d0, 0x55e0));
        assert_eq!(
            (first.rss, first.pss, first.private, first.swap),
            (12 << 10, 6 << 10, 5 << 10, 8 << 10)
        );
        assert_eq!(mappings[1].rss, 4096);
    }

    #[test]
    fn reads_the_mappings_of_this_process() {
        let Ok(text) = std::fs::read("/proc/self/smaps") else {
            return;
        };
        let mappings = parse(&text);
        assert!(mappings.iter().any(|mapping| mapping.name == "[stack]"));
        assert!(mappings.iter().map(|mapping| mapping.rss).sum::<u64>() > 100_000);
    }
}
