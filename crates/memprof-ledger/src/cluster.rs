//! A process and the processes forked from it, such as the workers of a server, with the memory of each.

use std::fs::{self, File};
use std::io::{self, Read};

use serde::Serialize;

use super::process_stat::{self, Stat};
use super::smaps::{self, Mapping};

/// Maximum bytes read of a command line.
const LONGEST_TITLE: u64 = 1 << 16;

/// A process and everything forked from it, directly or not. Sizes are bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Cluster {
    /// The process asked for.
    pub pid: u32,
    /// The process it was forked from, if that still runs.
    pub forked_from: Option<u32>,
    /// PSS of all of them: a page shared by n processes counts 1/n.
    pub pss: u64,
    /// Sum of their RSS: a page shared by n processes counts n times.
    pub rss: u64,
    /// The process itself, then the others by process id.
    pub processes: Vec<Member>,
    /// Other programs that they started, such as a shell.
    pub others: Others,
    /// Processes that ended during the measurement or may not be read. No sum includes them.
    pub skipped: u64,
}

/// A process of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Member {
    /// Process id.
    pub pid: u32,
    /// Process id of its parent.
    pub parent: u32,
    /// Its command line, or the title it gave itself.
    pub name: String,
    /// Resident bytes.
    pub rss: u64,
    /// PSS: a page shared by n processes counts 1/n.
    pub pss: u64,
    /// Part of the RSS that is in no other process.
    pub private: u64,
    /// Part of the RSS shared with other processes.
    pub shared: u64,
    /// Swapped out, so not in the RSS.
    pub swap: u64,
}

/// Programs started by processes of the cluster, but not part of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Others {
    /// Their number.
    pub processes: u64,
    /// Their PSS.
    pub pss: u64,
}

/// Measures a process and everything forked from it.
///
/// # Errors
/// If the process has ended, or belongs to another user.
pub fn cluster(pid: u32) -> io::Result<Cluster> {
    let processes = process_stat::all()?;
    let Some(master) = process_stat::find(&processes, pid) else {
        return Err(ended());
    };
    let first = measure(master)?.ok_or_else(ended)?;
    let mut cluster = Cluster {
        pid,
        forked_from: master.forked_from(&processes).map(|parent| parent.pid),
        pss: first.pss,
        rss: first.rss,
        processes: vec![first],
        ..Cluster::default()
    };
    for process in process_stat::descendants(&processes, pid) {
        match measure(process) {
            Ok(Some(member)) if process.has_program_of(master) => {
                cluster.pss += member.pss;
                cluster.rss += member.rss;
                cluster.processes.push(member);
            }
            Ok(Some(other)) => {
                cluster.others.processes += 1;
                cluster.others.pss += other.pss;
            }
            // A zombie has no memory.
            Ok(None) if process.is_zombie => {}
            Ok(None) | Err(_) => cluster.skipped += 1,
        }
    }
    Ok(cluster)
}

/// The master of a worker: the outermost readable process in its chain of forks.
///
/// # Errors
/// If there is no /proc.
pub fn master_of(pid: u32) -> io::Result<u32> {
    let processes = process_stat::all()?;
    let Some(mut process) = process_stat::find(&processes, pid) else {
        return Err(ended());
    };
    // The list is not a snapshot of one moment, so it may even contain a cycle.
    for _ in 0..processes.len() {
        match process.forked_from(&processes) {
            Some(parent) if matches!(measure(parent), Ok(Some(_))) => process = parent,
            _ => break,
        }
    }
    Ok(process.pid)
}

