//! `memory`: the RSS of the process by cause, from the dump's header and the sizes of the objects.

use serde::Deserialize;

use super::Error;
use super::overview::process_facts;
use memprof_dump::record::Kind;
use memprof_heap::Heap;
use memprof_ledger::{Facts, HeapSizes, Ledger};

/// `memory`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Question {}

impl Question {
    /// The ledger; `None` if the dump lacks the measurements.
    ///
    /// # Errors
    /// If the index cannot be read.
    pub fn answer(&self, heap: &Heap) -> Result<Option<Ledger>, Error> {
        ledger(heap)
    }
}

pub(super) fn ledger(heap: &Heap) -> Result<Option<Ledger>, Error> {
    let header = process_facts::header(heap);
    let facts = (header.get("memory"))
        .and_then(|memory| serde_json::from_value::<Facts>(memory.clone()).ok());
    let Some(facts) = facts else {
        return Ok(None);
    };
    Ok(Some(Ledger::new(facts, sizes(heap)?)))
}

/// `None` if the dump lacks the slot sizes.
fn sizes(heap: &Heap) -> Result<Option<HeapSizes>, Error> {
    let (memsizes, groups) = (heap.memsizes()?, heap.group_numbers()?);
    let names: Vec<Option<&str>> = (heap.groups().iter())
        .map(|group| {
            let name = group.name.map(|name| heap.name(name));
            name.filter(|_| matches!(group.kind, Kind::IMEMO | Kind::DATA))
        })
        .collect();
    let mut sizes = HeapSizes { memprof: heap.source.own.outside, ..HeapSizes::default() };
    for (id, slot) in heap.slots().into_iter().enumerate() {
        let group = groups.get(id).copied().unwrap_or(0);
        let name = names.get(group as usize).copied().flatten();
        sizes.add(u64::from(slot), memsizes.get(id as u32), name);
    }
    Ok((sizes.slots > 0).then_some(sizes))
}
