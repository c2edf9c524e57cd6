//! Replacements for systems where calls cannot be interposed: nothing is recorded.

use std::fs::File;
use std::io;

use super::{Counts, Host, Interpreter, LiveBlock, Location, Settings, Site};
use crate::Refused;

/// Refuses.
///
/// # Errors
///
/// Always [`Refused::Unsupported`].
pub fn start(_host: &'static Host, _settings: Settings) -> Result<bool, Refused> {
    Err(Refused::Unsupported("malloc is recorded on Linux only, on x86-64 and aarch64"))
}

/// Does nothing.
pub fn set_interpreter(_interpreter: Interpreter) {}

/// None.
#[must_use]
pub fn stacks() -> memprof_recording::Stacks {
    memprof_recording::Stacks::default()
}

/// The destination of a recording.
#[derive(Debug)]
pub struct Stream {
    /// An empty file, open for writing.
    pub file: File,
    /// The command being run, shown to readers of the recording.
    pub command: String,
    /// Whether events have addresses.
    pub addresses: bool,
}

/// Refuses.
///
/// # Errors
///
/// Always [`Refused::Unsupported`].
pub fn start_stream(
    host: &'static Host,
    settings: Settings,
    _stream: Stream,
) -> Result<bool, Refused> {
    start(host, settings)
}

/// False: no recording is running.
///
/// # Errors
///
/// None.
pub fn stop() -> io::Result<bool> {
    Ok(false)
}

/// False.
#[must_use]
pub fn is_recording() -> bool {
    false
}

/// None.
#[must_use]
pub fn sample() -> Option<u64> {
    None
}

/// Does nothing.
pub fn set_quiet(_quiet: bool) {}

/// Does nothing.
pub fn reset() {}

/// None.
#[must_use]
pub fn sites() -> Vec<Site> {
    Vec::new()
}

/// None.
#[must_use]
pub fn counts(_location: &Location) -> Option<Counts> {
    None
}

/// None.
#[must_use]
pub fn live_blocks(_location: &Location) -> Vec<LiveBlock> {
    Vec::new()
}

/// 0.
#[must_use]
pub fn missed() -> u64 {
    0
}

/// 0.
#[must_use]
pub fn memsize() -> usize {
    0
}

/// Only the addresses.
#[must_use]
pub fn describe(addresses: &[usize]) -> Vec<String> {
    let texts = addresses.iter().map(|address| format!("[{address:#x}]"));
    texts.collect()
}
