//! References between blocks and objects: each aligned word with the address of one.

use memprof_heap::graph::{BitSet, Graph};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::address_index::{AddressIndex, Place};
use crate::blocks::{Blocks, Kind};
use crate::equal_strings::{self, is_in_table};
use crate::generic_variables;
use crate::image::{Image, WORD};
use crate::mark_stack;
use crate::memory_map::{Anchor, MemoryMap};
use crate::ruby_pages::{ObjectType, RubyPages};
use crate::slot_content;
use crate::st_table::{self, StTable};

/// Size of the memory pieces that are searched at once.
const PIECE: usize = 1 << 20;
/// Row offsets of the graph are four bytes.
const MAX_EDGES: usize = u32::MAX as usize;

/// A reference from outside of malloc's memory and Ruby's heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct AnchorPoint {
    /// The referenced block or object.
    pub node: u32,
    /// The kind of place.
    pub anchor: Anchor,
    /// The address of the reference, or the number of a register.
    pub from: u64,
    /// The thread of a register or a stack, as an index of [`Image::threads`].
    pub thread: Option<u32>,
}

/// Blocks and objects as nodes of a graph: blocks first, by their numbers, then the slots of each page.
#[derive(Debug)]
pub struct References {
    index: AddressIndex,
    /// The node of the first slot of each page.
    first_slots: Vec<u32>,
    blocks: u32,
    offsets: Vec<u32>,
    targets: Vec<u32>,
    /// A bit for each target: set if no reference of the row points to its beginning.
    inner: Vec<u64>,
    /// Internal objects with the variables of others (Ruby 4.0), by the nodes of these.
    fields: FxHashMap<u32, u32>,
    /// References from outside, by node; only the first of each kind.
    pub anchor_points: Vec<AnchorPoint>,
}

/// The block or slot of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Node {
    /// A block, by number.
    Block(u32),
    /// A slot of Ruby's heap, by address.
    Slot(u64),
}

impl References {
    /// Finds all references.
    #[must_use]
    pub fn find(image: &Image, blocks: &Blocks, ruby: &RubyPages, map: &MemoryMap) -> References {
        let mut nodes = blocks.len() as u32;
        let mut first_slots = Vec::with_capacity(ruby.pages.len());
        for page in &ruby.pages {
            first_slots.push(nodes);
            nodes += page.count as u32;
        }
        let mut references = References {
            index: AddressIndex::new(blocks, ruby),
            first_slots,
            blocks: blocks.len() as u32,
            offsets: Vec::with_capacity(nodes as usize + 1),
            targets: Vec::new(),
            inner: Vec::new(),
            fields: FxHashMap::default(),
            anchor_points: Vec::new(),
        };
        references.offsets.push(0);
        references.of_blocks(image, blocks, ruby);
        let (strings, with_variables) = references.of_slots(image, blocks, ruby);
        references.weaken_tables(image, blocks, ruby, &strings);
        references.give_variables(image, blocks, ruby, with_variables);
        references.of_anchors(image, blocks, ruby, map);
        references
    }

