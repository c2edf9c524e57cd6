//! Lists the blocks of a set.

use serde::{Deserialize, Serialize};

use super::allocated::Allocated;
use super::extension::{Extension, Origin};
use super::signature::Signature;
use super::{Address, Selection};
use crate::analysis::Analysis;
use crate::blocks::{Block, Kind};

/// The set, and the part of it to list.
#[derive(Deserialize)]
pub struct Question {
    selection: Selection,
    /// The end of the previous answer.
    #[serde(default)]
    from: u32,
    limit: usize,
    /// Whether to include the contents.
    #[serde(default)]
    contents: bool,
}

/// A part of the list.
#[derive(Serialize)]
pub struct Answer {
    blocks: Vec<Row>,
    /// The start of the next part; None at the end.
    next: Option<u32>,
}

#[derive(Serialize)]
struct Row {
    address: Address,
    size: u64,
    kind: Kind,
    signature: Option<String>,
    /// The C++ class whose objects have this signature.
    #[serde(skip_serializing_if = "Option::is_none")]
    class: Option<String>,
    #[serde(flatten)]
    allocated: Allocated,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    words: Vec<Option<Address>>,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    comments: Option<Comments>,
}

/// How a block of an extended set was reached.
#[derive(Serialize)]
struct Comments {
    /// The step that added it; None for a block of the set itself.
    added: Option<Step>,
    /// Steps that led to blocks already reached, after this one and before the next.
    again: Vec<Step>,
}

#[derive(Serialize)]
struct Step {
    rule: String,
    from: Option<Address>,
    to: Option<Address>,
}

impl Question {
    /// Lists the blocks.
    pub fn answer(&self, analysis: &Analysis) -> Result<Answer, String> {
        let comments = self.selection.comments(analysis)?;
        let mut answer = Answer { blocks: Vec::new(), next: None };
        (self.selection).from(analysis, self.from, |place, number, block| {
            if answer.blocks.len() == self.limit {
                answer.next = Some(place);
                return false;
            }
            answer.blocks.push(self.row(analysis, comments.as_deref(), place, (number, block)));
            true
        })?;
        Ok(answer)
    }

    fn row(
        &self,
        analysis: &Analysis,
        comments: Option<&Extension>,
        place: u32,
        (number, block): (u32, Block),
    ) -> Row {
        let words = if self.contents {
            let words = (block.address..block.end()).step_by(8);
            words.map(|at| analysis.image.word(at).map(Address)).collect()
        } else {
            Vec::new()
        };
        let signature = Signature::of(analysis, number, block);
        Row {
            address: Address(block.address),
            size: block.size,
            kind: block.kind,
            class: signature.class(analysis),
            signature: signature.text(),
            allocated: Allocated::of(analysis, number),
            words,
            comments: comments.map(|extension| self.comments(analysis, extension, place, number)),
        }
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
