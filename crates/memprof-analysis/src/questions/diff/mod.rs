//! Comparison of heaps: new and gone objects, and what retains the new ones.
//!
//! Two heaps show the objects that were allocated in between and are still present. A third, later heap shows which of them
//! survive: survivors are leaks, or about to become leaks; the rest was temporary. The comparison is most precise if the process
//! does the same work between all dumps.

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

use super::{Error, Remark, answer};
use filter::Chosen;
use memprof_heap::Heap;
use memprof_heap::graph::BitSet;

pub use changed_objects::{Changed, Objects};
pub use changes::Changes;
pub use interface::{Crossing, Interface, Kept};
pub use owners::{Owner, Owners};
pub use rows::{By, Row, Rows, Sort};
pub use totals::{Change, Sum, Totals};

/// Two or three heaps of a process. `H` refers to a heap: `&Heap` or `Arc<Heap>`.
#[derive(Clone)]
pub struct Diff<H> {
    before: H,
    after: H,
    later: Option<H>,
    changes: Changes,
    survived: Option<BitSet>,
    warnings: Vec<Remark>,
    /// Objects of the last query: a page asks several questions about the same objects.
    last: Arc<Mutex<Option<Answered>>>,
}

/// A query and its objects.
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
        Ok(Diff { before, after, later, changes, survived, warnings, last: Arc::default() })
    }

    /// The objects that match a query.
    fn chosen(&self, query: Option<&str>) -> Result<Arc<Chosen>, Error> {
        let last = || self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let known = last().as_ref().filter(|(known, _)| known.as_deref() == query).cloned();
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

    /// The later heap.
    pub fn later(&self) -> Option<&H> {
        self.later.as_ref()
    }

    /// Which objects are new, and which are gone.
    pub fn changes(&self) -> &Changes {
        &self.changes
    }

    /// New objects that still exist in the later heap; `None` if there is none.
    pub fn survived(&self) -> Option<&BitSet> {
        self.survived.as_ref()
    }

    /// Possible errors of the comparison.
    pub fn warnings(&self) -> &[Remark] {
        &self.warnings
    }

    /// Answers a question in JSON.
    ///
    /// # Errors
    /// If the question is unknown, its parameters are invalid, or an index cannot be read.
    pub fn ask(&self, question: &str, parameters: Value) -> Result<String, Error> {
        match question {
            "totals" => answer(self, parameters, totals::Question::answer),
            "memory" => answer(self, parameters, memory_growth::Question::answer),
            "rows" => answer(self, parameters, rows::Question::answer),
            "owners" => answer(self, parameters, owners::Question::answer),
            "interface" => answer(self, parameters, interface::Question::answer),
            "objects" => answer(self, parameters, changed_objects::Question::answer),
            _ => Err(Error::Question(format!("no such question about two heaps: {question:?}"))),
        }
    }
}
