//! A program other than Ruby whose malloc is recorded: `memprof malloc` preloads this library into it, with libruby, of which
//! nothing is ever called. It records from the start of the program to its end, and then writes what it counted.
//!
//! The program itself is all that is meant: what it starts finds the LD_PRELOAD that was there before, since it may be a Ruby
//! of another version.

use std::env;
use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::num::NonZeroU32;
use std::os::fd::FromRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::panic::catch_unwind;
use std::sync::Mutex;

use memprof_native::malloc::{self, Site};

use super::malloc_host::{self, HOST};

/// The LD_PRELOAD to go back to; there only while this library is preloaded.
const BEFORE: &str = "MEMPROF_PRELOAD";
const SETTINGS: &str = "MEMPROF_MALLOC";

/// Called by the loader. Ruby calls `Init_memprof`, and this does nothing.
#[used]
#[cfg_attr(target_os = "linux", unsafe(link_section = ".init_array"))]
static START: extern "C" fn() = start;

/// Where to write, and what.
static OUTPUT: Mutex<Option<Output>> = Mutex::new(None);

struct Output {
    file: File,
    min: u64,
    /// As a table of so many rows, instead of a line for each location.
    rows: Option<usize>,
    /// Bytes between samples.
    sample: Option<NonZeroU32>,
}

extern "C" fn start() {
    let Some(before) = env::var_os(BEFORE) else {
        return;
    };
    // A panic must not leave the loader's call.
    drop(catch_unwind(|| {
        restore(before);
        let settings = env::var_os(SETTINGS).unwrap_or_default();
        let Some(output) = open(&settings.to_string_lossy()) else {
            return;
        };
        let recorded = malloc::Settings {
            sample: output.sample,
            ..malloc::Settings::default()
        };
        if malloc::start(&HOST, recorded) == Ok(true) {
            *OUTPUT.lock().unwrap_or_else(|poison| poison.into_inner()) = Some(output);
            // SAFETY: the function is of a library that is never unloaded.
            unsafe { libc::atexit(finish) };
        }
    }));
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

/// Programs may close their stderr before they end.
fn duplicate(descriptor: i32) -> Option<File> {
    // SAFETY: fcntl has no conditions; the descriptor that it makes belongs to nobody else.
    unsafe {
        let copy = libc::fcntl(descriptor, libc::F_DUPFD_CLOEXEC, 64);
        (copy >= 0).then(|| File::from_raw_fd(copy))
    }
}

fn open(settings: &str) -> Option<Output> {
    let value = |name: &str| {
        let mut settings = settings
            .split(',')
            .filter_map(|setting| setting.split_once(':'));
        settings
            .find(|(key, _)| *key == name)
            .map(|(_, value)| value)
    };
    let file = match value("dump_path") {
        Some(path) => OpenOptions::new()
            .append(true)
            .create(true)
            .mode(0o600)
            .open(path)
            .ok(),
        None => duplicate(
            value("dump_fd")
                .and_then(|text| text.parse().ok())
                .unwrap_or(2),
        ),
    };
    Some(Output {
        file: file?,
        min: value("dump_min")
            .and_then(|text| text.parse().ok())
            .unwrap_or(0),
        rows: value("table").and_then(|text| text.parse().ok()),
        sample: value("sample").and_then(|text| text.parse().ok()),
    })
}

extern "C" fn finish() {
    // A panic must not leave the call of the C library.
    drop(catch_unwind(|| {
        // No recording of a program like this goes to a file.
        let _ = malloc::stop();
        let output = OUTPUT
            .lock()
            .unwrap_or_else(|poison| poison.into_inner())
            .take();
        if let Some(mut output) = output {
            let mut sites = malloc::sites();
            sites.retain(|site| site.counts.allocated_bytes > output.min);
            let text = match output.rows {
                Some(rows) => table(sites, rows),
                None => lines(&sites),
            };
            // The program has ended; nobody is left to tell.
            let _ = output.file.write_all(text.as_bytes());
        }
    }));
}

fn lines(sites: &[Site]) -> String {
    let lines = sites.iter().map(|site| {
        let (counts, name) = (&site.counts, malloc_host::name(&site.location));
        format!(
            "{:16} {:12} {name}\n",
            counts.allocated_bytes, counts.allocations
        )
    });
    lines.collect()
}

fn table(mut sites: Vec<Site>, rows: usize) -> String {
    sites.sort_by_key(|site| {
        std::cmp::Reverse((site.counts.live_bytes, site.counts.allocated_bytes))
    });
    let program = env::args_os().next().unwrap_or_default();
    let program = String::from_utf8_lossy(program.as_bytes());
    let mut text = format!(
        "malloc of {program}, process {}, in bytes{}:\n{:>14} {:>10} {:>14} {:>10}  Allocated at\n",
        std::process::id(),
        if malloc::sample().is_some() {
            ", estimated from samples"
        } else {
            ""
        },
        "Live",
        "Blocks",
        "Allocated",
        "Calls"
    );
    for site in sites.iter().take(rows) {
        let (counts, name) = (&site.counts, malloc_host::name(&site.location));
        let (live, blocks) = (counts.live_bytes, counts.live);
        let (allocated, calls) = (counts.allocated_bytes, counts.allocations);
        text += &format!("{live:14} {blocks:10} {allocated:14} {calls:10}  {name}\n");
    }
    text
}
