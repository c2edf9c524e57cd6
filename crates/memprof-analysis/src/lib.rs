//! Questions to a heap and their answers ([`questions`]), the language that chooses objects ([`query`]), objects in an order
//! ([`objects`]), parts of a heap to work with ([`subset`]), and the formats of other tools ([`export`]).

pub mod export;
pub mod objects;
mod order;
pub mod query;
pub mod questions;
pub mod subset;
#[cfg(test)]
mod tests;
