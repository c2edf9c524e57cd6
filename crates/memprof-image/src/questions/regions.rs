//! Ranges of memory: stacks, modules, and other memory by permission.

use serde::{Deserialize, Serialize};

use super::Address;
use crate::analysis::Analysis;
use crate::ranges;

/// The kind of ranges.
#[derive(Deserialize)]
pub struct Question {
    kind: Kind,
}

/// `stacks`, `modules`, or a permission as chap names them.
#[derive(Clone, Copy, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Stacks of threads.
    Stacks,
    /// Mapped files.
    Modules,
    /// Writable memory.
    Writable,
    /// Read-only memory.
    ReadOnly,
    /// Readable and executable memory.
    RxOnly,
    /// Memory without read permission.
    Inaccessible,
}

/// Ranges, by address.
#[derive(Serialize)]
pub struct Answer {
    regions: Vec<Region>,
}

#[derive(Serialize)]
struct Region {
    address: Address,
    size: u64,
    file: Option<String>,
    thread: Option<u32>,
    stack_pointer: Option<Address>,
}

impl Question {
    /// Lists the ranges.
    pub fn answer(&self, analysis: &Analysis) -> Result<Answer, String> {
        let image = &analysis.image;
        let region = |start: u64, end: u64| Region {
            address: Address(start),
            size: end - start,
            file: None,
            thread: None,
            stack_pointer: None,
        };
        let access = |wanted: [bool; 3]| {
            let found = image.segments.iter().filter(|segment| {
                let access = segment.access;
                [access.read, access.write, access.execute] == wanted
            });
            let all = ranges::sorted(found.map(|segment| segment.range()).collect());
            all.into_iter().map(|range| region(range.start, range.end)).collect()
        };
        let regions = match self.kind {
            Kind::Stacks => image
                .threads
                .iter()
                .zip(&analysis.map.stacks)
                .map(|(thread, stack)| Region {
                    thread: Some(thread.id),
                    stack_pointer: Some(Address(thread.stack_pointer)),
                    ..region(stack.start, stack.end)
                })
                .collect(),
            Kind::Modules => modules(analysis),
            Kind::Writable => access([true, true, false]),
            Kind::ReadOnly => access([true, false, false]),
            Kind::RxOnly => access([true, false, true]),
            Kind::Inaccessible => access([false, false, false]),
        };
        Ok(Answer { regions })
    }
}

/// Each file, from its first to its last address.
fn modules(analysis: &Analysis) -> Vec<Region> {
    let mut modules: Vec<Region> = Vec::new();
    let mut last = None;
    for segment in &analysis.image.segments {
        let Some(file) = segment.file else {
            continue;
        };
        match modules.last_mut() {
            Some(module) if last == Some(file) => module.size = segment.end - module.address.0,
            _ => modules.push(Region {
                address: Address(segment.start),
                size: segment.size(),
                file: analysis.image.files.get(file as usize).cloned(),
                thread: None,
                stack_pointer: None,
            }),
        }
        last = Some(file);
    }
    modules
}
