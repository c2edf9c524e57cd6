//! What makes numbers about an image too low.

use serde::{Deserialize, Serialize};

use crate::analysis::Analysis;
use crate::glibc::Corruption;

/// Has no parameters.
#[derive(Deserialize)]
pub struct Question {}

/// Memory that is missing, damaged or of another allocator.
#[derive(Serialize)]
pub struct Answer {
    /// Bytes missing from the file.
    missing: u64,
    /// An allocator used beside glibc's, whose blocks are not counted.
    uncounted: Option<&'static str>,
    corruptions: Vec<Corruption>,
    /// Bytes of arenas that are not valid chunks.
    skipped: u64,
}

impl Question {
    /// Says it, without a search for references.
    pub fn answer(&self, analysis: &Analysis) -> Result<Answer, String> {
        Ok(Answer::of(analysis))
    }
}

impl Answer {
    pub(super) fn of(analysis: &Analysis) -> Answer {
        Answer {
            missing: analysis.image.missing,
            uncounted: analysis.uncounted_allocator(),
            corruptions: analysis.heap.corruptions.clone(),
            skipped: analysis.heap.skipped,
        }
    }
}