    /// The references as a graph.
    #[must_use]
    pub fn graph(&self) -> Graph<'_> {
        Graph { offsets: &self.offsets, targets: &self.targets, ..Graph::default() }
    }

    /// The targets of a node, and whether each is referenced only inside.
    pub fn edges(&self, node: u32) -> impl Iterator<Item = (u32, bool)> + '_ {
        let row = self.offsets[node as usize] as usize..self.offsets[node as usize + 1] as usize;
        row.map(|edge| (self.targets[edge], self.inner[edge / 64] >> (edge % 64) & 1 == 1))
    }

    /// The internal object with the variables of an object (Ruby 4.0).
    #[must_use]
    pub fn fields_of(&self, node: u32) -> Option<u32> {
        self.fields.get(&node).copied()
    }

    /// The number of blocks and slots.
    #[must_use]
    pub fn nodes(&self) -> u32 {
        self.offsets.len() as u32 - 1
    }

    /// The block or slot of a node.
    #[must_use]
    pub fn node(&self, ruby: &RubyPages, node: u32) -> Node {
        if node < self.blocks {
            return Node::Block(node);
        }
        let page = self.first_slots.partition_point(|first| *first <= node) - 1;
        let number = u64::from(node - self.first_slots[page]);
        let page = &ruby.pages[page];
        Node::Slot(page.slots + number * page.slot_size)
    }

    /// The node that an address points into.
    #[inline]
    #[must_use]
    pub fn node_at(&self, blocks: &Blocks, ruby: &RubyPages, address: u64) -> Option<u32> {
        match self.index.place(blocks, ruby, address)? {
            Place::Block(block) => Some(block),
            Place::Slot(page, slot) => Some(self.first_slots[page as usize] + slot as u32),
        }
    }

    /// The nodes of slots.
    #[must_use]
    pub fn slots(&self) -> std::ops::Range<u32> {
        self.blocks..self.nodes()
    }

    fn of_blocks(&mut self, image: &Image, blocks: &Blocks, ruby: &RubyPages) {
        let mut pieces = Pieces::new(image);
        let parts = parts_with_references(image, blocks, ruby);
        let mut heap_pages: Vec<u64> = ruby.pages.iter().map(|page| page.heap_page).collect();
        heap_pages.sort_unstable();
        for (number, block) in blocks.iter().enumerate() {
            if block.kind == Kind::Used {
                // A page descriptor has the addresses of its first slot and its first free slot.
                let describes_page = heap_pages.binary_search(&block.address).is_ok();
                let part = parts.get(number).map_or(block.size, |words| words_of(*words));
                let end = block.address + (block.size.min(part) & !(WORD - 1));
                let row = pieces.words(block.address, end);
                self.row(blocks, ruby, number as u32, describes_page, row);
            }
            self.offsets.push(self.targets.len() as u32);
        }
    }

    /// Returns the strings in the VM's table of equal strings, and the objects in its table of variables.
    fn of_slots(&mut self, image: &Image, blocks: &Blocks, ruby: &RubyPages) -> (BitSet, BitSet) {
        let mut pieces = Pieces::new(image);
        let slots: u64 = ruby.pages.iter().map(|page| page.count).sum();
        let mut strings = BitSet::new(self.blocks as usize + slots as usize);
        let mut with_variables = strings.clone();
        let mut node = self.blocks;
        for page in &ruby.pages {
            for slot in page.each_slot() {
                let flags = pieces.word(slot);
                if flags.is_some_and(is_in_table) {
                    strings.insert(node);
                }
                if flags.is_some_and(generic_variables::is_in_table) {
                    with_variables.insert(node);
                }
                if let Some(flags) = flags.filter(|flags| ObjectType::of_flags(*flags).is_some()) {
                    let mut content = slot_content::range(slot, page.slot_size, flags);
                    if self.learn_fields(image, blocks, ruby, (node, slot, flags)) {
                        content.start += WORD;
                    }
                    let row = pieces.words(content.start, content.end);
                    self.row(blocks, ruby, node, false, row);
                }
                node += 1;
                self.offsets.push(self.targets.len() as u32);
            }
        }
        (strings, with_variables)
    }

    /// Whether a slot's object has the variables of the object that is its class.
    fn learn_fields(
        &mut self,
        image: &Image,
        blocks: &Blocks,
        ruby: &RubyPages,
        (node, slot, flags): (u32, u64, u64),
    ) -> bool {
        if !generic_variables::may_be_fields(flags) {
            return false;
        }
        let owner = image.word(slot + WORD).and_then(|address| {
            let owner = self.node_at(blocks, ruby, address)?;
            let flags = image.word(address)?;
            let is_object = self.node(ruby, owner) == Node::Slot(address)
                && ObjectType::of_flags(flags).is_some()
                && !generic_variables::is_internal(flags);
            is_object.then_some(owner)
        });
        self.fields.extend(owner.map(|owner| (owner, node)));
        owner.is_some()
    }

    /// Makes objects reference their variables, in place of the table.
    fn give_variables(
        &mut self,
        image: &Image,
        blocks: &Blocks,
        ruby: &RubyPages,
        mut objects: BitSet,
    ) {
        // The slots of classes and of some others reference theirs.
        let graph = self.graph();
        let fields = self.fields.iter().map(|(owner, fields)| (*owner, *fields));
        let elsewhere: Vec<(u32, u32)> =
            fields.filter(|(owner, fields)| !graph.row(*owner).contains(fields)).collect();
        for (owner, _) in &elsewhere {
            objects.insert(*owner);
        }
        let node = |address| self.node_at(blocks, ruby, address);
        let table = generic_variables::table(image, &graph, blocks, &objects, node);
        let (table, mut variables) =
            table.map_or_else(Default::default, |table| (Some(table.block), table.variables));
        variables.extend(elsewhere);
        if variables.is_empty() {
            return;
        }
        // From the end on, so that edges still to be moved are not overwritten.
        let mut free = self.targets.len() + variables.len();
        if free > MAX_EDGES {
            return;
        }
        self.targets.resize(free, 0);
        self.inner.resize(free.div_ceil(64), 0);
        let given: FxHashSet<u32> = variables.values().copied().collect();
        for node in (0..self.nodes()).rev() {
            let (start, end) = (self.offsets[node as usize], self.offsets[node as usize + 1]);
            self.offsets[node as usize + 1] = free as u32;
            if let Some(variables) = variables.get(&node) {
                free -= 1;
                self.put(free, *variables, false);
            }
            for edge in (start as usize..end as usize).rev() {
                let target = self.targets[edge];
                let is_others = target >= self.blocks || given.contains(&target);
                if table != Some(node) || !is_others {
                    free -= 1;
                    self.put(free, target, self.is_inner(edge));
                }
            }
        }
        // The edges removed from the table leave a gap at the beginning.
        for edge in free..self.targets.len() {
            self.put(edge - free, self.targets[edge], self.is_inner(edge));
        }
        self.targets.truncate(self.targets.len() - free);
        self.inner.truncate(self.targets.len().div_ceil(64));
        let ends = self.offsets.iter_mut().skip(1);
        ends.for_each(|end| *end -= free as u32);
    }

    fn is_inner(&self, edge: usize) -> bool {
        self.inner[edge / 64] >> (edge % 64) & 1 == 1
    }

    fn put(&mut self, edge: usize, target: u32, inner: bool) {
        self.targets[edge] = target;
        let word = &mut self.inner[edge / 64];
        *word = *word & !(1 << (edge % 64)) | u64::from(inner) << (edge % 64);
    }

    /// Removes the references of VM tables that do not retain their objects: equal strings and the mark stack.
    fn weaken_tables(
        &mut self,
        image: &Image,
        blocks: &Blocks,
        ruby: &RubyPages,
        strings: &BitSet,
    ) {
        let object = |node| match self.node(ruby, node) {
            Node::Slot(address) => ObjectType::of_flags(image.word(address)?),
            Node::Block(_) => None,
        };
        let graph = self.graph();
        let mut tables = mark_stack::pieces(image, blocks, ruby, &graph, self.blocks);
        let describes =
            |number| blocks.get(number).is_some_and(|block| block.size == st_table::SIZE);
        let of_strings = equal_strings::tables(&graph, self.blocks, strings, object, describes);
        tables.extend(of_strings);
        let Some(first) = tables.iter().min() else {
            return;
        };
        let mut kept = self.offsets[*first as usize] as usize;
        let mut start = kept;
        for node in *first..self.nodes() {
            let end = self.offsets[node as usize + 1] as usize;
            let is_table = tables.contains(&node);
            for edge in start..end {
                let target = self.targets[edge];
                if is_table && target >= self.blocks {
                    continue;
                }
                self.put(kept, target, self.is_inner(edge));
                kept += 1;
            }
            start = end;
            self.offsets[node as usize + 1] = kept as u32;
        }
        self.targets.truncate(kept);
        self.inner.truncate(kept.div_ceil(64));
    }

    fn row(
        &mut self,
        blocks: &Blocks,
        ruby: &RubyPages,
        node: u32,
        no_slots: bool,
        mut row: Row<'_, '_>,
    ) {
        let first = self.targets.len();
        while let Some(words) = row.next() {
            for word in words.chunks_exact(WORD as usize) {
                let word = u64::from_le_bytes(word.try_into().unwrap_or_default());
                let target = match self.index.place(blocks, ruby, word) {
                    Some(Place::Block(block)) => block,
                    Some(Place::Slot(page, slot)) if !no_slots => {
                        self.first_slots[page as usize] + slot as u32
                    }
                    _ => continue,
                };
                let inner = blocks.get(target).is_some_and(|block| block.address != word);
                let row = &self.targets[first..];
                if target == node {
                    continue;
                }
                if row.last() == Some(&target) {
                    self.mark_last(inner && self.last_is_inner());
                } else if first + row.len() < MAX_EDGES {
                    self.targets.push(target);
                    self.mark_last(inner);
                }
            }
        }
    }

    fn last_is_inner(&self) -> bool {
        self.is_inner(self.targets.len() - 1)
    }

    fn mark_last(&mut self, inner: bool) {
        let last = self.targets.len() - 1;
        if last / 64 == self.inner.len() {
            self.inner.push(0);
        }
        self.put(last, self.targets[last], inner);
    }

    fn of_anchors(&mut self, image: &Image, blocks: &Blocks, ruby: &RubyPages, map: &MemoryMap) {
        let mut points = Vec::new();
        let mut add = |anchor, thread: Option<usize>, from, word| {
            points.extend(self.node_at(blocks, ruby, word).map(|node| AnchorPoint {
                node,
                anchor,
                from,
                thread: thread.map(|thread| thread as u32),
            }));
        };
        for (number, thread) in image.threads.iter().enumerate() {
            for (register, word) in (0..).zip(&thread.registers) {
                add(Anchor::Register, Some(number), register, *word);
            }
        }
        for (number, stack) in map.stacks.iter().enumerate() {
            let stack = stack.clone();
            image.each_word(stack, |at, word| add(Anchor::Stack, Some(number), at, word));
        }
        let all = [(Anchor::Static, &map.statics), (Anchor::External, &map.external)];
        for (anchor, ranges) in all {
            for range in ranges {
                image.each_word(range.clone(), |at, word| add(anchor, None, at, word));
            }
        }
        points.sort_unstable();
        points.dedup_by_key(|point| (point.node, point.anchor));
        self.anchor_points = points;
    }
}

