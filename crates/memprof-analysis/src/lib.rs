//! Questions about a heap and their answers ([`questions`]), the query language that chooses objects ([`query`]), ordered
//! objects ([`objects`]), subsets of a heap ([`subset`]), and the formats of other tools ([`export`]).

pub mod export;
pub mod objects;
mod order;
pub mod query;
pub mod questions;
pub mod subset;
#[cfg(test)]
mod tests;
