//! Exports a heap as Parquet files, `objects.parquet` and `edges.parquet`, for DuckDB, Spark, ClickHouse and pandas.
//!
//! Source of truth: <https://parquet.apache.org/docs/file-format/>. Uses only types that every reader supports: signed 64-bit
//! integers, UTF-8 texts, timestamps in microseconds, zstd. The dumps of many processes can be read as one table, as each row
//! names its dump.
//!
//! The writer is compiled only with the feature `parquet`.

#[cfg(feature = "parquet")]
mod columns;
#[cfg(feature = "parquet")]
mod tables;

#[cfg(feature = "parquet")]
pub use tables::{Options, write};
