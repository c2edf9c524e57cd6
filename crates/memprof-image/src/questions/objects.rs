//! Ruby objects by type, with the blocks that they own.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Total;
use crate::analysis::Analysis;
use crate::blocks::Kind;
use crate::ruby_pages::ObjectType;

/// Has no parameters.
#[derive(Deserialize)]
pub struct Question {}

/// Types, most bytes first.
#[derive(Serialize)]
pub struct Answer {
    rows: Vec<Row>,
    /// Empty slots.
    empty: Total,
    /// The reason why blocks are unknown.
    unknown: Option<String>,
}

#[derive(Default, Serialize)]
struct Row {
    r#type: &'static str,
    /// Number of objects, and bytes of their slots.
    #[serde(flatten)]
    slots: Total,
    /// Unreachable objects; None if blocks are unknown, as references lead through them.
    garbage: Option<u64>,
    /// Blocks owned by the objects.
    blocks: Option<Total>,
}

impl Question {
    /// Sums up objects and blocks.
    pub fn answer(&self, analysis: &Analysis) -> Result<Answer, String> {
        let mut rows: BTreeMap<ObjectType, Row> = BTreeMap::new();
        let mut empty = Total::default();
        let mut words = analysis.image.words(1 << 16);
        let unknown = analysis.unknown_blocks();
        let is_known = unknown.is_none();
        let new = || Row {
            garbage: is_known.then_some(0),
            blocks: is_known.then(Total::default),
            ..Row::default()
        };
        for page in &analysis.ruby.pages {
            for slot in page.each_slot() {
                let flags = words.at(slot);
                let Some(object) = flags.and_then(ObjectType::of_flags) else {
                    empty.add(page.slot_size);
                    continue;
                };
                let row = rows.entry(object).or_insert_with(new);
                row.slots.add(page.slot_size);
                let Some(garbage) = &mut row.garbage else {
                    continue;
                };
                let node = analysis.node_at(slot);
                if !node.is_some_and(|node| analysis.is_anchored(node)) {
                    *garbage += 1;
                }
            }
        }
        for (number, block) in analysis.heap.blocks.iter().enumerate() {
            if block.kind != Kind::Used {
                continue;
            }
            let owner = analysis.owner(number as u32);
            let object = owner.and_then(|(owner, _)| analysis.object_type(owner));
            let row = object.and_then(|object| rows.get_mut(&object));
            if let Some(blocks) = row.and_then(|row| row.blocks.as_mut()) {
                blocks.add(block.size);
            }
        }
        let mut rows: Vec<Row> =
            rows.into_iter().map(|(object, row)| Row { r#type: object.name(), ..row }).collect();
        let bytes = |row: &Row| row.slots.bytes + row.blocks.unwrap_or_default().bytes;
        rows.sort_by_key(|row| std::cmp::Reverse(bytes(row)));
        Ok(Answer { rows, empty, unknown })
    }
}
