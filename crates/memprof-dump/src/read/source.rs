//! Where dumps are: files, standard input, and the directories of heap-profiler.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// A dump that was opened.
pub struct Source {
    /// What to read.
    pub input: Box<dyn Read + Send>,
    /// The file that is read; `-` for standard input.
    pub path: PathBuf,
    /// Its bytes; `None` if that is not known before its end.
    pub size: Option<u64>,
    /// If it is in a directory of heap-profiler: what that says about it.
    pub report: Option<Report>,
}

/// A directory of heap-profiler. The whole heap is in `allocated.heap`, as it was before the last collection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Number of the collection before: what has this generation or a later one was allocated while the profiler ran.
    pub generation: Option<u64>,
    /// The dump of what was allocated since and is still there; it has no roots. `None` if it is missing.
    pub retained: Option<PathBuf>,
}

/// Opens a dump: a file, a directory that heap-profiler has written, or standard input for `-`.
///
/// # Errors
/// If there is none; the text names the file.
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
        return Ok(Source {
            report: Some(report),
            ..source
        });
    }
    file(path).map_err(|error| named(path, error))
}

fn file(path: &Path) -> io::Result<Source> {
    let file = File::open(path)?;
    let about = file.metadata()?;
    Ok(Source {
        input: Box::new(file),
        path: path.to_owned(),
        // A pipe has none.
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

/// An error in words, without the system's number for it.
fn words(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "no such file".to_owned(),
        io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        _ => error.to_string(),
    }
}
