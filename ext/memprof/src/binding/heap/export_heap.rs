//! Exports heaps in the formats of other programs.

use std::io::{BufWriter, Write};
use std::sync::Arc;

use magnus::{Error, Module, Object, RClass, Ruby, Value, function, method};
use memprof_analysis::export::{self, Counts, Format, Options};
use memprof_analysis::questions::{self, Selection};
use memprof_heap::graph::BitSet;

use super::super::dump::duplicate;
use super::super::exceptions::of_question;
use super::super::job;
use super::NativeHeap;
use crate::ruby_values::to_ruby;

pub fn define(heap: RClass) -> Result<(), Error> {
    heap.define_method("export", method!(export, 4))?;
    heap.define_singleton_method("export_formats", function!(formats, 0))
}

/// Name of each format and its usual file extension.
fn formats() -> Vec<(&'static str, &'static str)> {
    Format::ALL.iter().map(|format| (format.name(), format.ending())).collect()
}

/// Writes the heap, or the objects selected by a filter, to a file descriptor. Returns statistics.
fn export(
    ruby: &Ruby,
    native: &NativeHeap,
    descriptor: i32,
    format: String,
    filter: Option<String>,
    (limit, depth, min_retained): (Option<usize>, Option<u32>, u64),
) -> Result<Value, Error> {
    let format = Format::of_name(&format).ok_or_else(|| {
        Error::new(ruby.exception_arg_error(), format!("unknown format {format:?}"))
    })?;
    let file = duplicate(ruby, descriptor)?;
    let opened = Arc::clone(&native.0);
    let counts = job::run(ruby, "export", move |_| -> Result<Counts, questions::Error> {
        let heap = &opened.heap;
        let members = match &filter {
            Some(filter) => {
                let selection = Selection::new(heap, Some(filter))?;
                Some(BitSet::of(heap.root() as usize + 1, selection.iter()))
            }
            None => None,
        };
        let options = Options { members: members.as_ref(), limit, depth, min_retained };
        let mut out = BufWriter::with_capacity(1 << 16, file);
        let counts = export::write(heap, format, &options, &mut out)?;
        out.flush()?;
        Ok(counts)
    })?;
    let counts = counts.map_err(|error| of_question(ruby, &error))?;
    to_ruby(ruby, &counts)
}
