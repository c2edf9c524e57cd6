//! Bytes allocated by functions, alone and including their callees, and their callers.

use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::export::Value;
use crate::stacks::{Frame, Stacks};

/// A caller or callee of a function.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Neighbor {
    /// The function.
    pub name: String,
    /// Bytes of the stacks with this call.
    pub bytes: u64,
}

/// A function: a Ruby method in a file, or a native function.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Function {
    /// Its name and location, such as `import (app.rb)`.
    pub name: String,
    /// Bytes allocated by the function itself.
    pub self_bytes: u64,
    /// Bytes allocated while it ran. A recursive stack counts once.
    pub bytes: u64,
    /// Its callers, most bytes first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub callers: Option<Vec<Neighbor>>,
    /// Its callees, most bytes first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub callees: Option<Vec<Neighbor>>,
}

/// The name without and with the location.
fn names(frame: &Frame) -> (&str, String) {
    match frame {
        Frame::Ruby { path, method, .. } if !method.is_empty() => {
            (method, format!("{method} ({path})"))
        }
        Frame::Ruby { .. } => ("", frame.location()),
        Frame::Native(native) => (&native.function, native.function_label()),
    }
}

/// Bytes by pair of functions. A stack counts once.
#[derive(Default)]
struct Pairs(FxHashMap<(u32, u32), (u64, usize)>);

impl Pairs {
    fn add(&mut self, of: u32, other: u32, bytes: u64, stack: usize) {
        let (sum, last) = self.0.entry((of, other)).or_insert((0, usize::MAX));
        if *last != stack {
            *sum += bytes;
            *last = stack;
        }
    }

    fn of(&self, function: u32, functions: &[Function]) -> Vec<Neighbor> {
        let pairs = self.0.iter().filter(|((of, _), _)| *of == function);
        let mut found: Vec<Neighbor> = pairs
            .map(|((_, other), (bytes, _))| Neighbor {
                name: functions[*other as usize].name.clone(),
                bytes: *bytes,
            })
            .collect();
        found.sort_by(|one, other| (other.bytes, &one.name).cmp(&(one.bytes, &other.name)));
        found
    }
}

impl Function {
    /// All functions with bytes, most bytes first. With `wanted`, only those of that name, with or without location, including
    /// their callers and callees.
    #[must_use]
    pub fn all(stacks: &Stacks, value: Value, wanted: Option<&str>) -> Vec<Function> {
        let mut functions: Vec<Function> = Vec::new();
        let mut is_wanted: Vec<bool> = Vec::new();
        let mut known: FxHashMap<String, u32> = FxHashMap::default();
        let number = |frame: &Frame| {
            let (bare, name) = names(frame);
            *known.entry(name).or_insert_with_key(|name| {
                is_wanted.push(wanted.is_some_and(|wanted| wanted == bare || wanted == name));
                functions.push(Function { name: name.clone(), ..Function::default() });
                functions.len() as u32 - 1
            })
        };
        let numbers: Vec<u32> = stacks.frames.iter().map(number).collect();
        let mut seen = vec![usize::MAX; functions.len()];
        let (mut callers, mut callees) = (Pairs::default(), Pairs::default());
        for (stack, (node, counts)) in stacks.counts.iter().enumerate() {
            let bytes = value.of(counts);
            if bytes == 0 {
                continue;
            }
            let mut inner = None;
            for node in stacks.path(*node) {
                let at = numbers[stacks.nodes[node as usize].frame as usize];
                let function = &mut functions[at as usize];
                if std::mem::replace(&mut seen[at as usize], stack) != stack {
                    function.bytes += bytes;
                }
                match inner {
                    None => function.self_bytes += bytes,
                    Some(called) => {
                        if is_wanted[called as usize] {
                            callers.add(called, at, bytes, stack);
                        }
                        if is_wanted[at as usize] {
                            callees.add(at, called, bytes, stack);
                        }
                    }
                }
                inner = Some(at);
            }
        }
        let is_shown = |at: usize| functions[at].bytes > 0 && (wanted.is_none() || is_wanted[at]);
        let shown = (0..functions.len()).filter(|&at| is_shown(at));
        let mut shown: Vec<Function> = shown
            .map(|at| Function {
                callers: wanted.map(|_| callers.of(at as u32, &functions)),
                callees: wanted.map(|_| callees.of(at as u32, &functions)),
                ..functions[at].clone()
            })
            .collect();
        shown.sort_by(|one, other| (other.bytes, &one.name).cmp(&(one.bytes, &other.name)));
        shown
    }
}
