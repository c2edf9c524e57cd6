//! A heap as Parquet files: `objects.parquet` and `edges.parquet`, for DuckDB, Spark, ClickHouse, pandas.
//!
//! Source of truth: <https://parquet.apache.org/docs/file-format/>. Only what all readers know is used: signed integers of 64
//! bits, texts in UTF-8, timestamps in microseconds, zstd. Dumps of many processes can be read as one table: each row says
//! which dump it is of.
//!
//! The writer is compiled with the feature `parquet` only.

#[cfg(feature = "parquet")]
mod columns;
#[cfg(feature = "parquet")]
mod tables;

#[cfg(feature = "parquet")]
pub use tables::{Options, write};
