//! Objects of Ruby by type, with the blocks that they own.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Total;
use crate::analysis::Analysis;
use crate::blocks::Kind;
use crate::ruby_pages::ObjectType;

/// Nothing is asked.
#[derive(Deserialize)]
pub struct Question {}

/// Types, most bytes first.
#[derive(Serialize)]
pub struct Answer {
    rows: Vec<Row>,
    /// Slots that are empty.
    empty: Total,
}

#[derive(Default, Serialize)]
struct Row {
    r#type: &'static str,
    /// Objects, and bytes of their slots.
    #[serde(flatten)]
    slots: Total,
    /// Objects that nothing references any more.
    garbage: u64,
    /// Blocks that they own.
    blocks: Total,
}

impl Question {
    /// Adds them up.
    pub fn answer(&self, analysis: &Analysis) -> Result<Answer, String> {
        let mut rows: BTreeMap<ObjectType, Row> = BTreeMap::new();
        let mut empty = Total::default();
        let mut words = analysis.image.words(1 << 16);
        for page in &analysis.ruby.pages {
            for slot in page.each_slot() {
                let flags = words.at(slot);
                let Some(object) = flags.and_then(ObjectType::of_flags) else {
                    empty.add(page.slot_size);
                    continue;
                };
                let row = rows.entry(object).or_default();
                row.slots.add(page.slot_size);
                let node = analysis.node_at(slot);
                if !node.is_some_and(|node| analysis.is_anchored(node)) {
                    row.garbage += 1;
                }
            }
        }
        for (number, block) in analysis.heap.blocks.iter().enumerate() {
            if block.kind != Kind::Used {
                continue;
            }
            let owner = analysis.owner(number as u32);
            let object = owner.and_then(|(owner, _)| analysis.object_type(owner));
            if let Some(row) = object.and_then(|object| rows.get_mut(&object)) {
                row.blocks.add(block.size);
            }
        }
        let mut rows: Vec<Row> = rows
            .into_iter()
            .map(|(object, row)| Row {
                r#type: object.name(),
                ..row
            })
            .collect();
        rows.sort_by_key(|row| std::cmp::Reverse(row.slots.bytes + row.blocks.bytes));
        Ok(Answer { rows, empty })
    }
}
