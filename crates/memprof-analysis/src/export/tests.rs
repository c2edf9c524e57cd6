//! Other parsers read the output, and it adds up to the heap's own figures.

mod csv;
mod documents;
mod drawings;
mod frames;
mod heap_snapshot;
