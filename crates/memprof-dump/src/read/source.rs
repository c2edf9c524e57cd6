//! Sources of dumps: files, standard input, and directories written by heap-profiler.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// An opened dump.
pub struct Source {
    /// The input to read.
    pub input: Box<dyn Read + Send>,
    /// The file being read; `-` for standard input.
    pub path: PathBuf,
    /// Its size in bytes; `None` if unknown in advance.
    pub size: Option<u64>,
    /// The report of a heap-profiler directory, if the dump is in one.
    pub report: Option<Report>,
}

/// A heap-profiler directory. `allocated.heap` contains the whole heap, as it was before the last GC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Number of the GC before: objects of this or a later generation were allocated while the profiler ran.
    pub generation: Option<u64>,
    /// The dump of objects allocated since and still live, without roots. `None` if it is missing.
    pub retained: Option<PathBuf>,
}

/// Opens a dump: a file, a directory written by heap-profiler, or standard input for `-`.
///
/// # Errors
/// If it cannot be opened; the text names the file.
pub fn open(path: &Path) -> io::Result<Source> {
    if path.as_os_str() == "-" {
        return Ok(Source {
            input: Box::new(io::stdin()),
            path: path.to_owned(),
            size: None,
            report: None,
        });
    }
    let named = |path: &Path, error: io::Error| {
        let text = format!("{}: {}", path.display(), words(&error));
        io::Error::new(error.kind(), text)
    };
    if path.is_dir() {
        let dump = path.join("allocated.heap");
        let report = report(path);
        if !dump.is_file() {
            let text = "a directory, but none of heap-profiler: allocated.heap is missing";
            return Err(named(path, io::Error::other(text)));
        }
        let source = file(&dump).map_err(|error| named(&dump, error))?;
        return Ok(Source { report: Some(report), ..source });
    }
    file(path).map_err(|error| named(path, error))
}

fn file(path: &Path) -> io::Result<Source> {
    let file = File::open(path)?;
    let about = file.metadata()?;
    Ok(Source {
        input: Box::new(file),
        path: path.to_owned(),
        // The size of a pipe is unknown.
        size: about.is_file().then_some(about.len()),
        report: None,
    })
}

fn report(directory: &Path) -> Report {
    let generation = std::fs::read_to_string(directory.join("generation.info"));
    let retained = directory.join("retained.heap");
    Report {
        generation: generation.ok().and_then(|text| text.trim().parse().ok()),
        retained: retained.is_file().then_some(retained),
    }
}

/// An error as text, without the system's error number.
fn words(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "no such file".to_owned(),
        io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        _ => error.to_string(),
    }
}
