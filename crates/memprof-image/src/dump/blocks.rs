//! Dumps malloc blocks as objects: their referrers, and their conservative references.

use std::io;

use memprof_dump::Writer;
use memprof_dump::record::{
    Allocation, Detail, Edge, Field, Flags, Kind, Label, NameId, Object as Record, STATE, Site,
    Value,
};
use memprof_heap::graph::BitSet;

use super::edges::{BATCH, plain};
use super::sizes::exact;
use super::{CONSERVATIVE, Dump, STEP};
use crate::blocks;
use crate::questions::signature::Signature;
use crate::ruby_heap::{Object, RubyHeap};

/// The label of references to blocks with an object's contents.
const CONTENTS: &str = "contents";

impl<W: Writer> Dump<'_, '_, W> {
    /// References of an object to the blocks with its contents, as far as its type determines them.
    pub(super) fn contents(&mut self, object: &Object) -> io::Result<()> {
        if self.contents_of_objects.is_none() {
            return Ok(());
        }
        let label = Label::Role(self.tables.intern(CONTENTS));
        let edges: Vec<Edge<'_>> = contents_of(self.heap, object)
            .map(|block| plain(label, Value::Address(block)))
            .collect();
        self.pass(&edges)
    }

    /// The reference that a word makes to a used block. A block with the contents of an object has none: the VM frees it
    /// with that object, so the word is a remnant, or looks like an address by chance.
    pub(super) fn block_edge(&self, label: Label, number: u32) -> Option<Edge<'static>> {
        let block = self.heap.analysis.block(number)?;
        let contents = self.contents_of_objects.as_ref()?;
        let is_one = block.kind == blocks::Kind::Used && !contents.contains(number);
        is_one.then(|| plain(label, Value::Address(block.address)))
    }

    /// Writes all blocks, if requested. Those that are not used reference nothing: their contents are remnants.
    pub(super) fn blocks(&mut self) -> io::Result<()> {
        if self.contents_of_objects.is_none() {
            return Ok(());
        }
        let analysis = self.heap.analysis;
        let name = self.tables.intern(STATE);
        let state = |text| Field { name, value: Value::Name(text) };
        let free = [state(self.tables.intern("free"))];
        let cached = [state(self.tables.intern("cached"))];
        for (number, block) in (0..).zip(analysis.heap.blocks.iter()) {
            if number as usize % STEP == 0 {
                self.check_stop()?;
            }
            let type_name = match Signature::of(analysis, number, block) {
                Signature::Word(word) => self.name_of_signature(word),
                Signature::Container(container) => Some(self.tables.intern(container.name())),
                Signature::Ruby(_) | Signature::Unknown => None,
            };
            let record = Record {
                address: block.address,
                kind: Kind::BLOCK,
                class: 0,
                class_name: None,
                slot_size: 0,
                memsize: block.size,
                shape_id: None,
                flags: Flags::default(),
                age: None,
                object_id: None,
                detail: match type_name {
                    Some(_) => Detail::Data { type_name },
                    None => Detail::None,
                },
                fields: match block.kind {
                    blocks::Kind::Used => &[],
                    blocks::Kind::Free => &free,
                    blocks::Kind::ThreadCached => &cached,
                },
                allocation: self.allocation(number),
            };
            self.writer.object(&self.tables, &record)?;
            let contents = self.contents_of_objects.as_ref();
            let is_used = block.kind == blocks::Kind::Used;
            if is_used && !contents.is_some_and(|contents| contents.contains(number)) {
                self.edges_of_block(number)?;
            }
            self.writer.end(&self.tables)?;
        }
        Ok(())
    }

    fn name_of_signature(&mut self, signature: u64) -> Option<NameId> {
        if let Some(name) = self.signatures.get(&signature) {
            return *name;
        }
        let name = self.heap.analysis.name_of_signature(signature);
        let name = name.map(|name| self.tables.intern(&name));
        self.signatures.insert(signature, name);
        name
    }

    /// The allocation site in the recording.
    fn allocation(&mut self, number: u32) -> Option<Allocation> {
        let place = self.heap.analysis.recorded()?.place(number)?;
        let (file, line) = match place.location.rsplit_once(':') {
            Some((file, line)) if line.bytes().all(|byte| byte.is_ascii_digit()) => {
                (file, line.parse().unwrap_or(0))
            }
            _ => (place.location.as_str(), 0),
        };
        let method = (!place.method.is_empty()).then(|| self.tables.intern(&place.method));
        let file = self.tables.intern(file);
        let site = self.tables.intern_site(Site { file, line, method });
        Some(Allocation { site, caller: None, generation: 0, time: 0 })
    }

    fn edges_of_block(&mut self, number: u32) -> io::Result<()> {
        let heap = self.heap;
        let references = heap.analysis.references();
        let label = Label::Role(self.tables.intern(CONSERVATIVE));
        let mut batch = Vec::new();
        for target in references.graph().edges(number) {
            if target == number {
                continue;
            }
            if target < references.slots().start {
                batch.extend(self.block_edge(label, target));
            } else if heap.kind_of_node(target).is_some() {
                batch.push(plain(label, Value::Address(heap.address(target))));
            }
            if batch.len() >= BATCH {
                self.check_stop()?;
                self.pass(&batch)?;
                batch.clear();
            }
        }
        self.pass(&batch)
    }
}

/// Blocks with the contents of objects, as far as their types determine them.
pub(super) fn contents_of_objects(heap: &RubyHeap<'_>) -> BitSet {
    let blocks = &heap.analysis.heap.blocks;
    let mut found = BitSet::new(blocks.len());
    let contents = heap.objects().flat_map(|object| contents_of(heap, &object).collect::<Vec<_>>());
    for number in contents.filter_map(|block| blocks.at(block)) {
        found.insert(number);
    }
    found
}

fn contents_of(heap: &RubyHeap<'_>, object: &Object) -> impl Iterator<Item = u64> {
    let blocks = exact(heap, object).into_iter().flatten();
    blocks.filter(move |&block| heap.block(block).is_some())
}
