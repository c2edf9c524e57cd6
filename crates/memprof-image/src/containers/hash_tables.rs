//! Nodes and buckets of `std::unordered_map` and `std::unordered_set`: `{buckets, number of buckets, first node, number of
//! elements, maximum load factor (float), number of elements at which it grows, the only bucket}`. Nodes are `{next, element}`. A
//! bucket points to the node before its first one; the first node of all is preceded by the header's pointer to it. libc++ has
//! the same layout without the last two.

use super::Container;
use super::finder::{Finder, Place, fits};
use crate::blocks::Block;
use crate::image::WORD;

/// Offsets in the header: the first node, and the only bucket.
const FIRST: u64 = 2 * WORD;
const ONLY_BUCKET: u64 = 6 * WORD;

impl Finder<'_> {
    /// Checks for a header that contains the address of its buckets, or of its first node if it has only one bucket.
    pub(super) fn hash_table(&mut self, place: &Place<'_>, number: u32, block: Block) {
        if place.within != Some(number) && self.table_of_buckets(place, block).is_some() {
            self.found(number, Container::UnorderedMapOrSetBuckets);
        }
        self.table_of_one_bucket(place);
    }

    fn table_of_buckets(&mut self, place: &Place<'_>, block: Block) -> Option<()> {
        let [buckets, first, count, load] =
            [place.word(1)?, place.word(2)?, place.word(3)?, place.word(4)?];
        let size = buckets.checked_mul(WORD)?;
        let load = f32::from_bits(load as u32);
        if buckets < 2 || size > block.size || !fits(block.size, size) || !is_load(load) {
            return None;
        }
        let before_first = place.at.checked_add(FIRST)?;
        if count == 0 && first == 0 {
            // An empty table is recognized only by its numbers.
            let grows_at = (buckets as f64 * f64::from(load)).floor() as u64;
            let is_known = place.word(5)? == grows_at;
            let used = is_known.then(|| self.buckets_in_use(block, buckets)).flatten()?;
            return used.is_empty().then_some(());
        }
        if !self.is_count(count) || self.used_at(first).is_none() {
            return None;
        }
        let mut used = self.buckets_in_use(block, buckets)?;
        let own = used.iter().position(|bucket| *bucket == before_first)?;
        used.swap_remove(own);
        let nodes = self.chain(first, count)?;
        let mut members = nodes.clone();
        members.sort_unstable();
        let is_member = |bucket: &u64| {
            (self.used_at(*bucket)).is_some_and(|(node, _)| members.binary_search(&node).is_ok())
        };
        if !used.iter().all(is_member) {
            return None;
        }
        self.found_nodes(&nodes, Container::UnorderedMapOrSetNode);
        Some(())
    }

    fn table_of_one_bucket(&mut self, place: &Place<'_>) -> Option<()> {
        let header = place.at.checked_sub(FIRST)?;
        let [buckets, size, count, load] =
            [place.word(-2)?, place.word(-1)?, place.word(1)?, place.word(2)?];
        let is_header = buckets == header.checked_add(ONLY_BUCKET)?
            && size == 1
            && self.is_count(count)
            && is_load(f32::from_bits(load as u32))
            && place.word(4)? == place.at;
        let nodes = is_header.then(|| self.chain(place.word(0)?, count)).flatten()?;
        self.found_nodes(&nodes, Container::UnorderedMapOrSetNode);
        Some(())
    }

    /// The buckets that are not empty.
    fn buckets_in_use(&mut self, block: Block, buckets: u64) -> Option<Vec<u64>> {
        let mut used = Vec::new();
        for bucket in 0..buckets {
            match self.word(block.address, bucket.checked_mul(WORD)?)? {
                0 => {}
                node => used.push(node),
            }
            if bucket % 64 == 0 && !self.step() {
                return None;
            }
        }
        Some(used)
    }

    /// Exactly so many nodes; the last one has no successor.
    fn chain(&mut self, first: u64, count: u64) -> Option<Vec<u32>> {
        let mut nodes = Vec::new();
        let mut at = first;
        for _ in 0..count {
            nodes.push(self.used_at(at)?.0);
            at = self.word(at, 0)?;
            if !self.step() {
                return None;
            }
        }
        (at == 0).then_some(nodes)
    }
}

fn is_load(load: f32) -> bool {
    (0.01..=1000.0).contains(&load)
}
