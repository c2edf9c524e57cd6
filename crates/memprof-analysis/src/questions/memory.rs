//! `memory`: the RSS of the process by cause, from the dump's header and the sizes of the objects.

use serde::Deserialize;

use super::Error;
use super::leaked::{has_blocks, leaked, slots};
use super::overview::process_facts;
use memprof_dump::record::Kind;
use memprof_heap::{Heap, NONE};
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
    let name = |id: u32| {
        let group = groups.get(id as usize).copied().unwrap_or(0);
        names.get(group as usize).copied().flatten()
    };
    let mut sizes = HeapSizes { memprof: heap.source.own.outside, ..HeapSizes::default() };
    let owners = owners_of_blocks(heap)?;
    for (id, slot) in (0..).zip(slots(heap)?) {
        match owners.as_ref().and_then(|owners| owners.get(id as usize)) {
            Some(Owner::Object(owner)) => {
                sizes.add(0, memsizes.get(id), name(*owner).filter(|name| *name == ISEQ));
            }
            Some(Owner::Native) => {}
            _ => sizes.add(u64::from(slot), memsizes.get(id), name(id)),
        }
    }
    Ok((sizes.slots > 0).then_some(sizes))
}

/// The internal name of instruction sequences.
const ISEQ: &str = "iseq";

/// What retains a block of malloc.
#[derive(Clone, Copy)]
enum Owner {
    /// It is an object itself.
    Itself,
    /// The nearest object that dominates it; for blocks of garbage, the block itself.
    Object(u32),
    /// No object does.
    Native,
}

/// The owner of each block, in a heap that has blocks.
fn owners_of_blocks(heap: &Heap) -> Result<Option<Vec<Owner>>, Error> {
    if !has_blocks(heap) {
        return Ok(None);
    }
    let dominators = heap.dominators()?;
    let Some(leaked) = leaked(heap, |id| dominators.reaches(id))? else {
        return Ok(None);
    };
    let groups = heap.group_numbers()?;
    let is_block = |id: u32| {
        let group = groups.get(id as usize).and_then(|&group| heap.groups().get(group as usize));
        group.is_some_and(|group| group.kind == Kind::BLOCK)
    };
    let mut owners = vec![Owner::Itself; heap.len() as usize];
    for id in (0..heap.len()).filter(|&id| is_block(id)) {
        owners[id as usize] = if leaked.contains(id) { Owner::Native } else { Owner::Object(id) };
    }
    for (id, _) in heap.free_blocks() {
        owners[id as usize] = Owner::Native;
    }
    // Dominators come first.
    for &id in dominators.order.iter().filter(|&&id| is_block(id)) {
        let above = dominators.parent_of(id).filter(|&above| above != NONE && above < heap.len());
        owners[id as usize] = match above.map(|above| (above, owners[above as usize])) {
            Some((object, Owner::Itself)) => Owner::Object(object),
            Some((_, of_block)) => of_block,
            None => Owner::Native,
        };
    }
    Ok(Some(owners))
}

#[cfg(test)]
mod tests {
    use super::*;
    use memprof_heap::testing::{heap_of, thing};

    #[test]
    fn blocks_belong_to_the_objects_that_retain_them() {
        let object = |address, size| {
            let mut made = thing(address, Kind::OBJECT, "Plan");
            made.size = size;
            made
        };
        let block = |address, size| {
            let mut made = thing(address, Kind::BLOCK, "");
            (made.size, made.slot) = (size, 0);
            made
        };
        let mut iseq = thing(0x1100, Kind::IMEMO, "").named("iseq").to("", 0x1200);
        iseq.size = 40;
        let things = [
            object(0x1000, 40).to("", 0x2000),
            iseq,
            block(0x1200, 7),
            // Of the object, directly and not.
            block(0x2000, 100).to("", 0x2100),
            block(0x2100, 20),
            // Of C code: of a variable, directly and not, and leaked.
            block(0x3000, 1000).to("", 0x3100),
            block(0x3100, 2000),
            block(0x4000, 4000),
            // Of garbage.
            object(0x5000, 40).to("", 0x5100),
            block(0x5100, 3),
        ];
        let roots: [(&str, &[u64]); 2] =
            [("vm", &[0x1000, 0x1100]), ("static libc.so.6", &[0x3000])];
        let heap = heap_of(r#"{"blocks":true}"#, &roots, &things);
        let sizes = sizes(&heap).expect("in memory").expect("slots");
        assert_eq!((sizes.slots, sizes.outside, sizes.iseqs), (120, 123, 7));
    }
}