/// Maximum size of the struct of an IO.
const LARGEST_IO: u64 = 1 << 10;
/// All words of a block may be references.
const ALL: u32 = u32::MAX;

/// Bytes of a part of a block.
fn words_of(words: u32) -> u64 {
    if words == ALL { u64::MAX } else { u64::from(words) * WORD }
}

/// How many words of each block may be references, from its beginning on: behind the elements of an Array and the entries of the
/// VM's hash tables are stale ones, and Strings, large Integers and buffers of an IO have none. Nothing without Ruby.
fn parts_with_references(image: &Image, blocks: &Blocks, ruby: &RubyPages) -> Vec<u32> {
    if ruby.pages.is_empty() {
        return Vec::new();
    }
    let mut parts = vec![ALL; blocks.len()];
    let mut pieces = Pieces::new(image);
    let mut add = |at: u64, room: u64, references: u64| {
        let number = blocks.at(at);
        let block = number.and_then(|number| Some((number, blocks.get(number)?)));
        let Some((number, block)) = block else {
            return;
        };
        if block.kind == Kind::Used && room <= block.size {
            let words = u32::try_from(references / WORD).unwrap_or(ALL);
            let part = &mut parts[number as usize];
            // Several objects may share the block.
            *part = if *part == ALL { words } else { words.max(*part) };
        }
    };
    let add_table = |add: &mut dyn FnMut(u64, u64, u64), table: Option<StTable>| {
        if let Some(table) = table {
            let entries = table.range();
            add(entries.start, table.room(), entries.end - entries.start);
        }
    };
    // In a separate block, or since Ruby 3.3 in the slot of a Hash.
    for block in blocks.iter().filter(|block| block.kind == Kind::Used) {
        if block.size == st_table::SIZE {
            add_table(&mut add, pieces.st_table(block.address));
        }
    }
    const IN_SLOT: u64 = 3 * WORD;
    let mut ios = Vec::new();
    for page in &ruby.pages {
        let has_tables = page.slot_size >= IN_SLOT + st_table::SIZE;
        for slot in page.each_slot() {
            let Some(flags) = pieces.word(slot) else {
                continue;
            };
            if has_tables && slot_content::has_table(flags) {
                add_table(&mut add, pieces.st_table(slot + IN_SLOT));
            } else if let Some(buffer) = slot_content::buffer(slot, flags, |at| pieces.word(at)) {
                add(buffer.at, buffer.length, buffer.references);
            } else if let Some(io) = slot_content::io(slot, flags, |at| pieces.word(at)) {
                ios.push(io);
            }
        }
    }
    for io in ios {
        let block = blocks.at(io).and_then(|number| blocks.get(number));
        if let Some(block) = block.filter(|block| block.kind == Kind::Used) {
            let bytes = pieces.from(io, io + block.size.min(LARGEST_IO));
            let buffers = slot_content::io_buffers(bytes).filter(|buffer| buffer.at != io);
            buffers.for_each(|buffer| add(buffer.at, buffer.length, buffer.references));
        }
    }
    parts
}

