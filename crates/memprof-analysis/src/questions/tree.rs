//! The dominator tree: which objects retain which.

use std::cmp::Reverse;

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use super::describe::{Described, Describer, Named};
use super::list::largest;
use super::{Error, Limit};
use memprof_heap::graph;
use memprof_heap::{Heap, Sizes};

/// `tree`: the objects that an object retains, level by level.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Question {
    /// The object (default: the roots).
    pub of: Option<Named>,
    /// Whether to merge the objects of one class.
    pub by_class: bool,
    /// Maximum depth.
    pub depth: Limit<3>,
    /// Maximum number of branches per level.
    pub limit: Limit<10>,
    /// Minimum retained size of a branch in bytes (default: 1).
    pub min: Option<u64>,
}

/// A branch of the tree: an object, or all objects of a class below the same branch.
#[derive(Clone, Debug, Serialize)]
pub struct Branch {
    /// The object; for a class, the largest one.
    #[serde(flatten)]
    pub object: Described,
    /// Label of the reference from the branch above, if that references it.
    pub label: Option<String>,
    /// Number of objects.
    pub count: u64,
    /// Their retained size.
    pub sum: u64,
    /// The objects that they retain, the largest first.
    pub branches: Vec<Branch>,
    /// Number and retained size of the branches that are not shown.
    pub more: (u64, u64),
}

/// Maximum depth: the answer is nested as deeply.
const DEEPEST: usize = 40;

impl Question {
    /// The answer.
    ///
    /// # Errors
    /// If the object does not exist.
    pub fn answer(&self, heap: &Heap) -> Result<Branch, Error> {
        let node = match &self.of {
            Some(named) => named.find(heap)?,
            None => heap.root(),
        };
        let growing = Growing {
            describer: Describer::new(heap)?,
            tree: heap.tree()?,
            groups: heap.group_numbers()?,
            retained: heap.retained()?,
            by_class: self.by_class,
            limit: self.limit.0,
            min: self.min.unwrap_or(1),
        };
        let depth = self.depth.0.min(DEEPEST);
        Ok(growing.branch(&[node], None, depth))
    }
}

/// Retained size and objects of a branch, the largest object first.
type Part = (u64, Vec<u32>);

struct Growing<'h> {
    describer: Describer<'h>,
    tree: &'h graph::Tree,
    /// Of objects, not of roots.
    groups: &'h [u32],
    retained: &'h Sizes,
    by_class: bool,
    limit: usize,
    min: u64,
}