/// `None` if the process ended while it was read, which leaves little or nothing to read.
fn measure(process: &Stat) -> io::Result<Option<Member>> {
    let directory = format!("/proc/{}", process.pid);
    let mappings = match fs::read(format!("{directory}/smaps")) {
        Ok(text) => smaps::parse(&text),
        Err(error) if has_ended(&error) => return Ok(None),
        Err(error) => return Err(error),
    };
    let name = command(&title(&directory).unwrap_or_default());
    let same = process_stat::of(process.pid)
        .is_some_and(|now| now.started == process.started && !now.is_zombie);
    if !same || mappings.is_empty() {
        return Ok(None);
    }
    let sum = |field: fn(&Mapping) -> u64| mappings.iter().map(field).sum::<u64>();
    let (rss, private) = (sum(|mapping| mapping.rss), sum(|mapping| mapping.private));
    Ok(Some(Member {
        pid: process.pid,
        parent: process.parent,
        name: if name.is_empty() { process.name.clone() } else { name },
        rss,
        pss: sum(|mapping| mapping.pss),
        private,
        shared: rss.saturating_sub(private),
        swap: sum(|mapping| mapping.swap),
    }))
}

/// A process may claim that its command line spans all of its memory (prctl).
fn title(directory: &str) -> io::Result<Vec<u8>> {
    let mut title = Vec::new();
    let file = File::open(format!("{directory}/cmdline"))?;
    file.take(LONGEST_TITLE).read_to_end(&mut title)?;
    Ok(title)
}

/// Arguments are separated by NULs, and a title is padded with them.
fn command(cmdline: &[u8]) -> String {
    let text = String::from_utf8_lossy(cmdline).replace('\0', " ");
    text.trim().to_owned()
}

fn has_ended(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(ESRCH)
}

const ESRCH: i32 = 3;

fn ended() -> io::Error {
    io::Error::from_raw_os_error(ESRCH)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn sums_up_other_programs_apart_from_forked_processes() {
        // This process has threads, so forked processes are tested from Ruby.
        let own = std::process::id();
        if process_stat::of(own).is_none() {
            return;
        }
        let mut sleep = Command::new("sleep").arg("60").stdout(Stdio::null()).spawn().unwrap();
        let found = loop {
            // The child is a copy of this process until it executes its program.
            let found = cluster(own).unwrap();
            let titles = fs::read(format!("/proc/{}/cmdline", sleep.id())).unwrap();
            if command(&titles) == "sleep 60" && found.others.processes > 0 {
                break found;
            }
        };
        assert_eq!(found.pid, own);
        assert_eq!(found.processes[0].pid, own);
        let first = &found.processes[0];
        assert_eq!(first.private + first.shared, first.rss);
        assert!(first.pss <= first.rss && first.private <= first.pss);
        sleep.kill().unwrap();
        // A zombie until it is waited for.
        let after = loop {
            let stat = process_stat::of(sleep.id()).unwrap();
            if stat.is_zombie {
                break cluster(own).unwrap();
            }
        };
        let ids: Vec<u32> = after.processes.iter().map(|member| member.pid).collect();
        assert!(!ids.contains(&sleep.id()), "{after:?}");
        sleep.wait().unwrap();
        let gone = cluster(sleep.id()).unwrap_err();
        assert_eq!(gone.raw_os_error(), Some(ESRCH));
    }

    #[test]
    fn reads_the_beginning_of_a_long_title() {
        let own = process_stat::of(std::process::id());
        if own.is_none() {
            return;
        }
        let arguments = (0..10).map(|_| "x".repeat(100_000));
        let mut shell = Command::new("sh")
            .args(["-c", "read line"])
            .args(arguments)
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let name = loop {
            let stat = process_stat::of(shell.id()).unwrap();
            // Still a copy of this process until it executes its program.
            match measure(&stat) {
                Ok(Some(member)) if member.name.starts_with("sh -c") => break member.name,
                _ => assert!(!stat.is_zombie),
            }
        };
        shell.kill().unwrap();
        shell.wait().unwrap();
        assert_eq!(name.len() as u64, LONGEST_TITLE);
    }

    #[test]
    fn reads_a_title_without_what_follows_it() {
        assert_eq!(
            command(b"puma: cluster worker 0: 11 [app]\0\0\0\0"),
            "puma: cluster worker 0: 11 [app]"
        );
        assert_eq!(command(b"ruby\0-e\0sleep\0"), "ruby -e sleep");
    }
}
