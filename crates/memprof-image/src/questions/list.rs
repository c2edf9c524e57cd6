//! The blocks of a set, one by one.

use std::cmp::Reverse;

use serde::{Deserialize, Serialize};

use super::allocated::Allocated;
use super::extension::{Extension, Origin};
use super::signature::Signature;
use super::{Address, Selection};
use crate::analysis::Analysis;
use crate::blocks::{Block, Kind};

/// The set, and which part of it.
#[derive(Deserialize)]
pub struct Question {
    selection: Selection,
    /// Where the last answer ended.
    #[serde(default)]
    from: u32,
    limit: usize,
    /// Blocks that are left out before the first one.
    #[serde(default)]
    offset: usize,
    #[serde(default)]
    sort: Sort,
    /// Whether what they contain is wanted.
    #[serde(default)]
    contents: bool,
}

/// The order of the list.
#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Sort {
    /// That of the set: mostly by address.
    #[default]
    Set,
    /// The largest first, those of a size by address.
    Size,
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
    /// The class of C++ whose objects have this signature.
    #[serde(skip_serializing_if = "Option::is_none")]
    class: Option<String>,
    #[serde(flatten)]
    allocated: Allocated,
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
        let comments = self.selection.comments(analysis)?;
        let row =
            |place, number, block| self.row(analysis, comments.as_deref(), place, (number, block));
        let mut answer = Answer {
            blocks: Vec::new(),
            next: None,
        };
        if self.sort == Sort::Size {
            let mut all = Vec::new();
            (self.selection).from(analysis, 0, |place, number, block| {
                all.push((Reverse(block.size), place, number));
                true
            })?;
            all.sort_unstable();
            let part = all.into_iter().skip(self.offset).take(self.limit);
            answer.blocks = part
                .filter_map(|(_, place, number)| Some(row(place, number, analysis.block(number)?)))
                .collect();
            return Ok(answer);
        }
        let mut left_out = 0;
        (self.selection).from(analysis, self.from, |place, number, block| {
            if left_out < self.offset {
                left_out += 1;
                return true;
            }
            if answer.blocks.len() == self.limit {
                answer.next = Some(place);
                return false;
            }
            answer.blocks.push(row(place, number, block));
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
            words
                .map(|at| analysis.image.word(at).map(Address))
                .collect()
        } else {
            Vec::new()
        };
        Row {
            address: Address(block.address),
            size: block.size,
            kind: block.kind,
            class: analysis
                .signature(block)
                .and_then(|word| analysis.class_of_cxx(word)),
            signature: Signature::of(analysis, number, block).text(),
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