/// Memory read sequentially, in large pieces.
pub(crate) struct Pieces<'i> {
    image: &'i Image,
    start: u64,
    bytes: Vec<u8>,
}

impl<'i> Pieces<'i> {
    pub fn new(image: &'i Image) -> Pieces<'i> {
        Pieces { image, start: 0, bytes: Vec::new() }
    }

    /// Memory from an address on, as far as it exists: all of it, unless it exceeds a piece.
    pub fn from(&mut self, address: u64, end: u64) -> &[u8] {
        let wanted = (end - address).min(PIECE as u64);
        let end_of_piece = self.start + self.bytes.len() as u64;
        if address < self.start || address + wanted > end_of_piece {
            self.start = address;
            self.bytes.resize(PIECE, 0);
            let count = self.image.read(address, &mut self.bytes);
            self.bytes.truncate(count);
        }
        let first = (address - self.start) as usize;
        let behind = first.saturating_add(wanted as usize).min(self.bytes.len());
        self.bytes.get(first..behind).unwrap_or_default()
    }

    fn word(&mut self, address: u64) -> Option<u64> {
        let bytes = self.from(address, address + WORD).try_into().ok()?;
        Some(u64::from_le_bytes(bytes))
    }

    fn st_table(&mut self, address: u64) -> Option<StTable> {
        let bytes = self.from(address, address + st_table::SIZE);
        let mut words = [0; st_table::WORDS];
        for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(WORD as usize)) {
            *word = u64::from_le_bytes(bytes.try_into().unwrap_or_default());
        }
        StTable::of(words)
    }

    fn words<'p>(&'p mut self, address: u64, end: u64) -> Row<'p, 'i> {
        Row { pieces: self, address, end }
    }
}

/// The words of a block or an object, piece by piece.
struct Row<'p, 'i> {
    pieces: &'p mut Pieces<'i>,
    address: u64,
    end: u64,
}

impl Row<'_, '_> {
    fn next(&mut self) -> Option<&[u8]> {
        if self.address >= self.end {
            return None;
        }
        let bytes = self.pieces.from(self.address, self.end);
        let whole = bytes.len() & !(WORD as usize - 1);
        self.address += whole as u64;
        (whole > 0).then(|| &bytes[..whole])
    }
}
