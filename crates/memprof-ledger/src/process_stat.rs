//! `/proc/PID/stat`: parents of processes, and their programs.

use std::fs;
use std::io;

/// Facts about a process that need no look at its memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stat {
    pub pid: u32,
    pub parent: u32,
    /// Name of the program, at most 15 bytes.
    pub name: String,
    /// Whether it has ended, but was not yet waited for.
    pub is_zombie: bool,
    /// Start time, in ticks since boot.
    pub started: u64,
    /// Start addresses of the program and its stack. The kernel randomizes them on exec, so two processes with the same
    /// addresses are related by fork. `None` if the process may not be read.
    pub program: Option<(u64, u64)>,
}

impl Stat {
    /// Whether both run the same program because one was forked from the other, or both from a third.
    pub fn has_program_of(&self, other: &Stat) -> bool {
        self.program.is_some() && self.program == other.program
    }

    /// The process it was forked from, if that still runs and is in `sorted`.
    pub fn forked_from<'a>(&self, sorted: &'a [Stat]) -> Option<&'a Stat> {
        find(sorted, self.parent).filter(|parent| self.has_program_of(parent))
    }
}

/// All visible processes, by process id.
pub fn all() -> io::Result<Vec<Stat>> {
    let names =
        fs::read_dir("/proc")?.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut all: Vec<Stat> = names.filter_map(|name| of(name.parse().ok()?)).collect();
    all.sort_unstable_by_key(|process| process.pid);
    Ok(all)
}

/// One process; `None` if it doesn't exist.
pub fn of(pid: u32) -> Option<Stat> {
    parse(&String::from_utf8_lossy(&fs::read(format!("/proc/{pid}/stat")).ok()?))
}

pub fn find(sorted: &[Stat], pid: u32) -> Option<&Stat> {
    let index = sorted.binary_search_by_key(&pid, |process| process.pid);
    index.ok().map(|index| &sorted[index])
}

/// Children, their children, and so on, by process id.
pub fn descendants(sorted: &[Stat], pid: u32) -> Vec<&Stat> {
    let mut found: Vec<&Stat> = Vec::new();
    let mut parents = vec![pid];
    while let Some(parent) = parents.pop() {
        for process in sorted.iter().filter(|process| process.parent == parent) {
            // The list is not a snapshot of one moment, so it may even contain a cycle.
            if process.pid != pid && found.iter().all(|known| known.pid != process.pid) {
                found.push(process);
                parents.push(process.pid);
            }
        }
    }
    found.sort_unstable_by_key(|process| process.pid);
    found
}

/// `4711 (a name (with) anything) S 1 ...`, fields as in proc(5).
fn parse(text: &str) -> Option<Stat> {
    let (pid, rest) = text.split_once(" (")?;
    let (name, rest) = rest.rsplit_once(") ")?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let field = |number: usize| fields.get(number - 3).copied();
    let number = |of: usize| field(of).and_then(|text| text.parse::<u64>().ok());
    let program = (number(26).unwrap_or(0), number(28).unwrap_or(0));
    Some(Stat {
        pid: pid.parse().ok()?,
        parent: field(4)?.parse().ok()?,
        name: name.to_owned(),
        is_zombie: matches!(field(3)?, "Z" | "X" | "x"),
        started: number(22)?,
        // For processes that may not be read, the kernel reports 0 or 1.
        program: (program.1 > 1).then_some(program),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(pid: u32, parent: u32) -> Stat {
        Stat { pid, parent, name: String::new(), is_zombie: false, started: 0, program: None }
    }

    #[test]
    fn reads_names_with_anything_in_them() {
        let text = "42 (a) S (b) Z 7 42 42 0 -1 4194304 1 0 0 0 1 2 0 0 20 0 1 0 12345 1000 200 \
            18446744073709551615 94000 95000 140000 0 0";
        let stat = parse(text).unwrap();
        assert_eq!((stat.pid, stat.parent, &*stat.name), (42, 7, "a) S (b"));
        assert!(stat.is_zombie);
        assert_eq!((stat.started, stat.program), (12345, Some((94000, 140000))));
        assert_eq!(parse("42 (cut) S"), None);
        assert_eq!(parse(""), None);
    }

    #[test]
    fn finds_descendants_even_of_a_torn_list() {
        let list = [(1, 0), (5, 1), (6, 5), (7, 5), (8, 7), (9, 1), (10, 11), (11, 10)];
        let list = list.map(|(pid, parent)| process(pid, parent));
        let ids = |pid| -> Vec<u32> {
            let found = descendants(&list, pid);
            found.iter().map(|process| process.pid).collect()
        };
        assert_eq!(ids(5), [6, 7, 8]);
        assert_eq!(ids(10), [11]);
        assert_eq!(find(&list, 8).map(|process| process.parent), Some(7));
        assert!(find(&list, 4).is_none());
    }

    #[test]
    fn reads_this_process() {
        let Some(own) = of(std::process::id()) else {
            return;
        };
        assert!(!own.is_zombie && own.program.is_some());
        assert!(find(&all().unwrap(), own.pid).is_some());
    }
}
