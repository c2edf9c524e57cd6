//! The blocks of a set, one by one.

use serde::{Deserialize, Serialize};

use super::signature::Signature;
use super::{Address, Selection};
use crate::analysis::Analysis;
use crate::blocks::Kind;

/// The set, and which part of it.
#[derive(Deserialize)]
pub struct Question {
    selection: Selection,
    /// Where the last answer ended.
    #[serde(default)]
    from: u32,
    limit: usize,
    /// Whether what they contain is wanted.
    #[serde(default)]
    contents: bool,
}

/// A part of the list.
#[derive(Serialize)]
pub struct Answer {
    blocks: Vec<Row>,
    /// Where the list goes on; None at its end.
    next: Option<u32>,
}

#[derive(Serialize)]
struct Row {
    address: Address,
    size: u64,
    kind: Kind,
    signature: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    words: Vec<Option<Address>>,
}

impl Question {
    /// Lists them.
    pub fn answer(&self, analysis: &Analysis) -> Result<Answer, String> {
        let mut answer = Answer {
            blocks: Vec::new(),
            next: None,
        };
        self.selection
            .from(analysis, self.from, |place, number, block| {
                if answer.blocks.len() == self.limit {
                    answer.next = Some(place);
                    return false;
                }
                let words = if self.contents {
                    let words = (block.address..block.end()).step_by(8);
                    words
                        .map(|at| analysis.image.word(at).map(Address))
                        .collect()
                } else {
                    Vec::new()
                };
                answer.blocks.push(Row {
                    address: Address(block.address),
                    size: block.size,
                    kind: block.kind,
                    signature: Signature::of(analysis, number, block).text(),
                    words,
                });
                true
            })?;
        Ok(answer)
    }
}
