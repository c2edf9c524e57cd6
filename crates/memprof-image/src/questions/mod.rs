//! Queries on an image: serde reads a question from JSON parameters and writes its answer. Addresses are strings such as
//! `0x7f12a0`.

mod allocated;
mod arenas;
mod contents;
mod count;
mod damage;
mod describe;
mod explain;
mod extension;
mod list;
mod objects;
mod overview;
mod reference_limits;
mod regions;
mod related;
mod selection;
pub(crate) mod signature;
mod summarize;

use std::fmt;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use crate::analysis::Analysis;

pub use arenas::{Arenas, Row as ArenaRow};
pub(crate) use selection::LastMembers;
pub use selection::Selection;

/// The reason why a question was not answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Unknown question or invalid parameters.
    Wrong(String),
    /// The image does not have the answer.
    Unknown(String),
}

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Refusal::Wrong(reason) | Refusal::Unknown(reason)) = self;
        formatter.write_str(reason)
    }
}

impl std::error::Error for Refusal {}

impl From<String> for Refusal {
    fn from(message: String) -> Refusal {
        Refusal::Wrong(message)
    }
}

/// Questions that cannot be answered if the blocks are unknown. Others return null for numbers of blocks, or are about a single
/// address.
const ABOUT_BLOCKS: [&str; 4] = ["arenas", "count", "list", "summarize"];

/// Answers a question in JSON.
///
/// # Errors
/// If the question is unknown, its parameters are invalid, or the image does not have the answer.
pub fn ask(analysis: &Analysis, question: &str, parameters: Value) -> Result<String, Refusal> {
    if ABOUT_BLOCKS.contains(&question) {
        if let Some(reason) = analysis.unknown_blocks() {
            return Err(Refusal::Unknown(reason));
        }
    }
    match question {
        "arenas" => answer(analysis, parameters, arenas::Question::answer),
        "contents" => answer(analysis, parameters, contents::Question::answer),
        "count" => answer(analysis, parameters, count::Question::answer),
        "damage" => answer(analysis, parameters, damage::Question::answer),
        "describe" => answer(analysis, parameters, describe::Question::answer),
        "explain" => answer(analysis, parameters, explain::Question::answer),
        "list" => answer(analysis, parameters, list::Question::answer),
        "objects" => answer(analysis, parameters, objects::Question::answer),
        "overview" => answer(analysis, parameters, overview::Question::answer),
        "regions" => answer(analysis, parameters, regions::Question::answer),
        "summarize" => answer(analysis, parameters, summarize::Question::answer),
        _ => Err(Refusal::Wrong(format!("no such question: {question:?}"))),
    }
}

fn answer<Q: DeserializeOwned, A: Serialize>(
    analysis: &Analysis,
    parameters: Value,
    compute: impl Fn(&Q, &Analysis) -> Result<A, String>,
) -> Result<String, Refusal> {
    let question = serde_json::from_value(parameters).map_err(|error| error.to_string())?;
    Ok(serde_json::to_string(&compute(&question, analysis)?).map_err(|error| error.to_string())?)
}

/// An address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address(pub u64);

impl Serialize for Address {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{:#x}", self.0))
    }
}

impl<'de> Deserialize<'de> for Address {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Address, D::Error> {
        let text = String::deserialize(deserializer)?;
        let digits = text.strip_prefix("0x").unwrap_or(&text);
        u64::from_str_radix(digits, 16)
            .map(Address)
            .map_err(|_| serde::de::Error::custom(format!("\"{text}\" is not an address")))
    }
}

/// The number and total size of blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Total {
    /// Number of blocks.
    pub count: u64,
    /// Usable bytes.
    pub bytes: u64,
}

impl Total {
    fn add(&mut self, bytes: u64) {
        self.count += 1;
        self.bytes += bytes;
    }

    fn and(self, other: Total) -> Total {
        Total { count: self.count + other.count, bytes: self.bytes + other.bytes }
    }
}