impl Growing<'_> {
    /// `nodes` must not be empty, and the largest comes first.
    fn branch(&self, nodes: &[u32], above: Option<u32>, depth: usize) -> Branch {
        let first = nodes[0];
        let (all, sum, parts) = match self.by_class {
            true => self.classes(nodes),
            false => self.objects(nodes),
        };
        let parts = if depth == 0 { Vec::new() } else { parts };
        let shown: u64 = parts.iter().map(|part| part.0).sum();
        let more = ((all - parts.len()) as u64, sum - shown);
        let branches =
            parts.into_iter().map(|(_, members)| self.branch(&members, Some(first), depth - 1));
        Branch {
            branches: branches.collect(),
            object: self.describer.describe(first),
            label: above.and_then(|above| self.describer.words.label(above, first)),
            count: nodes.len() as u64,
            sum: self.sum(nodes),
            more,
        }
    }

    fn sum(&self, nodes: &[u32]) -> u64 {
        nodes.iter().fold(0, |sum, &node| sum.saturating_add(self.retained.get(node)))
    }

    fn below<'a>(&'a self, nodes: &'a [u32]) -> impl Iterator<Item = u32> + 'a {
        nodes.iter().flat_map(|&node| self.tree.children(node))
    }

    /// The number of objects below, their retained size, and the largest ones.
    fn objects(&self, nodes: &[u32]) -> (usize, u64, Vec<Part>) {
        let (mut all, mut sum) = (0, 0_u64);
        let counted = self.below(nodes).inspect(|&child| {
            all += 1;
            sum = sum.saturating_add(self.retained.get(child));
        });
        let first = largest(counted, self.limit, |child| Some(self.retained.get(child)));
        let parts = first
            .into_iter()
            .map(|(child, retained)| (retained.unwrap_or(0), vec![child]))
            .filter(|part| part.0 >= self.min)
            .collect();
        (all, sum, parts)
    }

    /// The same with the objects of a class merged, including those of different classes with the same name.
    fn classes(&self, nodes: &[u32]) -> (usize, u64, Vec<Part>) {
        let mut by_name: FxHashMap<&str, usize> = FxHashMap::default();
        // The objects of a group have the same class.
        let mut by_group: FxHashMap<u32, usize> = FxHashMap::default();
        let mut parts: Vec<Part> = Vec::new();
        for child in self.below(nodes) {
            let group = self.groups.get(child as usize).copied();
            let part = match group.and_then(|group| by_group.get(&group)) {
                Some(&part) => part,
                None => {
                    let class = self.describer.words.class(child);
                    *by_name.entry(class).or_insert(parts.len())
                }
            };
            if let Some(group) = group {
                by_group.insert(group, part);
            }
            if part == parts.len() {
                parts.push((0, Vec::new()));
            }
            let (sum, members) = &mut parts[part];
            *sum = sum.saturating_add(self.retained.get(child));
            members.push(child);
        }
        let all = parts.len();
        let sum = parts.iter().map(|part| part.0).sum();
        parts.retain(|part| part.0 >= self.min);
        for (_, members) in &mut parts {
            let rank = |&(_, &node): &(usize, &u32)| (Reverse(self.retained.get(node)), node);
            if let Some((place, _)) = members.iter().enumerate().min_by_key(rank) {
                members.swap(0, place);
            }
        }
        parts.sort_unstable_by_key(|part| (Reverse(part.0), part.1.first().copied()));
        parts.truncate(self.limit);
        (all, sum, parts)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::tests::ask;
    use memprof_dump::record::Kind;
    use memprof_heap::Heap;
    use memprof_heap::testing::{address, class, heap, random, string, thing};

    fn shop() -> Heap {
        let mut cart = thing(address(1), Kind::ARRAY, "Array").length(3);
        for number in 0..3 {
            cart = cart.to(&format!("[{number}]"), address(2 + number));
        }
        let strings =
            (0..3).map(|number| string(address(2 + number), "x").size(100 * (number + 1)));
        let mut things = vec![class(address(0), "Shop", 0).to("@cart", address(1)), cart];
        things.extend(strings);
        heap(&[("vm", &[address(0)])], &things)
    }

    #[test]
    fn shows_the_largest_first_with_their_labels() {
        let answer = ask(&shop(), "tree", json!({ "of": address_of(1), "limit": 2, "depth": 1 }))
            .expect("an answer");
        let labels: Vec<&str> = answer["branches"]
            .as_array()
            .expect("a list")
            .iter()
            .filter_map(|branch| branch["label"].as_str())
            .collect();
        assert_eq!(labels, ["[2]", "[1]"]);
        assert_eq!(answer["more"], json!([1, 100]));
        assert_eq!(answer["sum"], json!(640));
    }

    #[test]
    fn objects_of_one_class_can_be_taken_together() {
        let answer = ask(&shop(), "tree", json!({ "of": address_of(1), "by_class": true }))
            .expect("an answer");
        let branch = &answer["branches"][0];
        assert_eq!(
            (&branch["class"], &branch["count"], &branch["sum"]),
            (&json!("String"), &json!(3), &json!(600))
        );
    }

    #[test]
    fn branches_and_what_is_not_shown_make_up_the_whole() {
        for seed in 1..20 {
            let (_, heap) = random(seed, 200);
            for by_class in [false, true] {
                let answer =
                    ask(&heap, "tree", json!({ "by_class": by_class, "depth": 6, "limit": 3 }))
                        .expect("an answer");
                let mut open = vec![&answer];
                while let Some(branch) = open.pop() {
                    let branches = branch["branches"].as_array().expect("a list");
                    let shown: u64 =
                        branches.iter().filter_map(|branch| branch["sum"].as_u64()).sum();
                    let below = shown + branch["more"][1].as_u64().expect("a sum");
                    assert!(below <= branch["sum"].as_u64().expect("a sum"));
                    open.extend(branches);
                }
            }
        }
    }

    fn address_of(number: u64) -> String {
        format!("{:#x}", address(number))
    }
}
