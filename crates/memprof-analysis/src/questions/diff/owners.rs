//! Old objects that retain the new ones.
//!
//! The owner of a new object is its nearest dominator that is not new: without the owner, the new object would be freed. If
//! several old objects retain new ones, the owner is their common dominator. A String or Array can also grow without new
//! objects.

use std::cmp::Reverse;
use std::ops::Deref;

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use super::Diff;
use super::rows::Sort;
use super::totals::Sum;
use crate::order;
use crate::questions::describe::{Described, Describer};
use crate::questions::list::{List, Measure, Measured, Order};
use crate::questions::path::{self, Path};
use crate::questions::{Error, Limit, Remark};
use memprof_heap::graph::BitSet;
use memprof_heap::{Heap, NONE};

/// Maximum number of classes listed for an owner.
const CLASSES: usize = 5;

/// Minimum growth in bytes of an object's own size: small ones grow when a key or two are added.
const GROWN: u64 = 4096;

/// `owners`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Question {
    /// Only these new objects; `change = "survived"` is allowed here.
    pub r#where: Option<String>,
    /// Sort order: `size`, `count`, `retained` or `survived`.
    pub sort: Sort,
    /// Maximum number of owners.
    pub limit: Limit<20>,
    /// Includes old objects that have grown themselves, even if they retain no new ones.
    pub grown: bool,
}

/// Objects of one class.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OfClass {
    /// Name.
    pub class: String,
    /// Their number and size.
    #[serde(flatten)]
    pub sum: Sum,
}

/// An old object, and the new ones that it retains.
#[derive(Clone, Debug, Serialize)]
pub struct Owner {
    /// The old object, or a root.
    #[serde(flatten)]
    pub object: Described,
    /// Its retained size before; null for a root that did not exist.
    pub before: Option<u64>,
    /// Growth of its retained size, by its own size and by new objects. Objects that only replaced others do not count,
    /// nor do those that an old object below it retains.
    pub growth: i64,
    /// New objects that it retains.
    pub new: Sum,
    /// The new objects that survived; null if there are only two heaps.
    pub survived: Option<Sum>,
    /// Memory freed together with the new objects.
    pub retained_by_new: u64,
    /// Their classes, the largest first.
    pub classes: Vec<OfClass>,
    /// Path to the owner.
    pub path: Path,
    /// For a root, which explains little: the path to the new object that retains most; for all roots together, if it
    /// retains half.
    pub largest: Option<Path>,
}

/// The answer.
#[derive(Clone, Debug, Serialize)]
pub struct Owners {
    /// Possible errors of the comparison.
    pub warnings: Vec<Remark>,
    /// In the requested order.
    pub owners: Vec<Owner>,
    /// Owners that are not returned.
    pub more: usize,
    /// New objects that nothing retains: garbage that was not yet freed.
    pub unreachable: Sum,
}

#[derive(Default)]
struct Held {
    new: Sum,
    survived: Sum,
    retained: u64,
    /// Growth of its own size.
    grown: u64,
    /// The new object directly below that retains most.
    largest: Option<(u64, Reverse<u32>)>,
    /// By class.
    classes: FxHashMap<u32, Sum>,
}

