//! What is written is read by other parsers, and adds up to the heap's own figures.

mod csv;
mod documents;
mod drawings;
mod frames;
mod heap_snapshot;
