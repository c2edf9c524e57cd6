//! The live table against a map.

use super::*;
use std::collections::BTreeMap;

fn cell(n: u32) -> CellId {
    CellId(n)
}

#[test]
fn a_record_keeps_what_it_was_given() {
    let record = Record::new(cell(7), 5, 160);
    assert_eq!((record.cell(), record.slot_size(), record.age(9)), (cell(7), 160, 4));
    assert_eq!(Record::new(cell(0), GENERATION_MASK, 40).age(1), 2, "generations wrap round");
}

#[test]
fn the_reciprocal_divides_every_offset_exactly() {
    for size in (8..=2040).step_by(8) {
        let page = Page::new(size, 0);
        for offset in 0..=PAGE_MASK {
            assert_eq!(
                page.index(offset),
                (offset / u64::from(size)) as usize,
                "offset {offset}, size {size}"
            );
        }
    }
}

#[test]
fn an_address_used_again_is_a_new_object() {
    let mut table = LiveTable::new();
    assert_eq!(table.insert(0x10000, cell(1), 0, || 40), None);
    let previous = table.insert(0x10000, cell(2), 1, || 40);
    assert_eq!(previous.map(Record::cell), Some(cell(1)));
    assert_eq!(table.len(), 1);
    assert_eq!(table.remove(0x10000).map(Record::cell), Some(cell(2)));
    assert_eq!(table.remove(0x10000), None);
}

#[test]
fn an_emptied_page_may_come_again_with_other_slots() {
    let mut table = LiveTable::new();
    table.insert(0x20028, cell(1), 0, || 40);
    table.remove(0x20028);
    assert_eq!(table.insert(0x20150, cell(2), 0, || 320), None);
    assert_eq!(table.get(0x20150).map(Record::slot_size), Some(320));
    assert_eq!(table.iter().map(|(address, _)| address).collect::<Vec<_>>(), [0x20150]);
}

/// Random allocations, frees and moves against a `BTreeMap`.
#[test]
fn behaves_as_a_map() {
    let mut state = 0x9e3779b97f4a7c15u64;
    let mut random = move |limit: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % limit
    };
    // Page n has slots of 40 << (n % 3) bytes that begin at an offset of its own.
    let address =
        |page: u64, slot: u64| (page << PAGE_BITS) + 16 + page % 5 * 8 + slot * (40 << (page % 3));
    let size = |address: u64| 40 << ((address >> PAGE_BITS) % 3);
    let mut table = LiveTable::new();
    let mut oracle = BTreeMap::new();
    for step in 0..200_000u32 {
        let at = address(random(9), random(400));
        if random(3) == 0 {
            assert_eq!(table.remove(at).map(|record| record.cell().0), oracle.remove(&at));
        } else {
            let previous = table.insert(at, cell(step), step, || size(at));
            assert_eq!(previous.map(|record| record.cell().0), oracle.insert(at, step));
        }
        if step % 50_000 == 49_999 {
            // Compaction: all objects of pages 3.. move to pages 100 up; some are freed.
            let moved = |at: u64| {
                (at % 11 != 0)
                    .then(|| if at >> PAGE_BITS > 3 { at + (102 << PAGE_BITS) } else { at })
            };
            let mut dead = 0;
            table.relocate(moved, size, |_| dead += 1);
            let before = oracle.len();
            oracle = oracle.into_iter().filter_map(|(at, n)| Some((moved(at)?, n))).collect();
            assert_eq!(dead, before - oracle.len());
            // And back, so that the next allocations collide with them.
            let back =
                |at: u64| Some(if at >> PAGE_BITS > 100 { at - (102 << PAGE_BITS) } else { at });
            table.relocate(back, size, |_| panic!("nothing died"));
            oracle = oracle.into_iter().filter_map(|(at, n)| Some((back(at)?, n))).collect();
        }
        if step % 20_000 == 0 {
            let seen: Vec<(u64, u32)> =
                table.iter().map(|(at, record)| (at, record.cell().0)).collect();
            assert_eq!(seen, oracle.iter().map(|(at, n)| (*at, *n)).collect::<Vec<_>>());
            assert_eq!(table.len(), oracle.len() as u64);
        }
    }
}