impl Question {
    pub(super) fn answer<H: Deref<Target = Heap>>(&self, diff: &Diff<H>) -> Result<Owners, Error> {
        let mut chosen = diff.chosen(self.r#where.as_deref())?.after.clone();
        chosen.intersect(&diff.changes.new);
        let (mut held, unreachable) = held(diff, &chosen)?;
        for (node, size) in grown(diff)? {
            if self.grown && size >= GROWN || held.contains_key(&node) {
                held.entry(node).or_default().grown = size;
            }
        }
        let mut owners: Vec<(u32, Held)> = held.into_iter().collect();
        order::sort_by_key(&mut owners, |(node, _)| *node);
        let rows = Measured(|row: u32, measure| {
            let held = &owners[row as usize].1;
            Some(match measure {
                Measure::Count => held.new.count,
                Measure::Retained => held.retained.saturating_add(held.grown),
                Measure::Survived => held.survived.size,
                _ => held.new.size,
            })
        });
        let order: Order = match self.sort {
            Sort::Size | Sort::New => &[Measure::Size],
            Sort::Count => &[Measure::Count, Measure::Size],
            Sort::Retained => &[Measure::Retained, Measure::Size],
            Sort::Survived => &[Measure::Survived, Measure::Size],
        };
        let page = List::new(&rows, order).page(0..owners.len() as u32, self.limit, 0);
        let (owners, more) = (page.of(owners), page.more);
        let describer = Describer::new(&diff.after)?;
        let described =
            owners.into_iter().map(|(node, held)| describe(diff, &describer, node, held));
        let owners = described.collect::<Result<Vec<_>, _>>()?;
        Ok(Owners { warnings: diff.warnings.clone(), owners, more, unreachable })
    }
}

/// The new objects that each owner retains, and those without owner.
fn held<H: Deref<Target = Heap>>(
    diff: &Diff<H>,
    chosen: &BitSet,
) -> Result<(FxHashMap<u32, Held>, Sum), Error> {
    let heap: &Heap = &diff.after;
    let (sizes, retained) = (heap.memsizes()?, heap.retained()?);
    let (tree, dominators) = (heap.tree()?, heap.dominators()?);
    let groups = heap.group_numbers()?;
    let class =
        |id: u32| heap.groups().get(groups[id as usize] as usize).map_or(NONE, |group| group.shown);
    let new = &diff.changes.new;
    let mut held: FxHashMap<u32, Held> = FxHashMap::default();
    // The new nodes above, each with the end of its subtree, its owner, and whether its bytes are already counted in a
    // retained size.
    let mut above: Vec<(u32, u32, bool)> = Vec::new();
    for ((&node, &end), place) in tree.nodes().iter().zip(tree.ends()).zip(0..) {
        if !new.contains(node) {
            continue;
        }
        while above.last().is_some_and(|(end, ..)| place >= *end) {
            above.pop();
        }
        let parent = dominators.parent_of(node).unwrap_or(node);
        let (owner, under) = match above.last() {
            // The parent is the last of them.
            Some(&(_, owner, covered)) if new.contains(parent) => (owner, covered),
            _ => (parent, false),
        };
        if end > place + 1 {
            above.push((end, owner, under || chosen.contains(node)));
        }
        if !chosen.contains(node) {
            continue;
        }
        let held = held.entry(owner).or_default();
        let size = sizes.get(node);
        held.new.add(size);
        held.classes.entry(class(node)).or_default().add(size);
        if diff.survived.as_ref().is_some_and(|survived| survived.contains(node)) {
            held.survived.add(size);
        }
        if !under {
            held.largest = held.largest.max(Some((retained.get(node), Reverse(node))));
            held.retained = held.retained.saturating_add(retained.get(node));
        }
    }
    let mut unreachable = Sum::default();
    for id in chosen.iter().filter(|&id| !dominators.reaches(id)) {
        unreachable.add(sizes.get(id));
    }
    Ok((held, unreachable))
}

/// Old objects whose own size grew, with the growth.
fn grown<H: Deref<Target = Heap>>(diff: &Diff<H>) -> Result<Vec<(u32, u64)>, Error> {
    let (before, after) = (diff.before.memsizes()?, diff.after.memsizes()?);
    let grown = (0..diff.after.len()).filter_map(|node| {
        let old = diff.changes.origin(node)?;
        let size = after.get(node).saturating_sub(before.get(old));
        (size > 0).then_some((node, size))
    });
    Ok(grown.collect())
}

/// The same root in the heap before.
fn root_before<H: Deref<Target = Heap>>(diff: &Diff<H>, node: u32) -> Option<u32> {
    let (before, after): (&Heap, &Heap) = (&diff.before, &diff.after);
    if node == after.root() {
        return Some(before.root());
    }
    let name = &after.category(node)?.name;
    let mut known = before.categories().iter();
    let category = known.position(|category| category.name == *name)?;
    Some(before.category_node(category))
}

fn describe<H: Deref<Target = Heap>>(
    diff: &Diff<H>,
    describer: &Describer<'_>,
    node: u32,
    held: Held,
) -> Result<Owner, Error> {
    let heap: &Heap = &diff.after;
    let before = diff.changes.origin(node).or_else(|| root_before(diff, node));
    let before =
        before.map(|old| Ok::<u64, Error>(diff.before.retained()?.get(old))).transpose()?;
    let object = describer.describe(node);
    let growth = i128::from(object.retained) - i128::from(before.unwrap_or(0));
    let growth = growth.min(i128::from(held.retained) + i128::from(held.grown));
    let named = |size: u64| {
        node >= heap.len() && (node != heap.root() || size.saturating_mul(2) >= held.retained)
    };
    let largest = held.largest.filter(|&(size, _)| named(size));
    let largest = largest
        .map(|(_, Reverse(node))| {
            Ok::<Path, Error>(path::described(describer, &path::to(heap, node)?))
        })
        .transpose()?;
    let name =
        |class: u32| heap.classes().get(class as usize).map_or("", |class| heap.name(class.name));
    let classes =
        held.classes.into_iter().map(|(class, sum)| OfClass { class: name(class).to_owned(), sum });
    let mut classes: Vec<OfClass> = classes.collect();
    order::sort_by(&mut classes, |left, right| {
        right.sum.size.cmp(&left.sum.size).then_with(|| left.class.cmp(&right.class))
    });
    classes.truncate(CLASSES);
    Ok(Owner {
        object,
        before,
        growth: growth.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64,
        new: held.new,
        survived: diff.survived.is_some().then_some(held.survived),
        retained_by_new: held.retained,
        classes,
        path: path::described(describer, &path::to(heap, node)?),
        largest,
    })
}
