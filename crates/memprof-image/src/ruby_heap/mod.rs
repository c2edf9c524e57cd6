//! Ruby objects in an image: the contents of their slots, and their memory. Layouts that differ between versions are learned from
//! the objects themselves, by invariants that most of them satisfy; layouts that cannot be learned stay unknown.

mod arrays;
mod cached_image;
mod classes;
mod constants;
mod data_types;
mod global_variables;
mod hashes;
mod id_names;
mod id_tables;
mod instance_variables;
mod shapes;
mod st_tables;
mod strings;
mod structs;
mod values;

use std::ops::{Deref, Range};
use std::sync::Arc;

use memprof_dump::record::Kind;
use rustc_hash::FxHashMap;

use crate::analysis::Analysis;
use crate::image::WORD;
use crate::ranges;
use crate::references::Node;

pub(crate) use hashes::Entries;
pub(crate) use instance_variables::{Values, VariableName};
pub(crate) use strings::{StringFacts, code_range, encoding, is_fstring};
pub(crate) use values::Immediate;

use cached_image::CachedImage;

/// The header of each object: flags and class.
pub(crate) const HEADER: u64 = 2 * WORD;
/// The first type-specific bit of the flags.
const USER: u32 = 12;
/// Maximum number of slots used to learn a layout.
const SAMPLE: usize = 20_000;

/// Names of classes as instances show them, by the address of the class.
pub(crate) fn class_names(analysis: &Analysis) -> FxHashMap<u64, String> {
    let heap = RubyHeap::new(analysis);
    let classes = heap.of_kind(Kind::CLASS);
    let named = classes.filter_map(|class| {
        let name = heap.classes.display_name(&heap, class.address)?;
        Some((class.address, name))
    });
    named.collect()
}

/// A used slot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Object {
    pub address: u64,
    /// Its node among the references.
    pub node: u32,
    pub slot_size: u64,
    pub flags: u64,
    /// The second word.
    pub class: u64,
}

impl Object {
    pub fn kind(&self) -> Kind {
        Kind((self.flags & 0x1f) as u8)
    }

    /// A type-specific flag.
    fn user(&self, bit: u32) -> bool {
        self.flags >> (USER + bit) & 1 == 1
    }
}

/// A range of words that belongs to an object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cells {
    /// The address of the first word.
    pub at: u64,
    /// The number of words.
    pub count: u64,
}

impl Cells {
    pub fn range(self) -> Range<u64> {
        self.at..self.at.saturating_add(self.count.saturating_mul(WORD))
    }

    pub fn addresses(self) -> impl Iterator<Item = u64> {
        self.range().step_by(WORD as usize)
    }
}

/// The heap of a Ruby.
pub(crate) struct RubyHeap<'a> {
    pub analysis: &'a Analysis,
    pub memory: CachedImage<'a>,
    /// Whether the blocks are known.
    pub knows_blocks: bool,
    learned: Arc<Learned>,
}

/// The facts about this build of Ruby and its slots, learned once for each image.
#[derive(Debug, Default)]
pub(crate) struct Learned {
    /// The type of each slot, 0 if it is empty.
    kinds: Vec<u8>,
    strings: strings::Layout,
    hashes: hashes::Layout,
    pub ids: Option<id_names::IdNames>,
    pub classes: classes::Classes,
    pub variables: instance_variables::Variables,
    pub constants: Option<constants::Constants>,
}

impl Deref for RubyHeap<'_> {
    type Target = Learned;

    fn deref(&self) -> &Learned {
        &self.learned
    }
}

impl<'a> RubyHeap<'a> {
    /// Learns the layouts, unless they are known.
    pub fn new(analysis: &'a Analysis) -> RubyHeap<'a> {
        let mut heap = RubyHeap {
            analysis,
            memory: CachedImage::new(&analysis.image),
            knows_blocks: analysis.unknown_blocks().is_none(),
            learned: Arc::default(),
        };
        if let Some(learned) = analysis.learned.get() {
            heap.learned = Arc::clone(learned);
            return heap;
        }
        heap.learn(RubyHeap::read_kinds, |learned, kinds| learned.kinds = kinds);
        heap.learn(strings::Layout::learn, |learned, strings| learned.strings = strings);
        heap.learn(hashes::Layout::learn, |learned, hashes| learned.hashes = hashes);
        heap.learn(id_names::IdNames::find, |learned, ids| learned.ids = ids);
        heap.learn(classes::Classes::learn, |learned, classes| learned.classes = classes);
        heap.learn(instance_variables::Variables::learn, |learned, found| {
            learned.variables = found;
        });
        heap.learn(constants::Constants::learn, |learned, found| learned.constants = found);
        let _ = analysis.learned.set(Arc::clone(&heap.learned));
        heap
    }

    /// Learns a fact with those before it.
    fn learn<F>(&mut self, find: impl Fn(&Self) -> F, set: impl Fn(&mut Learned, F)) {
        let found = find(self);
        if let Some(learned) = Arc::get_mut(&mut self.learned) {
            set(learned, found);
        }
    }

    /// The facts that cannot be learned about this build of Ruby.
    pub fn unknown(&self) -> Vec<&'static str> {
        let facts = [
            ("names of classes", self.classes.are_known()),
            ("embedded strings", self.strings != strings::Layout::Unknown),
            ("hashes", self.hashes != hashes::Layout::Unknown),
            ("names of symbols and variables", self.ids.is_some()),
            (
                "instance variables",
                !matches!(self.variables, instance_variables::Variables::Unknown),
            ),
            ("constants", self.constants.is_some()),
            ("memory of classes and C types", self.knows_blocks),
        ];
        let unknown = facts.into_iter().filter(|(_, known)| !known);
        unknown.map(|(what, _)| what).collect()
    }

