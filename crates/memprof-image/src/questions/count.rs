//! The number of blocks in a set.

use serde::Deserialize;

use super::{Selection, Total};
use crate::analysis::Analysis;

/// The set.
#[derive(Deserialize)]
#[serde(transparent)]
pub struct Question(Selection);

impl Question {
    /// Sums up the blocks.
    pub fn answer(&self, analysis: &Analysis) -> Result<Total, String> {
        let mut total = Total::default();
        self.0.each(analysis, |_, block| total.add(block.size))?;
        Ok(total)
    }
}
