//! Containers in memory written word by word.

use std::fs::File;
use std::io::Write;
use std::sync::Mutex;

use super::Container;
use crate::analysis::Analysis;
use crate::blocks::{Block, Kind};
use crate::glibc::GlibcHeap;
use crate::image::{Image, Machine};
use crate::memory_map::MemoryMap;
use crate::questions::signature::Signature;
use crate::ruby_pages::{RubyPage, RubyPages};
use crate::segment::{Access, Segment};

/// Variables, followed by blocks.
const STATICS: u64 = 0x10_0000;
const HEAP: u64 = 0x11_0000;
const END: u64 = 0x20_0000;
/// Constant data of a library.
const CONSTANTS: u64 = 0xabcd_0000_0000;
/// A page of Ruby's heap with one object.
const PAGE: u64 = 0x1f_0000;
const OBJECT: u64 = PAGE + 40;

/// Memory whose blocks are allocated one after another.
struct Memory {
    bytes: Vec<u8>,
    heap: GlibcHeap,
    next: u64,
}

impl Memory {
    fn new() -> Memory {
        Memory { bytes: vec![0; (END - STATICS) as usize], heap: GlibcHeap::default(), next: HEAP }
    }

    /// A block as malloc returns it.
    fn block(&mut self, request: u64) -> u64 {
        let size = ((request + 8).next_multiple_of(16) - 8).max(24);
        let address = self.next;
        self.next += size + 8;
        self.heap.blocks.push(Block { address, size, kind: Kind::Used });
        address
    }

    fn blocks(&mut self, count: usize, request: u64) -> Vec<u64> {
        (0..count).map(|_| self.block(request)).collect()
    }

    fn write(&mut self, address: u64, words: &[u64]) {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.text(address, &bytes);
    }

    fn text(&mut self, address: u64, text: &[u8]) {
        let at = (address - STATICS) as usize;
        self.bytes[at..at + text.len()].copy_from_slice(text);
    }

    fn analysis(self) -> Analysis {
        self.with_ruby(RubyPages::default())
    }

    /// The same with an object, which still has the addresses of blocks.
    fn with_object(self, addresses: [u64; 2]) -> Analysis {
        self.with_slot(1, addresses)
    }

    fn with_slot(mut self, flags: u64, [one, other]: [u64; 2]) -> Analysis {
        self.write(OBJECT, &[flags, 0, 0, one, other]);
        let page = RubyPage { address: PAGE, slots: OBJECT, slot_size: 40, count: 1, heap_page: 0 };
        self.with_ruby(RubyPages { page_size: 1 << 16, pages: vec![page] })
    }

