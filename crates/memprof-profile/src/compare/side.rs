//! One side of a comparison, read from the JSON of reports.

use memprof_paths::{guess_gem, library_path};
use rustc_hash::FxHashMap;
use serde_json::Value;

/// The measures compared: objects and bytes allocated, objects and bytes retained.
pub(super) type Measures = [u64; 4];

/// Names of the measures, in the same order.
pub const MEASURES: &[&str] =
    &["allocated_objects", "allocated_bytes", "retained_objects", "retained_bytes"];

/// The gem of files that are not in a gem, but in the directory where the program ran.
const APPLICATION: &str = "application";

/// The objects of one class that one line allocated.
#[derive(Debug)]
pub(super) struct Site {
    pub file: String,
    pub own: bool,
    pub line: u32,
    pub method: String,
    pub class: String,
    pub gem: String,
    pub source: Option<String>,
    pub by_run: Vec<Measures>,
}

impl Site {
    /// Whether these are internal objects of the VM.
    pub fn internal(&self) -> bool {
        self.class.starts_with('<')
    }
}

/// One or several reports of the same program.
#[derive(Debug)]
pub struct Side {
    /// Number of runs.
    pub runs: usize,
    pub(super) sites: Vec<Site>,
    /// Whether the reports include the source text of lines.
    pub(super) sources: bool,
    pub(super) runtime: String,
    pub(super) command: String,
    pub(super) sample: u64,
    pub(super) incomplete: bool,
}

impl Side {
    /// Parses JSON reports, each with its name for errors. A report may contain further runs, as a baseline does.
    pub fn read(texts: &[(String, String)]) -> Result<Side, String> {
        let reports = texts.iter().map(|(name, text)| {
            parse(text).map_err(|error| format!("cannot read {name}: {error}"))
        });
        let reports = reports.collect::<Result<Vec<Value>, String>>()?;
        let first = reports.first().ok_or("no report given")?;
        let runs: Vec<&Value> = reports
            .iter()
            .flat_map(|report| std::iter::once(report).chain(list(&report["runs"])))
            .collect();
        let mut side = Side {
            runs: runs.len(),
            sites: Vec::new(),
            sources: reports.iter().all(|report| report["sources"].is_object()),
            runtime: text(&first["meta"]["runtime"]),
            command: text(&first["meta"]["command"]),
            sample: first["meta"]["sample"].as_u64().unwrap_or(1),
            incomplete: runs.iter().any(|run| run["meta"]["incomplete"].as_bool() == Some(true)),
        };
        let mut known = FxHashMap::default();
        for (run, report) in runs.iter().enumerate() {
            let sources = if report["sources"].is_object() { *report } else { first };
            let directory = text(&report["meta"]["directory"]);
            for site in list(&report["sites"]) {
                side.add(run, site, &directory, &sources["sources"], &mut known);
            }
        }
        Ok(side)
    }

    fn add(
        &mut self,
        run: usize,
        site: &Value,
        directory: &str,
        sources: &Value,
        known: &mut FxHashMap<(String, u32, String, String), usize>,
    ) {
        let path = site["file"].as_str().unwrap_or_default();
        let line = site["line"].as_u64().unwrap_or_default() as u32;
        let (file, own) = portable(path, directory);
        let (method, class) = (text(&site["method"]), text(&site["class"]));
        let key = (file, line, method, class);
        let place = *known.entry(key).or_insert_with_key(|(file, _, method, class)| {
            let source = sources[path][line.to_string()].as_str();
            self.sites.push(Site {
                file: file.clone(),
                own,
                line,
                method: method.clone(),
                class: class.clone(),
                gem: if own {
                    APPLICATION.to_owned()
                } else {
                    unversioned(guess_gem(path)).to_owned()
                },
                source: source.map(str::to_owned),
                by_run: vec![Measures::default(); self.runs],
            });
            self.sites.len() - 1
        });
        let number = |kind: &str, what: &str| site[kind][what].as_u64().unwrap_or_default();
        let measures = [
            number("allocated", "objects"),
            number("allocated", "bytes"),
            number("retained", "objects"),
            number("retained", "bytes"),
        ];
        for (sum, number) in self.sites[place].by_run[run].iter_mut().zip(measures) {
            *sum += number;
        }
    }
}

fn parse(text: &str) -> Result<Value, String> {
    let report: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    match (report["format"].as_str(), report["version"].as_u64()) {
        (Some("memprof-report"), Some(1)) if report["sites"].is_array() => Ok(report),
        (Some("memprof-report"), Some(version)) if version != 1 => {
            Err(format!("unknown version of reports: {version}"))
        }
        _ => Err("it is not a report of memprof".to_owned()),
    }
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// A path that is independent of the checkout and the gem's version, and whether the file is the program's.
fn portable(path: &str, directory: &str) -> (String, bool) {
    if let Some(library) = library_path(path) {
        return match library.split_once('/') {
            Some((gem, rest)) => (format!("{}/{rest}", unversioned(gem)), false),
            None => (library.into_owned(), false),
        };
    }
    let inside = path
        .strip_prefix(directory)
        .filter(|_| directory.len() > 1)
        .and_then(|rest| rest.strip_prefix('/'));
    let own = inside.is_some() || !path.starts_with(['/', '<', '(']);
    (inside.unwrap_or(path).to_owned(), own)
}

/// The name of a gem without its version.
fn unversioned(gem: &str) -> &str {
    match gem.rsplit_once('-') {
        Some((name, version)) if version.starts_with(|first: char| first.is_ascii_digit()) => name,
        _ => gem,
    }
}
