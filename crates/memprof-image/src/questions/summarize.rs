//! The blocks of a set by their signatures and patterns; those that have neither by their sizes.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::signature::Signature;
use super::{Selection, Total};
use crate::analysis::Analysis;

/// The set.
#[derive(Deserialize)]
#[serde(transparent)]
pub struct Question(Selection);

/// Groups of blocks, most bytes first.
#[derive(Serialize)]
pub struct Answer {
    total: Total,
    rows: Vec<Row>,
    /// Blocks that cannot be told apart but by their sizes.
    unrecognized: Total,
    sizes: Vec<Size>,
}

#[derive(Serialize)]
struct Row {
    /// `signature` or `pattern`.
    kind: &'static str,
    name: String,
    /// Where the signature points to.
    place: Option<String>,
    #[serde(flatten)]
    total: Total,
}

#[derive(Serialize)]
struct Size {
    size: u64,
    #[serde(flatten)]
    total: Total,
}

impl Question {
    /// Adds them up.
    pub fn answer(&self, analysis: &Analysis) -> Result<Answer, String> {
        let mut groups: HashMap<Signature, Total> = HashMap::new();
        let mut sizes: HashMap<u64, Total> = HashMap::new();
        let (mut total, mut unrecognized) = (Total::default(), Total::default());
        self.0.each(analysis, |number, block| {
            total.add(block.size);
            match Signature::of(analysis, number, block) {
                Signature::Unknown => {
                    unrecognized.add(block.size);
                    sizes.entry(block.size).or_default().add(block.size);
                }
                signature => groups.entry(signature).or_default().add(block.size),
            }
        })?;
        let mut rows: Vec<Row> = groups
            .into_iter()
            .filter_map(|(signature, total)| {
                let (kind, place) = match signature {
                    Signature::Word(word) => ("signature", analysis.in_file(word)),
                    _ => ("pattern", None),
                };
                Some(Row {
                    kind,
                    name: signature.text()?,
                    place,
                    total,
                })
            })
            .collect();
        rows.sort_unstable_by(|a, b| (b.total.bytes, &a.name).cmp(&(a.total.bytes, &b.name)));
        let mut sizes: Vec<Size> = sizes
            .into_iter()
            .map(|(size, total)| Size { size, total })
            .collect();
        sizes.sort_unstable_by_key(|row| (std::cmp::Reverse(row.total.bytes), row.size));
        Ok(Answer {
            total,
            rows,
            unrecognized,
            sizes,
        })
    }
}
