//! Comparison of heaps: what is new, what is gone, and what retains it.
//!
//! Two heaps show what was allocated in between and is still there. A third one, of some time later, shows which of that
//! survives: what survived is a leak, or on the way to become one; the rest was temporary. Tests of the same work between the dumps
//! make this sharp.

mod changed_objects;
mod changes;
mod filter;
mod identity;
mod interface;
mod keys;
mod memory_growth;
mod owners;
mod rows;
#[cfg(test)]
mod tests;
mod totals;
mod warnings;

use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;

use super::{Error, answer};
use filter::Chosen;
use memprof_heap::Heap;
use memprof_heap::graph::BitSet;

pub use changed_objects::{Changed, Objects};
pub use changes::Changes;
pub use interface::{Crossing, Interface, Kept};
pub use owners::{Owner, Owners};
pub use rows::{By, Row, Rows, Sort};
pub use totals::{Change, Sum, Totals};

/// Two heaps of a process, or three. `H` is what leads to a heap: `&Heap`, or an `Arc<Heap>`.
#[derive(Clone)]
pub struct Diff<H> {
    before: H,
    after: H,
    later: Option<H>,
    changes: Changes,
    survived: Option<BitSet>,
    warnings: Vec<String>,
    /// What the last query chose: a page puts several questions about the same objects.
    last: Arc<Mutex<Option<Answered>>>,
}

/// A query, and what it chose.
type Answered = (Option<String>, Arc<Chosen>);

impl<H: Deref<Target = Heap>> Diff<H> {
    /// Compares heaps, in the order in which their dumps were written.
    ///
    /// # Errors
    /// If an index cannot be read.
    pub fn new(before: H, after: H, later: Option<H>) -> Result<Diff<H>, Error> {
        let changes = Changes::between(&before, &after)?;
        let mut warnings = changes.warnings.clone();
        let survived = match &later {
            Some(later) => {
                let since = Changes::between(&after, later)?;
                warnings.extend(
                    since
                        .warnings
                        .into_iter()
                        .filter(|warning| !changes.warnings.contains(warning)),
                );
                let mut survived = changes.new.clone();
                survived.subtract(&since.gone);
                Some(survived)
            }
            None => None,
        };
        Ok(Diff {
            before,
            after,
            later,
            changes,
            survived,
            warnings,
            last: Arc::default(),
        })
    }

    /// The objects that a query asks for.
    fn chosen(&self, query: Option<&str>) -> Result<Arc<Chosen>, Error> {
        let last = || self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let known = last()
            .as_ref()
            .filter(|(known, _)| known.as_deref() == query)
            .cloned();
        if let Some((_, chosen)) = known {
            return Ok(chosen);
        }
        let chosen = Arc::new(Chosen::of(self, query)?);
        *last() = Some((query.map(str::to_owned), Arc::clone(&chosen)));
        Ok(chosen)
    }

    /// The heap before.
    pub fn before(&self) -> &H {
        &self.before
    }

    /// The heap after.
    pub fn after(&self) -> &H {
        &self.after
    }

    /// The heap of some time later.
    pub fn later(&self) -> Option<&H> {
        self.later.as_ref()
    }

    /// Which objects are new, and which are gone.
    pub fn changes(&self) -> &Changes {
        &self.changes
    }

    /// New objects that were there still some time later; `None` if there is no third heap.
    pub fn survived(&self) -> Option<&BitSet> {
        self.survived.as_ref()
    }

    /// What may make the comparison wrong, in sentences.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Answers a question in JSON.
    ///
    /// # Errors
    /// If there is no such question, its parameters make no sense, or an index cannot be read.
    pub fn ask(&self, question: &str, parameters: Value) -> Result<String, Error> {
        match question {
            "totals" => answer(self, parameters, totals::Question::answer),
            "memory" => answer(self, parameters, memory_growth::Question::answer),
            "rows" => answer(self, parameters, rows::Question::answer),
            "owners" => answer(self, parameters, owners::Question::answer),
            "interface" => answer(self, parameters, interface::Question::answer),
            "objects" => answer(self, parameters, changed_objects::Question::answer),
            _ => Err(Error::Question(format!(
                "no such question about two heaps: {question:?}"
            ))),
        }
    }
}