    fn read_kinds(&self) -> Vec<u8> {
        let mut words = self.analysis.image.words(1 << 16);
        let pages = self.analysis.ruby.pages.iter();
        let slots = pages.flat_map(crate::ruby_pages::RubyPage::each_slot);
        slots
            .map(|slot| {
                let flags = words.at(slot).unwrap_or(0);
                let used = crate::ruby_pages::ObjectType::of_flags(flags).is_some();
                if used { (flags & 0x1f) as u8 } else { 0 }
            })
            .collect()
    }

    /// All used slots.
    pub fn objects(&self) -> impl Iterator<Item = Object> + '_ {
        let first = self.analysis.references().slots().start;
        let pages = self.analysis.ruby.pages.iter();
        let slots = pages.flat_map(|page| page.each_slot().map(move |slot| (slot, page.slot_size)));
        slots.zip(0..).filter(|(_, number)| self.kinds[*number as usize] != 0).filter_map(
            move |((address, slot_size), number)| {
                Some(Object {
                    address,
                    node: first + number,
                    slot_size,
                    flags: self.memory.word(address)?,
                    class: self.memory.word(address + WORD)?,
                })
            },
        )
    }

    /// The objects of one type.
    pub fn of_kind(&self, kind: Kind) -> impl Iterator<Item = Object> + '_ {
        self.objects().filter(move |object| object.kind() == kind)
    }

    /// The node and type of the slot at an address, if it is used.
    pub fn slot(&self, address: u64) -> Option<(u32, Kind)> {
        let node = self.analysis.node_at(address)?;
        let kind = self.kind_of_node(node)?;
        Some((node, kind))
    }

    /// The type of a node, if it is a used slot.
    pub fn kind_of_node(&self, node: u32) -> Option<Kind> {
        let first = self.analysis.references().slots().start;
        let kind = *self.kinds.get(node.checked_sub(first)? as usize)?;
        (kind != 0).then_some(Kind(kind))
    }

    /// Whether an object of a type is at an address.
    pub fn is(&self, address: u64, kind: Kind) -> bool {
        self.slot(address).is_some_and(|(_, found)| found == kind)
    }

    /// The object at an address.
    pub fn object(&self, address: u64) -> Option<Object> {
        let (node, _) = self.slot(address)?;
        let page = self.analysis.ruby.containing(address)?;
        Some(Object {
            address,
            node,
            slot_size: self.analysis.ruby.pages[page].slot_size,
            flags: self.memory.word(address)?,
            class: self.memory.word(address + WORD)?,
        })
    }

    /// The address of a slot's node.
    pub fn address(&self, node: u32) -> u64 {
        match self.analysis.node(node) {
            Node::Slot(address) => address,
            Node::Block(_) => 0,
        }
    }

    /// The size of the used block that begins at an address.
    pub fn block(&self, address: u64) -> Option<u64> {
        let number = self.analysis.heap.blocks.at(address)?;
        let block = self.analysis.heap.blocks.get(number)?;
        (block.kind == crate::blocks::Kind::Used).then_some(block.size)
    }

    /// Bytes from an address on that may belong to the memory beginning there: those of a block. If blocks are unknown, all of
    /// the other allocator's memory.
    pub fn room(&self, address: u64) -> Option<u64> {
        if self.knows_blocks {
            return self.block(address);
        }
        let external = &self.analysis.map.external;
        let range = &external[ranges::containing(external, address)?];
        (address % WORD == 0).then(|| range.end - address)
    }

    /// The words of an object behind its header.
    pub fn body(&self, object: &Object) -> Cells {
        Cells { at: object.address + HEADER, count: (object.slot_size - HEADER) / WORD }
    }
}
