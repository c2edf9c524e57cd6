//! Other referrers of the objects that grow. Each object has one path in the tree, the shortest; an object in two collections
//! is not freed until both release it.

use std::cmp::Reverse;

use rustc_hash::FxHashMap;

use super::growth::{Growing, is_stack};
use super::merged::{Link, Nature, is_global_scope};
use super::reading::{ANY_ENTRY, named, without_key};
use super::turnover::is_in_frame;
use super::{Verdict, step};
use crate::order;
use crate::questions::{Error, Phrase};
use memprof_heap::{Heap, Label, NONE, Packed};

/// Maximum number of other referrers.
const MOST: usize = 2;

/// Source of references: a finding, the node of the referrer, and the label without index or key.
type Way = (usize, u32, u32);

impl Verdict {
    /// For each finding, the other referrers of at least half of its objects in the last heap.
    pub(super) fn also(&self, found: &[Growing], last: &Heap) -> Result<Vec<Vec<Phrase>>, Error> {
        let mut also = vec![Vec::new(); found.len()];
        let mut ways: Vec<(Way, u64)> = self.ways(found, last)?.into_iter().collect();
        order::sort_by_key(&mut ways, |&((_, holder, label), count)| {
            (Reverse(count), holder, label)
        });
        for ((number, holder, label), count) in ways {
            let objects = found[number].own.last().map_or(0, |sum| sum.count);
            if count * 2 < objects || also[number].len() == MOST {
                continue;
            }
            let Some(phrase) = self.way(holder, label, last) else {
                continue;
            };
            let others = &mut also[number];
            let is_known =
                others.contains(&phrase) || self.retained_by(found[number].node) == phrase;
            if !is_known {
                others.push(phrase);
            }
        }
        Ok(also)
    }

    /// References to the objects of the findings, except those on their paths and those from below.
    fn ways(&self, found: &[Growing], last: &Heap) -> Result<FxHashMap<Way, u64>, Error> {
        let nodes = &self.tree.nodes;
        let mut of_finding = vec![None; nodes.len()];
        for (number, one) in found.iter().enumerate() {
            for &node in &one.alike {
                of_finding[node as usize] = Some(number);
            }
        }
        // Objects in the same collection are freed together with it.
        let mut below = of_finding.clone();
        for (number, one) in found.iter().enumerate() {
            for &node in &one.alike {
                let holder = nodes[node as usize].parent as usize;
                if nodes[holder].nature == Nature::Object {
                    below[holder] = below[holder].or(Some(number));
                }
            }
        }
        let mut passing = vec![false; nodes.len()];
        for (at, node) in nodes.iter().enumerate().skip(1) {
            let parent = node.parent as usize;
            below[at] = below[at].or(below[parent]);
            passing[at] = passing[parent]
                || node.nature == Nature::Cache
                || is_in_frame(&nodes[parent], node)
                || is_stack(self.text(node.class));
        }
        let (graph, steps, labels) = (last.graph(&[])?, last.steps()?, last.labels()?);
        let mut ways: FxHashMap<Way, (u64, u32)> = FxHashMap::default();
        for (&holder, from) in self.tree.last.iter().zip(0..) {
            if holder == NONE || passing[holder as usize] {
                continue;
            }
            let begin = graph.offsets.get(from as usize).map_or(0, |&begin| begin as usize);
            for (&to, edge) in graph.row(from).iter().zip(begin..) {
                let node = self.tree.last.get(to as usize).filter(|&&node| node != NONE);
                let Some(number) = node.and_then(|&node| of_finding[node as usize]) else {
                    continue;
                };
                if steps[to as usize] == from || below[holder as usize] == Some(number) {
                    continue;
                }
                let label = labels.get(edge).copied().unwrap_or(Packed::NONE.0);
                let of_thread = nodes[holder as usize].nature == Nature::Thread;
                let label = if of_thread { label } else { without_key(label) };
                let way = ways.entry((number, holder, label)).or_insert((0, NONE));
                if way.1 != to {
                    *way = (way.0 + 1, to);
                }
            }
        }
        Ok(ways.into_iter().map(|(way, (count, _))| (way, count)).collect())
    }

    /// The path to the object that a referrer references; `None` if people would not recognize it.
    fn way(&self, holder: u32, label: u32, heap: &Heap) -> Option<Phrase> {
        let node = &self.tree.nodes[holder as usize];
        let class = self.text(node.class);
        let label = match label {
            ANY_ENTRY => Label::Index(0),
            _ => Packed(label).label(),
        };
        let (link, label) = match label {
            Label::Under(key) if node.nature == Nature::Thread => {
                (Link::ThreadLocal, heap.name(key).to_owned())
            }
            _ => named(heap, label),
        };
        match node.nature {
            Nature::Root if link != Link::Global => return None,
            Nature::Thread if link == Link::None => return None,
            Nature::Fiber => return None,
            _ => {}
        }
        let last = Phrase::from(step(class, link, &label));
        let begins = node.nature == Nature::Known
            || link == Link::Global
            || link == Link::Constant && is_global_scope(class);
        let path = self.tree.path(holder);
        Some(match begins {
            true => last,
            false => self.joined(self.tree.known(&path), Some(last)),
        })
    }
}
