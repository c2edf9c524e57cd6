use std::collections::BTreeMap;

use crate::export::Format;
use crate::tests::{assert_come_back, exported, file, summary};
use crate::{Event, LiveBlocks, Record};

fn block(node: u64, size: u64, address: u64) -> Event {
    Event { node, size, address }
}

/// Nodes: 1 is line 1 of `leak`, 2 is native code that line 1 called, 3 is native code alone.
fn frames() -> Vec<Record<'static>> {
    let node = |parent, frame| Record::Node { parent, frame };
    vec![
        Record::Start { pid: 7, time: 1_000, command: b"app.rb" },
        Record::Addresses,
        Record::RubyFrame { path: b"/app/a.rb", line: 1, method: b"leak" },
        Record::NativeFrame { address: 0x7f00_0000_1234, offset: 0x1234, module: b"/lib/libpq.so" },
        node(0, 1),
        node(1, 2),
        node(0, 2),
    ]
}

/// Random allocations and frees, and the blocks live after them.
fn random(count: usize) -> (Vec<Record<'static>>, BTreeMap<u64, Event>) {
    let mut state = 0x1234_5678_9abc_def1u64;
    let (mut records, mut live) = (frames(), BTreeMap::<u64, Event>::new());
    while records.len() < count {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        // Heap, mappings far above, and the highest address of user space.
        let base = [0x55d9_0dac_c010, 0x7f12_a000_0010, 0x7fff_ffff_0000][state as usize % 3];
        let address = base + (state >> 8 & 0xff) * 16;
        records.push(match live.remove(&address) {
            Some(event) => Record::Free(event),
            None => {
                let event = block(1 + state % 3, state >> 20 & 0xfff, address);
                live.insert(address, event);
                Record::Allocation(event)
            }
        });
    }
    (records, live)
}

fn live(bytes: &[u8]) -> LiveBlocks {
    LiveBlocks::read(&mut &bytes[..], u64::MAX).unwrap()
}

/// Address, size and location of each live block.
fn located(live: &LiveBlocks) -> Vec<(u64, u64, String)> {
    let blocks = live.blocks.as_ref().unwrap().iter();
    let mut rows: Vec<_> = blocks
        .map(|block| {
            let place = &live.places[block.place as usize];
            (block.address, block.size, place.location.clone())
        })
        .collect();
    rows.sort_unstable();
    rows
}

#[test]
fn addresses_come_back() {
    let (records, _) = random(3_000);
    assert_come_back(&records, &[1, 7, 10_000]);
}

#[test]
fn live_blocks_are_those_of_a_slow_recount() {
    let (records, expected) = random(20_000);
    let live = live(&file(&records, 999));
    let native = "/lib/libpq.so(+0x1234) [0x7f0000001234]";
    let expected: Vec<_> = expected
        .values()
        .map(|event| {
            let location = ["/app/a.rb:1", "/app/a.rb:1", native][event.node as usize - 1];
            (event.address, event.size, location.to_owned())
        })
        .collect();
    assert!(!expected.is_empty());
    assert_eq!(located(&live), expected);
    let methods = live.places.iter().map(|place| (&place.location[..], &place.method[..]));
    let mut methods: Vec<_> = methods.collect();
    methods.sort_unstable();
    assert_eq!(methods, [("/app/a.rb:1", "leak"), (native, "")]);
    let labels = |node| live.summary.stacks.labels(node).collect::<Vec<_>>();
    assert_eq!(labels(1), ["libpq.so+0x1234", "leak (/app/a.rb:1)"]);
    for one in live.blocks.as_ref().unwrap() {
        let location = &live.places[one.place as usize].location;
        assert_eq!(*location, live.summary.stacks.location(one.node));
    }
}

#[test]
fn what_happened_later_is_left_out() {
    let mut records = frames();
    records.extend([
        Record::Clock { ms: 100, rss: 0 },
        Record::Allocation(block(1, 10, 16)),
        Record::Clock { ms: 200, rss: 0 },
        Record::Free(block(1, 10, 16)),
        Record::Allocation(block(3, 20, 16)),
        Record::End { missed: 0 },
    ]);
    let bytes = file(&records, 4);
    let at = |until| {
        let live = LiveBlocks::read(&mut &bytes[..], until).unwrap();
        let sizes = located(&live).into_iter().map(|(_, size, _)| size);
        (sizes.collect::<Vec<_>>(), live.ended)
    };
    assert_eq!(at(1_099), (vec![], false));
    assert_eq!(at(1_199), (vec![10], false));
    assert_eq!(at(1_200), (vec![20], true));
}

