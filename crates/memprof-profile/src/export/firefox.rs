//! The "processed profile" of <https://profiler.firefox.com>.
//!
//! The format is described in `src/types/profile.ts` and `docs-developer/CHANGELOG-formats.md` of the repository
//! `firefox-devtools/profiler`. As in that program's importer of DHAT's heap profiles, each value is a separate thread. The
//! innermost frame of a stack is the class of the objects.

use std::io::{self, Write};

use serde_json::{Value as Json, json};

use super::{Ids, Value, shown};
use crate::group::Names;
use crate::profile::{Profile, SiteRow};
use memprof_paths::guess_gem;

/// The first version in which threads share all tables and sources have today's names. Viewers upgrade it.
const VERSION: u32 = 61;

/// Indices of the categories in [`categories`].
const RUBY: u32 = 1;
const NATIVE: u32 = 2;
const CLASS: u32 = 3;

/// Type of a resource that is just a name to the viewer.
const RESOURCE: u32 = 0;

/// Writes a thread for each nonzero value; the viewer opens the one of `value`.
///
/// # Errors
/// Errors of `out`.
pub fn write(profile: &Profile, value: Value, out: &mut impl Write) -> io::Result<()> {
    let names = Names::new(profile);
    let rows = names.rows();
    let mut tables = Tables::new(profile, &names);
    let stacks: Vec<u32> = rows.iter().map(|row| tables.stack(row)).collect();
    let values = shown(&rows, value);
    let selected = values.iter().position(|&known| known == value).unwrap_or(0);
    let threads = values.iter().enumerate();
    let threads: Vec<Json> =
        threads.map(|(id, &value)| thread(profile, id, &rows, &stacks, value)).collect();
    let file = json!({
        "meta": meta(profile, selected),
        "libs": [],
        "shared": tables.into_json(),
        "threads": threads,
    });
    serde_json::to_writer(out, &file).map_err(io::Error::from)
}

fn meta(profile: &Profile, selected: usize) -> Json {
    let meta = &profile.meta;
    json!({
        "preprocessedProfileVersion": VERSION,
        "version": 32,
        "interval": 1,
        "startTime": meta.started_at * 1e3,
        "processType": 0,
        "stackwalk": 1,
        "product": meta.command,
        "importedFrom": format!("memprof {}", meta.memprof),
        "symbolicated": true,
        "symbolicationNotSupported": true,
        "sourceCodeIsNotOnSearchfox": true,
        "usesOnlyOneStackType": true,
        "keepProfileThreadOrder": true,
        "initialSelectedThreads": [selected],
        "categories": categories(),
        "markerSchema": [],
        "extra": [{ "label": "memprof", "entries": [
            entry("Runtime", &meta.runtime),
            entry("Duration", &format!("{:.3} s", meta.duration)),
            entry("Collections", &meta.gc_count.to_string()),
            entry("Objects recorded", &meta.estimates().unwrap_or_else(|| format!("one in {}", meta.sample.max(1)))),
        ] }],
    })
}

/// A line in the viewer's profile info panel.
fn entry(label: &str, value: &str) -> Json {
    json!({ "label": label, "format": "string", "value": value })
}

/// Kinds of frames. The viewer requires a grey one.
fn categories() -> Json {
    let category = |name: &str, color: &str| json!({ "name": name, "color": color, "subcategories": ["Other"] });
    json!([
        category("Other", "grey"),
        category("Ruby", "blue"),
        category("C", "green"),
        category("Class", "orange"),
    ])
}

/// The thread that shows one value.
fn thread(profile: &Profile, id: usize, rows: &[SiteRow], stacks: &[u32], value: Value) -> Json {
    let samples = rows.iter().zip(stacks).map(|(row, stack)| (*stack, value.of(row)));
    let (stack, weight): (Vec<u32>, Vec<u64>) = samples.filter(|sample| sample.1 > 0).unzip();
    json!({
        "name": value.title(),
        "processName": profile.meta.command,
        "processType": "default",
        "processStartupTime": 0,
        "processShutdownTime": null,
        "registerTime": 0,
        "unregisterTime": null,
        "pausedRanges": [],
        "isMainThread": id == 0,
        "pid": profile.meta.pid.to_string(),
        // Must be unique among the threads of a process.
        "tid": id,
        "samples": {
            "length": stack.len(),
            // A profile has only sums, not allocation times, but the viewer draws samples by time.
            "time": (0..stack.len()).collect::<Vec<usize>>(),
            "stack": stack,
            "weight": weight,
            "weightType": if value.is_bytes() { "bytes" } else { "samples" },
        },
        "markers": {
            "length": 0, "data": [], "name": [], "startTime": [], "endTime": [], "phase": [], "category": [],
        },
    })
}

/// A function: a method, or a class as the innermost frame.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Function {
    Method(u32),
    Class(u32),
}

/// Key of a node in the stack table.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Node {
    Stack(u32),
    Leaf(u32, u32),
}

/// Tables shared by the threads, filled on demand.
struct Tables<'p> {
    profile: &'p Profile,
    names: &'p Names<'p>,
    strings: Ids<&'p str>,
    sources: Ids<u32>,
    resources: Ids<u32>,
    functions: Ids<Function>,
    function_rows: Vec<FunctionRow>,
    frames: Ids<(u32, u32, u32)>,
    nodes: Ids<Node>,
    node_rows: Vec<(u32, Option<u32>)>,
}

