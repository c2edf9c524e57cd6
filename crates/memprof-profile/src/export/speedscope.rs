//! The file format of <https://www.speedscope.app>, following its published JSON schema.
//!
//! One "sampled" profile per value, all with the same frames; the viewer lists them in its title bar. The innermost
//! frame of a stack is the class of the objects.

use std::borrow::Cow;
use std::io::{self, Write};

use serde::Serialize;

use super::{Ids, Value, shown};
use crate::group::Names;
use crate::profile::{Profile, SiteRow};

const SCHEMA: &str = "https://www.speedscope.app/file-format-schema.json";

#[derive(Serialize)]
struct File<'p> {
    #[serde(rename = "$schema")]
    schema: &'static str,
    exporter: String,
    name: Cow<'p, str>,
    #[serde(rename = "activeProfileIndex")]
    active: usize,
    shared: Shared<'p>,
    profiles: Vec<Sampled<'p>>,
}

#[derive(Serialize)]
struct Shared<'p> {
    frames: Vec<Frame<'p>>,
}

#[derive(Serialize)]
struct Frame<'p> {
    name: &'p str,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'p str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
}

#[derive(Serialize)]
struct Sampled<'s> {
    #[serde(rename = "type")]
    kind: &'static str,
    name: &'static str,
    unit: &'static str,
    #[serde(rename = "startValue")]
    start: u64,
    #[serde(rename = "endValue")]
    end: u64,
    samples: Vec<&'s [u32]>,
    weights: Vec<u64>,
}

/// Writes a profile for each nonzero value; the viewer opens the one of `value`.
///
/// # Errors
/// Errors of `out`.
pub fn write(profile: &Profile, value: Value, out: &mut impl Write) -> io::Result<()> {
    let names = Names::new(profile);
    let rows = names.rows();
    let mut frames = Frames::new(&names);
    let stacks: Vec<Vec<u32>> = rows.iter().map(|row| frames.stack(profile, row)).collect();
    let values = shown(&rows, value);
    let file = File {
        schema: SCHEMA,
        exporter: format!("memprof {}", profile.meta.memprof),
        name: title(profile),
        active: values.iter().position(|&known| known == value).unwrap_or(0),
        profiles: values.iter().map(|&value| sampled(&rows, &stacks, value)).collect(),
        shared: Shared { frames: frames.frames },
    };
    serde_json::to_writer(out, &file).map_err(io::Error::from)
}

/// The command, and whether numbers are estimates.
fn title(profile: &Profile) -> Cow<'_, str> {
    let command = profile.meta.command.as_str();
    match profile.meta.estimates() {
        Some(note) => format!("{command}, {note}").into(),
        None => command.into(),
    }
}

/// The profile of one value.
fn sampled<'s>(rows: &[SiteRow], stacks: &'s [Vec<u32>], value: Value) -> Sampled<'s> {
    let samples = rows.iter().zip(stacks).map(|(row, stack)| (stack.as_slice(), value.of(row)));
    let (samples, weights): (Vec<&[u32]>, Vec<u64>) = samples.filter(|sample| sample.1 > 0).unzip();
    Sampled {
        kind: "sampled",
        name: value.title(),
        unit: if value.is_bytes() { "bytes" } else { "none" },
        start: 0,
        end: weights.iter().sum(),
        samples,
        weights,
    }
}

/// Key of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Key {
    Line(u32, u32),
    Class(u32),
}

/// The frames of all profiles, each once.
struct Frames<'p> {
    names: &'p Names<'p>,
    frames: Vec<Frame<'p>>,
    ids: Ids<Key>,
}

impl<'p> Frames<'p> {
    fn new(names: &'p Names<'p>) -> Self {
        Frames { names, frames: Vec::new(), ids: Ids::new() }
    }

    /// Indices of the frames of a row, outermost first, the class last.
    fn stack(&mut self, profile: &'p Profile, row: &SiteRow) -> Vec<u32> {
        let names = self.names;
        let class = || Frame { name: names.class(row.class), file: None, line: None };
        let mut stack = vec![self.id(Key::Class(row.class), class)];
        for node in names.path(row.stack) {
            let at = profile.stacks[node as usize];
            stack.push(self.id(Key::Line(names.frame_id(node), at.line), || {
                let native = profile.frame(node as usize).native;
                let file = (!native).then(|| names.place(node).0);
                Frame {
                    name: names.method(node),
                    file,
                    line: (!native && at.line > 0).then_some(at.line),
                }
            }));
        }
        stack.reverse();
        stack
    }

    fn id(&mut self, key: Key, frame: impl FnOnce() -> Frame<'p>) -> u32 {
        let (id, new) = self.ids.get(key);
        if new {
            self.frames.push(frame());
        }
        id
    }
}
