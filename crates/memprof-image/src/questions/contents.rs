//! The contents of memory, word by word.

use serde::{Deserialize, Serialize};

use super::Address;
use crate::analysis::Analysis;

/// Maximum size of an answer.
const MAX_SIZE: u64 = 1 << 20;

/// The address, and the number of bytes.
#[derive(Deserialize)]
pub struct Question {
    address: Address,
    size: u64,
}

/// Words from the address on, as far as the image has them.
#[derive(Serialize)]
pub struct Answer {
    address: Address,
    words: Vec<Address>,
}

impl Question {
    /// Reads the words.
    pub fn answer(&self, analysis: &Analysis) -> Result<Answer, String> {
        if self.size > MAX_SIZE {
            return Err(format!("{:#x} bytes are too many; {MAX_SIZE:#x} at most", self.size));
        }
        let Address(start) = self.address;
        let addresses = (start..start.saturating_add(self.size)).step_by(8);
        let words = addresses.map_while(|at| analysis.image.word(at).map(Address));
        Ok(Answer { address: self.address, words: words.collect() })
    }
}
