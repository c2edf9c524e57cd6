//! Merges nodes into one finding: similar paths, keys and values, both directions of a list.

use rustc_hash::FxHashMap;

use super::growth::{Growing, Search, Trend, gained};
use super::merged::{Link, Nature};
use memprof_dump::record::NameId;

/// A label and the class of its target.
type Step = ((Link, NameId), NameId);

impl Search<'_> {
    /// Merges nodes that different objects retain in the same way, as each class may have its own cache.
    ///
    /// Each of `tops` is a node, the one above whose growth counts, and its trend.
    pub fn alike(&self, tops: Vec<(u32, u32, Trend, bool)>) -> Vec<Growing> {
        let mut found: Vec<Growing> = Vec::new();
        let mut known: FxHashMap<(Vec<Step>, bool), usize> = FxHashMap::default();
        for (at, whole, trend, in_place) in tops {
            let key = (self.near(at), in_place);
            let (own, all) = (&self.own[at as usize], &self.all[whole as usize]);
            let number = *known.entry(key).or_insert(found.len());
            if number == found.len() {
                found.push(Growing {
                    node: at,
                    alike: vec![at],
                    beside: Vec::new(),
                    trend,
                    in_place,
                    own: own.clone(),
                    all: all.clone(),
                    lines: Vec::new(),
                });
                continue;
            }
            let same = &mut found[number];
            let gains = |at: u32| gained(&self.all[at as usize], |sum| sum.size);
            if gains(at) > gains(same.node) {
                (same.node, same.trend) = (at, trend);
            }
            same.alike.push(at);
            for (sum, &more) in same.own.iter_mut().zip(own) {
                sum.add(more);
            }
            for (sum, &more) in same.all.iter_mut().zip(all) {
                sum.add(more);
            }
        }
        found
    }

    /// The steps to a node from the nearest referrer that is not a collection, which is identified by its class.
    fn near(&self, at: u32) -> Vec<Step> {
        let node = |at: u32| &self.tree.nodes[at as usize];
        let mut steps = Vec::new();
        let mut at = node(at);
        loop {
            steps.push((at.label, at.class));
            let holder = node(at.parent);
            let class = self.tree.names.name(holder.class);
            if at.parent == 0 || !matches!(class, "Array" | "Hash") {
                // Each class may have its own cache.
                if holder.nature != Nature::Known {
                    steps.push(((Link::None, holder.class), holder.class));
                }
                return steps;
            }
            at = holder;
        }
    }

    /// Keys and values of the same Hashes are one finding: the one with the larger growth, with the other beside it.
    pub fn with_keys(&self, found: Vec<Growing>) -> Vec<Growing> {
        let node = |at: u32| &self.tree.nodes[at as usize];
        let mut together: Vec<Growing> = Vec::new();
        let mut known: FxHashMap<Vec<u32>, usize> = FxHashMap::default();
        for mut one in found {
            if node(one.node).label.0 != Link::Any || one.in_place {
                together.push(one);
                continue;
            }
            let mut holders: Vec<u32> = one.alike.iter().map(|&at| node(at).parent).collect();
            holders.sort_unstable();
            let number = *known.entry(holders).or_insert(together.len());
            let Some(other) = together.get_mut(number) else {
                together.push(one);
                continue;
            };
            if node(one.node).label == node(other.node).label {
                together.push(one);
                continue;
            }
            if one.gained() > other.gained() {
                std::mem::swap(&mut one, other);
            }
            other.beside.extend(one.alike);
            other.beside.extend(one.beside);
            for (sum, more) in other.all.iter_mut().zip(one.all) {
                sum.add(more);
            }
        }
        together
    }

    /// A doubly linked list is one finding, whichever path to its elements is shorter.
    pub fn both_ways(&self, found: Vec<Growing>) -> Vec<Growing> {
        let mut together: Vec<Growing> = Vec::new();
        let mut known: FxHashMap<(NameId, Vec<u32>), usize> = FxHashMap::default();
        for mut one in found {
            let node = &self.tree.nodes[one.node as usize];
            if !node.is_list() {
                together.push(one);
                continue;
            }
            let path = self.tree.path(one.node);
            let holder = self.tree.known(&path).iter().copied().take(2).collect();
            let number = *known.entry((node.class, holder)).or_insert(together.len());
            let Some(other) = together.get_mut(number) else {
                together.push(one);
                continue;
            };
            if one.gained() > other.gained() {
                std::mem::swap(&mut one, other);
            }
            other.beside.extend(one.alike);
            other.beside.extend(one.beside);
            let sums = (other.own.iter_mut().zip(one.own)).chain(other.all.iter_mut().zip(one.all));
            sums.for_each(|(sum, more)| sum.add(more));
        }
        together
    }

    /// For nested collections, the elements that have such collections themselves.
    pub fn member(&self, at: u32, growing: &[Option<(Trend, bool)>]) -> u32 {
        let node = |at: u32| &self.tree.nodes[at as usize];
        let is_plain = |at: u32| {
            let class = self.tree.names.name(node(at).class);
            node(at).nature != Nature::Object || matches!(class, "Array" | "Hash" | "String")
        };
        if !node(at).repeats || !is_plain(at) {
            return at;
        }
        let more = |at: u32| gained(&self.own[at as usize], |sum| sum.count);
        let members = self.below[at as usize].iter().copied();
        let members = members.filter(|&below| {
            growing[below as usize].is_some()
                && !is_plain(below)
                && more(below) * 10 >= more(at) * 9
        });
        let gains = |at: &u32| gained(&self.all[*at as usize], |sum| sum.size);
        members.max_by_key(gains).unwrap_or(at)
    }
}
