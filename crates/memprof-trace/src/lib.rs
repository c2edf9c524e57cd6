//! Files of traced requests, one JSON document a line: what the requests cost, by group and by kind of cost.
//!
//! A file may have gigabytes. So a line is read, and forgotten: what stays are sums, the names of groups, and 16 bytes for
//! each cost of each request, which go to a temporary file where they are many (`columns.rs`).

mod cost_columns;
mod entry;
mod kinds;
mod line;
mod lines;
mod number;
mod stats;
mod summary;
mod time;
mod tracer;
mod value;

pub use stats::Cost;
pub use summary::{By, Options, Summary, read};

#[cfg(test)]
mod tests;
