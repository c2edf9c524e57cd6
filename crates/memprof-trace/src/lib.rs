//! Files of traced requests, one JSON document a line: the costs of requests, by group and by kind of cost.
//!
//! A file may have gigabytes, so lines are read and discarded, except for sums, names of groups, and 16 bytes for each cost of
//! each request, which go to a temporary file if there are many (`cost_columns.rs`). A [`Log`] also keeps the costs of each
//! request, for pages that query one file many times.

mod allocations;
mod cost_columns;
mod entry;
mod kinds;
mod line;
mod lines;
mod listed;
mod log;
mod log_questions;
mod number;
mod requests;
pub mod sql;
mod statements;
mod stats;
mod summary;
mod time;
mod tracer;
mod value;

pub use allocations::AllocationRow;
pub use kinds::Unit;
pub use log::Log;
pub use statements::Row;
pub use stats::Cost;
pub use summary::{By, Options, Summary, read};
pub use time::text as time_text;

/// Whether a line is a traced request, or a traced block.
#[must_use]
pub fn is_request(line: &str) -> bool {
    line::Line::read(line).is_some()
}

#[cfg(test)]
mod tests;