#[test]
fn an_address_may_be_allocated_again_before_the_free_of_its_reallocation() {
    let (old, moved, new) = (block(1, 10, 16), block(1, 20, 64), block(3, 30, 16));
    let mut records = frames();
    records.extend([
        Record::Allocation(old),
        Record::Allocation(new),
        Record::Free(old),
        Record::Allocation(moved),
    ]);
    let rows = |records: &[_]| {
        let rows = located(&live(&file(records, 99))).into_iter();
        rows.map(|(address, size, _)| (address, size)).collect::<Vec<_>>()
    };
    assert_eq!(rows(&records), [(16, 30), (64, 20)]);
    records.push(Record::Free(new));
    assert_eq!(rows(&records), [(64, 20)]);
    // The new block may be freed first, too.
    records.truncate(frames().len() + 2);
    records.extend([Record::Free(new), Record::Free(old)]);
    assert_eq!(rows(&records), []);
}

#[test]
fn what_cannot_be_is_damage() {
    for event in [block(1, 10, 32), block(1, 11, 16), block(2, 10, 16)] {
        let mut records = frames();
        records.push(Record::Allocation(block(1, 10, 16)));
        records.push(Record::Allocation(block(1, 11, 64)));
        records.push(Record::Allocation(block(2, 10, 96)));
        records.push(Record::Free(event));
        let live = live(&file(&records, 99));
        assert_eq!(live.summary.damaged_at, Some(17), "{event:?}");
    }
}

#[test]
fn a_damaged_file_has_the_blocks_that_were_live_before_the_damage() {
    let (records, _) = random(60);
    let bytes = file(&records, 5);
    let whole = located(&live(&bytes));
    let before = |end: usize| {
        let mut blocks = BTreeMap::new();
        for record in &records[..end] {
            match record {
                Record::Allocation(event) => drop(blocks.insert(event.address, event.size)),
                Record::Free(event) => drop(blocks.remove(&event.address)),
                _ => {}
            }
        }
        blocks.into_iter().collect::<Vec<_>>()
    };
    let possible: Vec<_> = (0..=records.len() / 5).map(|number| before(number * 5)).collect();
    let sizes = |bytes: &[u8]| {
        // The file may be cut off before the record that enables addresses.
        let live = live(bytes);
        let rows = live.blocks.is_some().then(|| located(&live));
        let rows = rows.unwrap_or_default().into_iter();
        rows.map(|(address, size, _)| (address, size)).collect::<Vec<_>>()
    };
    for length in 17..bytes.len() {
        assert!(possible.contains(&sizes(&bytes[..length])), "{length}");
    }
    for bit in 17 * 8..bytes.len() * 8 {
        let mut bytes = bytes.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        assert!(possible.contains(&sizes(&bytes)), "{bit}");
    }
    assert_eq!(whole.len(), possible.last().unwrap().len());
}

#[test]
fn those_that_do_not_need_addresses_ignore_them() {
    let (records, _) = random(2_000);
    let without: Vec<_> =
        records.iter().filter(|record| **record != Record::Addresses).copied().collect();
    let (with, without) = (file(&records, 99), file(&without, 99));
    let (one, mut other) = (summary(&with), summary(&without));
    assert!(one.addresses && !other.addresses);
    other.addresses = true;
    // Addresses show that a freed block is not the one allocated last.
    other.total.temporary = one.total.temporary;
    for (row, of_one) in other.locations.iter_mut().zip(&one.locations) {
        row.counts.temporary = of_one.counts.temporary;
    }
    other.stacks = one.stacks.clone();
    assert_eq!(one, other);
    assert_eq!(exported(&with, Format::Heaptrack), exported(&without, Format::Heaptrack));
    assert!(live(&without).blocks.is_none());
}
