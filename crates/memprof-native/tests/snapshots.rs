//! Copies of other processes: asleep, busy, with pending signals.
#![cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]

use std::fs;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use memprof_native::process::{Argument, Snapshot, SnapshotError, Symbols};

const LIMIT: Duration = Duration::from_secs(60);
const NOTHING: [Argument<'_>; 2] = [Argument::Number(0), Argument::Number(0)];

struct Program(Child);

impl Program {
    fn start(command: &str) -> Program {
        Program::spawn(Command::new("sh").args(["-c", command]))
    }

    fn spawn(command: &mut Command) -> Program {
        let child =
            command.stdout(Stdio::null()).stderr(Stdio::null()).process_group(0).spawn().unwrap();
        let program = Program(child);
        let maps = format!("/proc/{}/maps", program.pid());
        let beginning = Instant::now();
        let is_code_of_libc = |line: &str| line.contains("r-xp") && line.contains("/libc");
        while !fs::read_to_string(&maps).unwrap().lines().any(is_code_of_libc) {
            assert!(beginning.elapsed() < LIMIT, "never loaded");
            thread::sleep(Duration::from_millis(1));
        }
        program
    }

    fn pid(&self) -> i32 {
        self.0.id() as i32
    }

    fn until(&self, what: &str, so: impl Fn(&str) -> bool) {
        let beginning = Instant::now();
        while !so(&fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap()) {
            assert!(beginning.elapsed() < LIMIT, "never {what}");
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// Child processes that this one has not waited for.
    fn children(&self) -> String {
        let pid = self.pid();
        fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // Kills everything that it started, too.
        // SAFETY: sends a signal to the group of a child that was not waited for yet.
        unsafe { libc::kill(-self.pid(), libc::SIGKILL) };
        let _ = self.0.wait();
    }
}

/// The parent of the copy, as the copy sees it.
fn parent_of_copy(program: &Program) -> u64 {
    let symbols = Symbols::of(program.pid(), &["libc.so", "libc-"]).unwrap();
    let mut snapshot = Snapshot::take(program.pid()).unwrap();
    let getppid = symbols.find("getppid").unwrap();
    snapshot.ask(getppid, NOTHING, LIMIT).unwrap()
}

#[test]
fn a_sleeping_process_is_copied_and_sleeps_on() {
    let program = Program::start("exec sleep 1000");
    program.until("asleep", |text| text.contains("sleep") && text.contains("State:\tS"));
    for _ in 0..20 {
        assert_eq!(parent_of_copy(&program), program.pid() as u64);
    }
    assert_eq!(program.children(), "");
    program.until("asleep again", |text| text.contains("State:\tS"));
}

#[test]
fn a_busy_process_is_copied_and_goes_on() {
    let program = Program::start("while :; do :; done");
    for _ in 0..20 {
        assert_eq!(parent_of_copy(&program), program.pid() as u64);
    }
    assert_eq!(program.children(), "");
    program.until("running", |text| text.contains("State:\tR"));
}

#[test]
fn signals_that_come_meanwhile_are_delivered_once() {
    let directory = tempfile::tempdir().unwrap();
    let log = directory.path().join("log");
    let script = format!(
        "trap 'echo got >> {0}' USR1; echo ready >> {0}; while :; do sleep 0.01; done",
        log.display()
    );
    let program = Program::start(&script);
    let lines = || fs::read_to_string(&log).unwrap_or_default().lines().count();
    let wait_for = |count: usize| {
        let beginning = Instant::now();
        while lines() < count {
            assert!(beginning.elapsed() < LIMIT, "{} lines of {count}", lines());
            thread::sleep(Duration::from_millis(1));
        }
    };
    wait_for(1);
    for round in 0..20 {
        // SAFETY: sends a signal to a child of this test.
        unsafe { libc::kill(program.pid(), libc::SIGUSR1) };
        parent_of_copy(&program);
        wait_for(2 + round);
    }
    assert_eq!(lines(), 21);
}

#[test]
fn a_wait_does_not_see_the_copy() {
    let directory = tempfile::tempdir().unwrap();
    let log = directory.path().join("log");
    let script = format!("sleep 1000 & wait $!; echo $? > {}; sleep 1000", log.display());
    let program = Program::start(&script);
    let beginning = Instant::now();
    while program.children().is_empty() {
        assert!(beginning.elapsed() < LIMIT);
    }
    for _ in 0..5 {
        parent_of_copy(&program);
    }
    assert!(!log.exists());
    let child: i32 = program.children().trim().parse().unwrap();
    // SAFETY: sends a signal to a process that the test's child has started.
    unsafe { libc::kill(child, libc::SIGKILL) };
    while fs::read_to_string(&log).unwrap_or_default().is_empty() {
        assert!(beginning.elapsed() < LIMIT);
        thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(fs::read_to_string(&log).unwrap(), "137\n");
}

#[test]
fn a_call_that_faults_ends_the_copy_alone() {
    let program = Program::start("exec sleep 1000");
    program.until("asleep", |text| text.contains("sleep") && text.contains("State:\tS"));
    let mut snapshot = Snapshot::take(program.pid()).unwrap();
    let outcome = snapshot.ask(16, NOTHING, LIMIT);
    assert!(matches!(outcome, Err(SnapshotError::Died(how)) if how.starts_with("signal 11")));
    drop(snapshot);
    assert_eq!(program.children(), "");
    program.until("asleep again", |text| text.contains("State:\tS"));
}

#[test]
fn what_is_not_there_is_said() {
    let program = Program::start("exec sleep 1000");
    let symbols = Symbols::of(program.pid(), &["libruby"]).unwrap();
    assert!(matches!(symbols.find("rb_during_gc"), Err(SnapshotError::Missing(_))));
    assert!(matches!(Snapshot::take(i32::MAX), Err(SnapshotError::Gone)));
}

/// Starts a program with a copy of libc in this directory.
fn with_own_libc(directory: &Path, command: &mut Command) -> (Program, PathBuf) {
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let libc = maps.split_whitespace().find(|word| {
        let name = word.rsplit('/').next().unwrap_or_default();
        word.starts_with('/') && (name.starts_with("libc.so") || name.starts_with("libc-"))
    });
    let libc = Path::new(libc.expect("libc is mapped"));
    let own = directory.join("libc.so.6");
    fs::copy(libc, &own).unwrap();
    let program = Program::spawn(command.env("LD_LIBRARY_PATH", directory));
    program.until("asleep", |text| text.contains("sleep") && text.contains("State:\tS"));
    let maps = fs::read_to_string(format!("/proc/{}/maps", program.pid())).unwrap();
    assert!(maps.contains(own.to_str().unwrap()), "{maps}");
    (program, own)
}

#[test]
fn a_library_that_was_removed_has_its_symbols() {
    let directory = tempfile::tempdir().unwrap();
    let (program, libc) = with_own_libc(directory.path(), Command::new("sleep").arg("1000"));
    fs::remove_file(libc).unwrap();
    assert_eq!(parent_of_copy(&program), program.pid() as u64);
}

/// Gives the process its own mounts, separate from this program's.
fn with_own_mounts() -> std::io::Result<()> {
    let none = std::ptr::null();
    let kind = libc::MS_REC | libc::MS_PRIVATE;
    // SAFETY: makes two system calls, with constant texts.
    let done = unsafe {
        libc::unshare(libc::CLONE_NEWNS) == 0
            && libc::mount(none, c"/".as_ptr(), none, kind, none.cast()) == 0
    };
    match done {
        true => Ok(()),
        false => Err(std::io::Error::last_os_error()),
    }
}

#[test]
fn a_file_that_never_ends_in_the_place_of_a_library_is_not_opened() {
    // SAFETY: returns a number.
    if unsafe { libc::geteuid() } != 0 {
        eprintln!("not run: only root may mount");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let mut command = Command::new("sleep");
    // SAFETY: makes two system calls, and allocates nothing.
    unsafe { command.arg("1000").pre_exec(with_own_mounts) };
    let (program, libc) = with_own_libc(directory.path(), &mut command);
    let fifo = directory.path().join("fifo");
    let script = r#"mkfifo "$1" && exec nsenter --target "$0" --mount mount --bind "$1" "$2""#;
    let mounted = Command::new("sh")
        .args(["-c", script, &program.pid().to_string()])
        .args([&fifo, &libc])
        .status();
    assert!(mounted.unwrap().success());
    let seen = format!("/proc/{}/root{}", program.pid(), libc.display());
    assert!(fs::metadata(seen).unwrap().file_type().is_fifo());
    let (found, answer) = mpsc::channel();
    let pid = program.pid();
    thread::spawn(move || {
        let symbols = Symbols::of(pid, &["libc.so", "libc-"]);
        found.send(symbols.and_then(|symbols| symbols.find("getppid")))
    });
    let address = answer.recv_timeout(LIMIT).expect("it was opened").unwrap();
    let mut snapshot = Snapshot::take(pid).unwrap();
    assert_eq!(snapshot.ask(address, NOTHING, LIMIT).unwrap(), pid as u64);
}

#[test]
fn a_copy_does_not_hold_open_what_the_process_closes() {
    let directory = tempfile::tempdir().unwrap();
    let go = directory.path().join("go");
    let script =
        "exec 5<&0 </dev/null; until [ -e \"$0\" ]; do sleep 0.01; done; exec 5<&-; sleep 1000";
    let (mut theirs, own) = UnixStream::pair().unwrap();
    let mut command = Command::new("sh");
    command.args(["-c", script]).arg(&go).stdin(OwnedFd::from(own));
    let program = Program::spawn(&mut command);
    drop(command);
    let descriptor = format!("/proc/{}/fd/5", program.pid());
    let beginning = Instant::now();
    while fs::symlink_metadata(&descriptor).is_err() {
        assert!(beginning.elapsed() < LIMIT);
    }
    let snapshot = Snapshot::take(program.pid()).unwrap();
    fs::write(&go, "").unwrap();
    theirs.set_read_timeout(Some(LIMIT)).unwrap();
    assert_eq!(theirs.read(&mut [0]).expect("it is closed"), 0);
    drop(snapshot);
}

/// Makes the kernel kill the process when it calls `clone`.
fn forbid_clone() -> std::io::Result<()> {
    let step = |code: u32, yes, no, k| libc::sock_filter { code: code as u16, jt: yes, jf: no, k };
    let mut filter = [
        step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, 1, libc::SYS_clone as u32),
        step(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_KILL_PROCESS),
        step(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // SAFETY: reads the program, which lives as long as the calls.
    let answer = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program)
    };
    match answer {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}

#[test]
fn a_filter_of_system_calls_does_not_kill_a_process_that_is_copied() {
    let mut command = Command::new("sleep");
    // SAFETY: makes two system calls, and allocates nothing.
    unsafe { command.arg("1000").pre_exec(forbid_clone) };
    let program = Program::spawn(&mut command);
    program.until("asleep", |text| text.contains("State:\tS"));
    // Only root may suspend the filter.
    match Snapshot::take(program.pid()) {
        Ok(_) | Err(SnapshotError::Filtered) => {}
        Err(error) => panic!("{error}"),
    }
    assert_eq!(program.children(), "");
    program.until("asleep again", |text| text.contains("State:\tS"));
}

#[test]
fn a_thread_that_waits_for_the_kernel_is_not_taken_for_one_that_a_debugger_traces() {
    // The process waits for the end of a CLONE_VFORK child. The state alone does not show that: a program that is read from
    // a disk is in it, too.
    let code = format!("syscall({}, 0x4000 | 17, 0, 0, 0, 0) or sleep 1000", libc::SYS_clone);
    let program = Program::spawn(Command::new("perl").args(["-e", &code]));
    let beginning = Instant::now();
    while program.children().is_empty() {
        assert!(beginning.elapsed() < LIMIT);
    }
    program.until("waiting", |text| text.contains("State:\tD"));
    for _ in 0..2 {
        let taken = Snapshot::take(program.pid());
        assert!(matches!(taken, Err(SnapshotError::Busy)));
    }
}

#[test]
fn what_has_no_memory_is_not_copied() {
    let mut child = Command::new("true").spawn().unwrap();
    let pid = child.id() as i32;
    let beginning = Instant::now();
    while !fs::read_to_string(format!("/proc/{pid}/status")).unwrap().contains("State:\tZ") {
        assert!(beginning.elapsed() < LIMIT);
    }
    let taken = Snapshot::take(pid);
    assert!(matches!(taken, Err(SnapshotError::NoMemory)));
    let symbols = Symbols::of(pid, &["libc"]);
    assert!(matches!(symbols, Err(SnapshotError::NoMemory)));
    child.wait().unwrap();
}
