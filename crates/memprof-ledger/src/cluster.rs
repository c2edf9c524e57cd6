//! A process and those that it has forked, such as the workers of a server, with the memory of each.

use std::fs::{self, File};
use std::io::{self, Read};

use serde::Serialize;

use super::process_stat::{self, Stat};
use super::smaps::{self, Mapping};

/// Bytes of a command line that are read.
const LONGEST_TITLE: u64 = 1 << 16;

/// A process and all that were forked from it, directly or not. Sizes are bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Cluster {
    /// The process that was asked for.
    pub pid: u32,
    /// The process that it was itself forked from, if that still runs.
    pub forked_from: Option<u32>,
    /// What all of them take, in which a page that n processes share counts 1/n.
    pub pss: u64,
    /// The sum of their RSS, which counts such a page n times.
    pub rss: u64,
    /// The process itself, then the others by process id.
    pub processes: Vec<Member>,
    /// Other programs that they have started, such as a shell.
    pub others: Others,
    /// Processes that ended while they were measured, or may not be read. They are in no sum.
    pub skipped: u64,
}

/// A process of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Member {
    /// Process id.
    pub pid: u32,
    /// Its parent's.
    pub parent: u32,
    /// Its command line, or the title that it has given itself.
    pub name: String,
    /// What is resident.
    pub rss: u64,
    /// The same, in which a page that n processes share counts 1/n.
    pub pss: u64,
    /// Of the RSS, what is in no other process.
    pub private: u64,
    /// Of the RSS, what other processes have as well.
    pub shared: u64,
    /// Swapped out, thus not in the RSS.
    pub swap: u64,
}

/// Programs that are not part of the cluster, although its processes have started them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Others {
    /// Their number.
    pub processes: u64,
    /// What they take, as above.
    pub pss: u64,
}

/// Measures a process and what was forked from it.
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

/// The process that this one belongs to as a worker: the first of those that forked one another, and may be read.
///
/// # Errors
/// If there is no /proc.
pub fn master_of(pid: u32) -> io::Result<u32> {
    let processes = process_stat::all()?;
    let Some(mut process) = process_stat::find(&processes, pid) else {
        return Err(ended());
    };
    // The list is not of one moment, so it may even have a circle.
    for _ in 0..processes.len() {
        match process.forked_from(&processes) {
            Some(parent) if matches!(measure(parent), Ok(Some(_))) => process = parent,
            _ => break,
        }
    }
    Ok(process.pid)
}

/// `None` if the process ended while it was read: that gives nothing, or a part.
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
        name: if name.is_empty() {
            process.name.clone()
        } else {
            name
        },
        rss,
        pss: sum(|mapping| mapping.pss),
        private,
        shared: rss.saturating_sub(private),
        swap: sum(|mapping| mapping.swap),
    }))
}

/// A process may claim that its command line is all of its memory (prctl).
fn title(directory: &str) -> io::Result<Vec<u8>> {
    let mut title = Vec::new();
    let file = File::open(format!("{directory}/cmdline"))?;
    file.take(LONGEST_TITLE).read_to_end(&mut title)?;
    Ok(title)
}

/// Arguments are separated by zeros, and a title is followed by them.
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
        // Forked processes are tested from Ruby: this one has threads.
        let own = std::process::id();
        if process_stat::of(own).is_none() {
            return;
        }
        let mut sleep = Command::new("sleep")
            .arg("60")
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
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
            // It is a copy of this process until it executes its program.
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
