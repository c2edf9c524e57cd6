//! Records malloc in a program other than Ruby: `memprof malloc` preloads this library into it, with libruby, none of which is
//! ever called. It records from the start of the program to its end, and then writes its counts; or it writes a recording
//! meanwhile (`memprof run --malloc`).
//!
//! Only the program itself is recorded: its child processes get the previous LD_PRELOAD, as they may be another Ruby version.

use std::env;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::num::NonZeroU32;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use memprof_native::held_file::HeldFile;
use memprof_native::malloc::{self, Settings, Stream};
use memprof_profile::profile::estimates;
use memprof_recording::{Counts, Row, Summary};

use super::malloc_host::HOST;

/// The LD_PRELOAD to restore; set only while this library is preloaded.
const BEFORE: &str = "MEMPROF_PRELOAD";
const SETTINGS: &str = "MEMPROF_MALLOC";
/// File that informs `memprof malloc` that this program records, and has reported.
const NOTE: &str = "MEMPROF_MALLOC_NOTE";

/// Called by the loader. For Ruby, which calls `Init_memprof`, it does nothing.
#[used]
#[cfg_attr(target_os = "linux", unsafe(link_section = ".init_array"))]
static START: extern "C" fn() = start;

/// Destination and options of the output.
static OUTPUT: Mutex<Option<Output>> = Mutex::new(None);

/// Default number of frames recorded per stack.
const STACK: usize = 64;
/// Number of frames up to the caller of C++'s `operator new[]`, which calls `operator new`.
const NEAREST: usize = 4;

struct Output {
    file: HeldFile,
    /// Source of the file, in case the program closes it.
    source: Source,
    /// File checked by `memprof malloc`, if it runs this program.
    note: Option<HeldFile>,
    min: u64,
    /// Write a table with this many rows instead of a line for each location.
    rows: Option<usize>,
}

enum Source {
    Path(PathBuf),
    Descriptor(i32),
}

extern "C" fn start() {
    let Some(before) = env::var_os(BEFORE) else {
        return;
    };
    // A panic must not leave the loader's call.
    drop(catch_unwind(|| {
        restore(before);
        let settings = env::var_os(SETTINGS).unwrap_or_default();
        let settings = settings.to_string_lossy();
        let starts = match value(&settings, "record") {
            Some(path) => record(path, &settings),
            None => count(&settings),
        };
        if starts.is_some() {
            // SAFETY: the function is of a library that is never unloaded.
            unsafe { libc::atexit(finish) };
        }
    }));
}

/// Starts counting in memory.
fn count(settings: &str) -> Option<()> {
    let output = open(settings)?;
    // Otherwise all C++ allocations would have the same location.
    // SAFETY: looks for a function by its name, which ends with a NUL.
    let is_cpp = !unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"_Znwm".as_ptr()) }.is_null();
    let wanted = Settings {
        sample: sample(settings),
        stack: if is_cpp { NEAREST } else { 1 },
        native: is_cpp,
    };
    malloc::start(&HOST, wanted).ok().filter(|&starts| starts)?;
    *OUTPUT.lock().unwrap_or_else(|poison| poison.into_inner()) = Some(output);
    Some(())
}

/// Starts a recording. Its path includes the process id: the one without is for the first Ruby started by this program, and if
/// there is none, it is renamed.
fn record(path: &str, settings: &str) -> Option<()> {
    let path = with_pid(Path::new(path));
    let file =
        OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&path).ok()?;
    let wanted = Settings {
        sample: sample(settings),
        stack: value(settings, "stack").and_then(|text| text.parse().ok()).unwrap_or(STACK),
        // There are no other frames.
        native: true,
    };
    let stream = Stream {
        file: at_high_number(&file)?,
        command: program(),
        addresses: value(settings, "addresses") == Some("true"),
    };
    let starts = malloc::start_stream(&HOST, wanted, stream);
    let starts = starts.ok().filter(|&starts| starts).map(drop);
    if starts.is_none() {
        // It is empty: the disk may be full.
        let _ = fs::remove_file(&path);
    }
    starts
}

fn with_pid(path: &Path) -> PathBuf {
    let extension = path.extension().unwrap_or_default();
    let mut name = path.file_stem().unwrap_or_default().to_owned();
    name.push(format!(".{}", std::process::id()));
    if !extension.is_empty() {
        name.push(".");
        name.push(extension);
    }
    path.with_file_name(name)
}

/// Name of the program.
fn program() -> String {
    let program = env::args_os().next().unwrap_or_default();
    String::from_utf8_lossy(program.as_bytes()).into_owned()
}

fn sample(settings: &str) -> Option<NonZeroU32> {
    value(settings, "sample")?.parse().ok()
}

