//! The blocks of a set, one by one.

use serde::{Deserialize, Serialize};

use super::extension::{Extension, Origin};
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
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    comments: Option<Comments>,
}

/// How an extended set came to a block.
#[derive(Serialize)]
struct Comments {
    /// What added it; None if it is a block of the set itself.
    added: Option<Step>,
    /// What led to blocks that had been reached before, after this one and before the next.
    again: Vec<Step>,
}

#[derive(Serialize)]
struct Step {
    rule: String,
    from: Option<Address>,
    to: Option<Address>,
}

impl Question {
    /// Lists them.
    pub fn answer(&self, analysis: &Analysis) -> Result<Answer, String> {
        let mut answer = Answer {
            blocks: Vec::new(),
            next: None,
        };
        let comments = self.selection.comments(analysis)?;
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
                    comments: (comments.as_deref())
                        .map(|extension| self.comments(analysis, extension, place, number)),
                });
                true
            })?;
        Ok(answer)
    }

    fn comments(
        &self,
        analysis: &Analysis,
        extension: &Extension,
        place: u32,
        number: u32,
    ) -> Comments {
        let address = |number| analysis.block(number).map(|block| Address(block.address));
        let step = |origin: Origin, to| Step {
            rule: self.selection.extend[origin.rule as usize].text.clone(),
            from: address(origin.member),
            to: address(to),
        };
        let again = extension.again(place);
        Comments {
            added: extension.origin(place).map(|origin| step(origin, number)),
            again: again.map(|(origin, to)| step(origin, to)).collect(),
        }
    }
}