    fn with_ruby(self, ruby: RubyPages) -> Analysis {
        static NUMBER: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let name = format!("memprof-containers-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        File::create(&path).and_then(|mut file| file.write_all(&self.bytes)).expect("a file");
        let source = File::open(&path).expect("a file");
        std::fs::remove_file(&path).expect("to remove it");
        let image = Image {
            source,
            recent: Mutex::default(),
            segments: vec![
                Segment {
                    start: STATICS,
                    end: END,
                    stored: END - STATICS,
                    offset: 0,
                    access: Access { read: true, write: true, execute: false },
                    file: None,
                },
                Segment {
                    start: CONSTANTS,
                    end: CONSTANTS + 0x1000,
                    stored: 0,
                    offset: 0,
                    access: Access { read: true, write: false, execute: false },
                    file: Some(0),
                },
            ],
            files: vec!["/lib/libshop.so".to_owned()],
            threads: Vec::new(),
            machine: Machine::own(),
            command: String::new(),
            pid: None,
            signal: None,
            missing: 0,
        };
        let statics = std::iter::once(STATICS..HEAP).collect();
        let map = MemoryMap { statics, ..MemoryMap::default() };
        Analysis::of_parts(image, ruby, self.heap, map)
    }

    /// The role of each block, in order of address.
    fn containers(self) -> Vec<Option<Container>> {
        let count = self.heap.blocks.len() as u32;
        let analysis = self.analysis();
        let of = |number| analysis.container(number);
        (0..count).map(of).collect()
    }
}

#[test]
fn strings_end_with_a_zero_and_fill_their_block() {
    let string = |header: [i64; 3], text: &[u8]| {
        let mut memory = Memory::new();
        let block = memory.block(31);
        memory.text(block, text);
        // 0 represents the address.
        let words = header.map(|word| if word == 0 { block } else { word as u64 });
        memory.write(STATICS + 24, &words);
        memory.containers()[0]
    };
    let text = b"twenty characters...\0";
    let long = Some(Container::LongString);
    assert_eq!(string([0, 20, 30], text), long);
    assert_eq!(string([0, 19, 30], text), None);
    assert_eq!(string([0, 20, 16], text), None);
    // A block with a different size.
    assert_eq!(string([0, 20, 50], text), None);
    // Empty strings and invalid numbers.
    assert_eq!(string([0, 20, 30], b""), None);
    assert_eq!(string([0, -1, -1], text), None);
    assert_eq!(string([0, 1, i64::MAX], text), None);
    // libc++ begins with the allocated size and ends with the address.
    assert_eq!(string([33, 20, 0], text), long);
    assert_eq!(string([32, 20, 0], text), None);
    assert_eq!(string([33, 19, 0], text), None);
    // Rust: the capacity, the address, and the size; then another string.
    let mut memory = Memory::new();
    let block = memory.block(20);
    memory.text(block, text);
    memory.write(STATICS, &[20, block, 20, 20, block, 20]);
    assert_eq!(memory.containers()[0], None);
}

#[test]
fn vectors_reach_to_the_end_of_their_block() {
    let vector = |before: u64, header: [u64; 2], behind: u64| {
        let mut memory = Memory::new();
        let block = memory.block(100);
        let [end, limit] = header.map(|word| block.wrapping_add(word));
        memory.write(STATICS + 8, &[before, block, end, limit, behind]);
        memory.containers()[0]
    };
    let body = Some(Container::VectorBody);
    assert_eq!(vector(0, [40, 100], 7), body);
    assert_eq!(vector(0, [0, 100], 0), body);
    assert_eq!(vector(0, [100, 100], 0), body);
    assert_eq!(vector(0, [104, 100], 0), None);
    assert_eq!(vector(0, [40, 64], 0), None);
    assert_eq!(vector(0, [40, 0x1000], 0), None);
    assert_eq!(vector(0, [u64::MAX, u64::MAX], 0), None);
    // Adjacent words of a C buffer.
    assert_eq!(vector(HEAP, [40, 100], 0), None);
    assert_eq!(vector(0, [40, 100], HEAP + 8), None);
}

/// A ring of nodes whose elements are numbers; the last node is the header.
fn ring(memory: &mut Memory, members: &[u64], numbers: &[u64]) {
    let count = members.len();
    for (place, (member, number)) in members.iter().zip(numbers).enumerate() {
        let next = members[(place + 1) % count];
        let previous = members[(place + count - 1) % count];
        memory.write(*member, &[next, previous, *number]);
    }
}

#[test]
fn lists_have_as_many_nodes_as_their_header_says() {
    let list = |numbers: [u64; 4], header: Option<u64>, broken: bool| {
        let mut memory = Memory::new();
        let mut members = memory.blocks(3, 24);
        members.push(header.unwrap_or(memory.next));
        if header.is_none() {
            memory.block(24);
        }
        ring(&mut memory, &members, &numbers);
        if broken {
            memory.write(members[1] + 8, &[members[2]]);
        }
        memory.containers()
    };
    let node = Some(Container::ListNode);
    // In a variable, even if elements look like numbers of elements.
    for numbers in [[0, 0, 0, 3], [3, 3, 3, 3], [1, 2, 3, 3]] {
        assert_eq!(list(numbers, Some(STATICS + 8), false), [node; 3]);
    }
    assert_eq!(list([3, 3, 3, 2], Some(STATICS + 8), false), [None; 3]);
    assert_eq!(list([0, 0, 0, 3], Some(STATICS + 8), true), [None; 3]);
    // In a block, which is not a node itself.
    let found = list([7, 8, 9, 3], None, false);
    assert_eq!(found, [node, node, node, None]);
    assert_eq!(list([7, 3, 9, 3], None, false), [None; 4]);
    assert_eq!(list([1, 2, 4, 0], None, false), [None; 4]);
}

#[test]
fn nodes_of_a_list_are_as_large_as_each_other() {
    let mut memory = Memory::new();
    let members = [memory.block(24), memory.block(100), STATICS];
    ring(&mut memory, &members, &[0, 0, 2]);
    assert_eq!(memory.containers(), [None; 2]);
}

/// A tree of three nodes whose header is in a variable: the root, and its children.
fn tree(memory: &mut Memory) -> (u64, [u64; 3]) {
    (STATICS + 8, tree_at(memory, STATICS + 8))
}

/// The other half of the word with a colour is a remnant.
fn tree_at(memory: &mut Memory, header: u64) -> [u64; 3] {
    let nodes = [memory.block(40), memory.block(40), memory.block(40)];
    let [root, left, right] = nodes;
    memory.write(header, &[CONSTANTS, root, left, right, 3]);
    memory.write(root, &[1, header, left, right]);
    memory.write(left, &[CONSTANTS, root, 0, 0]);
    memory.write(right, &[0, root, 0, 0]);
    nodes
}

fn signatures(analysis: &Analysis) -> Vec<Option<String>> {
    let blocks = (0..).zip(analysis.heap.blocks.iter());
    blocks.map(|(number, block)| Signature::of(analysis, number, block).text()).collect()
}

#[test]
fn half_an_address_beside_a_colour_is_not_a_signature() {
    let mut memory = Memory::new();
    tree(&mut memory);
    let vector = memory.block(100);
    memory.write(STATICS + 64, &[vector, vector + 50, vector + 100]);
    memory.write(vector, &[CONSTANTS]);
    let node = Some("%MapOrSetNode".to_owned());
    // The first element of the vector has a vtable.
    let first = Some("abcd00000000".to_owned());
    assert_eq!(signatures(&memory.analysis()), [node.clone(), node.clone(), node, first]);
}

#[test]
fn addresses_of_former_buffers_take_no_node_from_its_container() {
    let mut memory = Memory::new();
    let (_, [_, left, _]) = tree(&mut memory);
    let vector = memory.block(100);
    memory.write(STATICS + 64, &[vector, vector + 50, vector + 100]);
    let analysis = memory.with_object([left, vector]);
    let owners = [1, 3].map(|number| analysis.direct_owner(number).map(|object| object.name()));
    assert_eq!(owners, [Some("OBJECT"); 2]);
    let node = Some("%MapOrSetNode".to_owned());
    // For a vector only numbers speak.
    let object = Some("%RubyObject".to_owned());
    assert_eq!(signatures(&analysis), [node.clone(), node.clone(), node, object]);
}

#[test]
fn bytes_of_a_string_reference_nothing() {
    let mut memory = Memory::new();
    let blocks = [memory.block(40), memory.block(100)];
    let analysis = memory.with_slot(5, blocks);
    assert_eq!([0, 1].map(|number| analysis.owner(number)), [None; 2]);
}

#[test]
fn headers_are_found_behind_addresses_of_former_buffers() {
    let mut memory = Memory::new();
    let header = memory.block(48);
    tree_at(&mut memory, header + 8);
    let analysis = memory.with_object([header, 0]);
    let node = Some("%MapOrSetNode".to_owned());
    assert_eq!(signatures(&analysis)[1..], [node.clone(), node.clone(), node]);
}

#[test]
fn trees_have_parents_and_a_number() {
    let mut memory = Memory::new();
    tree(&mut memory);
    assert_eq!(memory.containers(), [Some(Container::MapOrSetNode); 3]);
    type Wrong = fn(u64, [u64; 3]) -> (u64, u64);
    let wrong: [Wrong; 6] = [
        |header, _| (header, 1),
        |header, _| (header + 32, 2),
        |header, _| (header + 32, 4),
        |_, [root, ..]| (root + 8, root),
        |_, [_, left, _]| (left + 8, left),
        |_, [.., right]| (right, 2),
    ];
    for wrong in wrong {
        let mut memory = Memory::new();
        let (header, nodes) = tree(&mut memory);
        let (at, word) = wrong(header, nodes);
        memory.write(at, &[word]);
        assert_eq!(memory.containers(), [None; 3]);
    }
}

#[test]
fn trees_of_libcxx_are_known() {
    let mut memory = Memory::new();
    let [root, left, right] = [memory.block(40), memory.block(40), memory.block(40)];
    memory.write(STATICS, &[left, root, 3]);
    memory.write(root, &[left, right, STATICS + 8, 1]);
    memory.write(left, &[0, 0, root, 0]);
    memory.write(right, &[0, 0, root, 0xff00]);
    assert_eq!(memory.containers(), [Some(Container::MapOrSetNode); 3]);
}

/// A hash table with five buckets and three nodes; `overwrite` corrupts it.
fn table(overwrite: impl Fn(u64, [u64; 3]) -> Option<(u64, u64)>) -> Vec<Option<Container>> {
    let mut memory = Memory::new();
    let buckets = memory.block(5 * 8);
    let nodes = [memory.block(24), memory.block(24), memory.block(24)];
    let load = u64::from(1f32.to_bits());
    memory.write(STATICS, &[buckets, 5, nodes[0], 3, load, 5, 0]);
    memory.write(buckets, &[0, nodes[1], 0, STATICS + 16, 0]);
    memory.write(nodes[0], &[nodes[1]]);
    memory.write(nodes[1], &[nodes[2]]);
    if let Some((at, word)) = overwrite(buckets, nodes) {
        memory.write(at, &[word]);
    }
    memory.containers()
}

#[test]
fn hash_tables_have_buckets_with_their_nodes() {
    let [buckets, node] =
        [Some(Container::UnorderedMapOrSetBuckets), Some(Container::UnorderedMapOrSetNode)];
    assert_eq!(table(|_, _| None), [buckets, node, node, node]);
    let none = [None; 4];
    assert_eq!(table(|_, _| Some((STATICS + 8, 50))), none);
    assert_eq!(table(|_, _| Some((STATICS + 8, u64::MAX))), none);
    assert_eq!(table(|_, _| Some((STATICS + 24, 2))), none);
    assert_eq!(table(|_, _| Some((STATICS + 24, 4))), none);
    assert_eq!(table(|_, _| Some((STATICS + 32, 0))), none);
    assert_eq!(table(|buckets, _| Some((buckets + 24, 0))), none);
    assert_eq!(table(|buckets, _| Some((buckets, buckets))), none);
    assert_eq!(table(|_, nodes| Some((nodes[2], nodes[0]))), none);
}

#[test]
fn hash_tables_of_one_bucket_have_it_in_the_header() {
    let one = |only| {
        let mut memory = Memory::new();
        let node = memory.block(24);
        let load = u64::from(1f32.to_bits());
        memory.write(STATICS, &[STATICS + 48, 1, node, 1, load, 1, only]);
        memory.containers()
    };
    assert_eq!(one(STATICS + 16), [Some(Container::UnorderedMapOrSetNode)]);
    assert_eq!(one(0), [None]);
}

#[test]
fn empty_hash_tables_have_empty_buckets() {
    let empty = |grows_at, bucket| {
        let mut memory = Memory::new();
        let buckets = memory.block(13 * 8);
        let load = u64::from(1f32.to_bits());
        memory.write(STATICS, &[buckets, 13, 0, 0, load, grows_at, 0]);
        memory.write(buckets, &[bucket]);
        memory.containers()
    };
    assert_eq!(empty(13, 0), [Some(Container::UnorderedMapOrSetBuckets)]);
    assert_eq!(empty(12, 0), [None]);
    assert_eq!(empty(13, 1), [None]);
}

/// A deque with two blocks of eight places; `overwrite` corrupts it.
fn deque(overwrite: impl Fn(u64) -> Option<(u64, u64)>) -> Vec<Option<Container>> {
    let mut memory = Memory::new();
    let array = memory.block(64);
    let blocks = [memory.block(512), memory.block(512)];
    let [start, finish] = [(blocks[0], array + 24), (blocks[1], array + 32)]
        .map(|(block, place)| [block + 16, block, block + 512, place]);
    memory.write(STATICS, &[array, 8]);
    memory.write(STATICS + 16, &start);
    memory.write(STATICS + 48, &finish);
    memory.write(array + 24, &blocks);
    if let Some((at, word)) = overwrite(array) {
        memory.write(at, &[word]);
    }
    memory.containers()
}

#[test]
fn deques_have_blocks_between_start_and_finish() {
    let block = Some(Container::DequeBlock);
    assert_eq!(deque(|_| None), [Some(Container::DequeMap), block, block]);
    let none = [None; 3];
    assert_eq!(deque(|_| Some((STATICS + 8, 20))), none);
    assert_eq!(deque(|_| Some((STATICS + 8, u64::MAX))), none);
    assert_eq!(deque(|array| Some((array + 24, 0))), none);
    assert_eq!(deque(|_| Some((STATICS + 16, 8))), none);
    assert_eq!(deque(|array| Some((STATICS + 40, array + 27))), none);
    assert_eq!(deque(|array| Some((STATICS + 72, array + 640))), none);
}

#[test]
fn containers_are_patterns() {
    let mut memory = Memory::new();
    let vector = memory.block(100);
    memory.write(STATICS, &[vector, vector + 50, vector + 100]);
    memory.block(24);
    let analysis = memory.analysis();
    let signature = |number| {
        let block = analysis.block(number).expect("a block");
        Signature::of(&analysis, number, block)
    };
    let matches = |number, wanted: [&str; 4]| {
        wanted.map(|wanted| signature(number).matches(&analysis, wanted))
    };
    let wanted = ["%VectorBody", "%DequeBlock", "-", "?"];
    // The block has a pattern, but no signature.
    assert_eq!(matches(0, wanted), [true, false, true, false]);
    assert_eq!(matches(1, wanted), [false, false, true, true]);
    assert_eq!(signature(0).text().as_deref(), Some("%VectorBody"));
    assert_eq!(Signature::check(&analysis, "%DequeMap"), Ok(()));
    let refusal = Signature::check(&analysis, "%Vector").expect_err("no pattern");
    assert!(refusal.contains("expected one of: %Ruby") && refusal.ends_with("%DequeBlock"));
}

#[test]
fn wild_words_do_no_harm() {
    let mut seed = 0x9e37_79b9_7f4a_7c15u64;
    let mut below = |limit: u64| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed % limit
    };
    for _ in 0..20 {
        let mut memory = Memory::new();
        for _ in 0..200 {
            let size = [24, 40, 64, 512][below(4) as usize];
            memory.block(size);
        }
        let starts: Vec<u64> = memory.heap.blocks.iter().map(|block| block.address).collect();
        for at in (STATICS..STATICS + 0x2000).chain(HEAP..memory.next).step_by(8) {
            let block = starts[below(200) as usize];
            let word = match below(9) {
                0 => below(8),
                1 => u64::MAX - below(64),
                2 => at.wrapping_sub(below(4) * 8),
                3 => block + below(600),
                4 => u64::from(1f32.to_bits()),
                _ => block,
            };
            memory.write(at, &[word]);
        }
        memory.containers();
    }
    // Each node is the header of a ring that a number of nodes further is broken.
    let mut memory = Memory::new();
    let members = memory.blocks(9000, 24);
    ring(&mut memory, &members, &vec![8999; 9000]);
    memory.write(members[8999], &[0]);
    let found = memory.containers();
    assert!(found.iter().all(Option::is_none));
}