/// A setting by its name.
fn value<'a>(settings: &'a str, name: &str) -> Option<&'a str> {
    let mut settings = settings.split(',').filter_map(|setting| setting.split_once(':'));
    let found = settings.find(|(key, _)| *key == name);
    found.map(|(_, value)| value)
}

fn restore(before: OsString) {
    // SAFETY: the loader has not started the program, so there is one thread.
    unsafe {
        env::remove_var(BEFORE);
        if before.is_empty() {
            env::remove_var("LD_PRELOAD");
        } else {
            env::set_var("LD_PRELOAD", before);
        }
    }
}

/// Programs expect low numbers to be free.
fn at_high_number(file: &File) -> Option<File> {
    duplicate(file.as_raw_fd())
}

/// Programs may close their stderr before they end.
fn duplicate(descriptor: i32) -> Option<File> {
    // SAFETY: fcntl has no conditions; the descriptor that it makes is ours alone.
    unsafe {
        let copy = libc::fcntl(descriptor, libc::F_DUPFD_CLOEXEC, 64);
        (copy >= 0).then(|| File::from_raw_fd(copy))
    }
}

fn open(settings: &str) -> Option<Output> {
    let value = |name: &str| value(settings, name);
    let source = match value("dump_path") {
        Some(path) => Source::Path(path.into()),
        None => {
            let number = value("dump_fd").and_then(|text| text.parse().ok());
            Source::Descriptor(number.unwrap_or(2))
        }
    };
    let file = match &source {
        Source::Path(path) => append(path),
        Source::Descriptor(number) => duplicate(*number),
    };
    Some(Output {
        file: HeldFile::new(file?).ok()?,
        source,
        note: note(),
        min: value("dump_min").and_then(|text| text.parse().ok()).unwrap_or(0),
        rows: value("table").and_then(|text| text.parse().ok()),
    })
}

fn note() -> Option<HeldFile> {
    let path = env::var_os(NOTE)?;
    let file = OpenOptions::new().append(true).open(path).ok()?;
    let mut note = HeldFile::new(at_high_number(&file)?).ok()?;
    note.write_all(b"records\n").ok()?;
    Some(note)
}

fn append(path: &Path) -> Option<File> {
    let mut options = OpenOptions::new();
    options.append(true).create(true).mode(0o600);
    options.open(path).ok()
}

impl Output {
    /// The program has ended: there is no caller to report failures to.
    fn write(mut self, text: &str) {
        if !self.file.is_open() {
            let again = match &self.source {
                Source::Path(path) => append(path),
                Source::Descriptor(number) if self.file.is(*number) => duplicate(*number),
                Source::Descriptor(_) => None,
            };
            let Some(Ok(again)) = again.map(HeldFile::new) else {
                return;
            };
            self.file = again;
        }
        let written = self.file.write_all(text.as_bytes());
        if let Some(note) = &mut self.note {
            let _ = match written {
                Ok(()) => note.write_all(b"reported\n"),
                Err(_) => note.write_all(b"failed\n"),
            };
        }
    }
}

extern "C" fn finish() {
    // A panic must not leave the call of the C library.
    drop(catch_unwind(|| {
        // The file may be incomplete, as on a full disk; the program has ended, so there is no caller to report it to.
        let _ = malloc::stop();
        let output = OUTPUT.lock().unwrap_or_else(|poison| poison.into_inner()).take();
        if let Some(output) = output {
            // The program has ended, so there is time to read symbol files.
            let mut rows = Summary::of_stacks(malloc::stacks(), malloc::sample()).locations;
            rows.retain(|row| row.counts.allocated_bytes > output.min);
            let text = match output.rows {
                Some(shown) => table(&mut rows, shown),
                None => lines(&rows),
            };
            output.write(&text);
        }
    }));
}

fn lines(rows: &[Row]) -> String {
    let lines = rows.iter().map(|row| {
        let Counts { allocations, allocated_bytes, .. } = row.counts;
        format!("{allocated_bytes:16} {allocations:12} {}\n", row.location)
    });
    lines.collect()
}

fn table(rows: &mut [Row], shown: usize) -> String {
    rows.sort_by_key(|row| {
        std::cmp::Reverse((row.counts.leaked_bytes, row.counts.allocated_bytes))
    });
    let program = program();
    let mut text = format!(
        "malloc of {program}, process {}, in bytes{}:\n{:>14} {:>10} {:>14} {:>10}  Allocated at\n",
        std::process::id(),
        malloc::sample().map_or_else(String::new, |period| format!(" ({})", estimates(period))),
        "Live",
        "Blocks",
        "Allocated",
        "Calls"
    );
    for row in rows.iter().take(shown) {
        let Counts { allocations, allocated_bytes, leaked, leaked_bytes, .. } = row.counts;
        text += &format!(
            "{leaked_bytes:14} {leaked:10} {allocated_bytes:14} {allocations:10}  {}\n",
            row.location
        );
    }
    text
}
