//! The heap as data, without Ruby: what a dump says of each object ([`dump::record`]), the formats that it is written
//! in and read from ([`dump`]), the heap of a dump as a graph to ask ([`heap`], [`graph`]), the language that asks for
//! some of the objects ([`query`]), questions with their answers ([`analysis`]), parts of a heap to work with
//! ([`subset`]), and formats of other tools ([`export`]).

pub mod analysis;
pub mod dump;
pub mod export;
pub mod graph;
pub mod heap;
pub mod query;
pub mod subset;