/// A row of the function table.
struct FunctionRow {
    name: u32,
    source: Option<u32>,
    resource: Option<u32>,
    line: u32,
}

impl<'p> Tables<'p> {
    fn new(profile: &'p Profile, names: &'p Names<'p>) -> Self {
        Tables {
            profile,
            names,
            strings: Ids::new(),
            sources: Ids::new(),
            resources: Ids::new(),
            functions: Ids::new(),
            function_rows: Vec::new(),
            frames: Ids::new(),
            nodes: Ids::new(),
            node_rows: Vec::new(),
        }
    }

    /// Index of the node for a row: its class, called by its stack.
    fn stack(&mut self, row: &SiteRow) -> u32 {
        let mut path: Vec<u32> = self.names.path(row.stack).collect();
        path.reverse();
        let mut prefix = None;
        for node in path {
            let line = self.profile.stacks[node as usize].line;
            let function = self.method(node);
            let category = if self.profile.frame(node as usize).native { NATIVE } else { RUBY };
            let id = Node::Stack(self.names.stack_id(node));
            prefix = Some(self.node(id, (function, line, category), prefix));
        }
        let (function, new) = self.functions.get(Function::Class(row.class));
        if new {
            let name = self.strings.get(self.names.class(row.class)).0;
            self.function_rows.push(FunctionRow { name, source: None, resource: None, line: 0 });
        }
        self.node(Node::Leaf(row.stack, row.class), (function, 0, CLASS), prefix)
    }

    fn node(&mut self, node: Node, frame: (u32, u32, u32), prefix: Option<u32>) -> u32 {
        let (id, new) = self.nodes.get(node);
        if new {
            let frame = self.frames.get(frame).0;
            self.node_rows.push((frame, prefix));
        }
        id
    }

    fn method(&mut self, node: u32) -> u32 {
        let (id, new) = self.functions.get(Function::Method(self.names.frame_id(node)));
        if new {
            let frame = self.profile.frame(node as usize);
            let name = self.strings.get(self.names.method(node)).0;
            let mut row =
                FunctionRow { name, source: None, resource: None, line: frame.first_line };
            if !frame.native {
                let file = self.profile.file_name(frame);
                let file_name = self.strings.get(file).0;
                row.source = Some(self.sources.get(file_name).0);
                let gem = guess_gem(file);
                if gem != "other" {
                    let gem = self.strings.get(gem).0;
                    row.resource = Some(self.resources.get(gem).0);
                }
            }
            self.function_rows.push(row);
        }
        id
    }

    fn into_json(self) -> Json {
        let functions = &self.function_rows;
        let frames = &self.frames.keys;
        let known = |number: u32| (number > 0).then_some(number);
        json!({
            "stringArray": self.strings.keys,
            "sources": {
                "length": self.sources.keys.len(),
                "id": fill(&self.sources.keys, Json::Null),
                "filename": self.sources.keys,
                "startLine": fill(&self.sources.keys, 1),
                "startColumn": fill(&self.sources.keys, 1),
                "sourceMapURL": fill(&self.sources.keys, Json::Null),
            },
            "resourceTable": {
                "length": self.resources.keys.len(),
                "name": self.resources.keys,
                "type": fill(&self.resources.keys, RESOURCE),
                "lib": fill(&self.resources.keys, Json::Null),
                "host": fill(&self.resources.keys, Json::Null),
            },
            "nativeSymbols": { "length": 0, "libIndex": [], "address": [], "name": [], "functionSize": [] },
            "funcTable": {
                "length": functions.len(),
                "name": column(functions, |row| row.name),
                "isJS": fill(functions, false),
                "relevantForJS": fill(functions, false),
                "resource": column(functions, |row| row.resource.map_or(-1, i64::from)),
                "source": column(functions, |row| row.source),
                "lineNumber": column(functions, |row| known(row.line)),
                "columnNumber": fill(functions, Json::Null),
            },
            "frameTable": {
                "length": frames.len(),
                "func": column(frames, |frame| frame.0),
                "line": column(frames, |frame| known(frame.1)),
                "category": column(frames, |frame| frame.2),
                "subcategory": fill(frames, 0),
                "address": fill(frames, -1),
                "inlineDepth": fill(frames, 0),
                "nativeSymbol": fill(frames, Json::Null),
                "innerWindowID": fill(frames, 0),
                "column": fill(frames, Json::Null),
            },
            "stackTable": {
                "length": self.node_rows.len(),
                "frame": column(&self.node_rows, |node| node.0),
                "prefix": column(&self.node_rows, |node| node.1),
            },
        })
    }
}

/// One column of a table.
fn column<T, C: Into<Json>>(rows: &[T], cell: impl Fn(&T) -> C) -> Vec<Json> {
    rows.iter().map(|row| cell(row).into()).collect()
}

/// A column with the same value in each row.
fn fill<T>(rows: &[T], cell: impl Into<Json>) -> Vec<Json> {
    vec![cell.into(); rows.len()]
}
