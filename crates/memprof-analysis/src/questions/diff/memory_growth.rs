//! `memory`: growth of the process's RSS, by cause.

use std::ops::Deref;

use serde::Deserialize;

use super::Diff;
use crate::questions::Error;
use crate::questions::memory::ledger;
use memprof_heap::Heap;
use memprof_ledger::Growth;

/// `memory`: from the first heap to the last.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Question {}

impl Question {
    /// `None` if a dump lacks the measurements, or they are from different processes.
    pub(super) fn answer<H: Deref<Target = Heap>>(
        &self,
        diff: &Diff<H>,
    ) -> Result<Option<Growth>, Error> {
        let last = diff.later.as_ref().unwrap_or(&diff.after);
        let (Some(before), Some(after)) = (ledger(&diff.before)?, ledger(last)?) else {
            return Ok(None);
        };
        Ok(Some(before.until(&after)))
    }
}
