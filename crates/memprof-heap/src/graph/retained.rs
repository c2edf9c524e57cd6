use super::{BitSet, Dominators};

/// The retained size of each node: its own size and that of all nodes that only it retains. A node that the root does not reach
/// retains itself. Sums saturate at [`u64::MAX`].
pub fn retained(dominators: &Dominators, size: impl Fn(u32) -> u64) -> Vec<u64> {
    let mut retained: Vec<u64> = (0..dominators.parent.len() as u32).map(size).collect();
    for &node in dominators.order.iter().rev() {
        let own = retained[node as usize];
        if let Some(parent) = dominators.parent_of(node) {
            let sum = &mut retained[parent as usize];
            *sum = sum.saturating_add(own);
        }
    }
    retained
}

/// The members of a set that the root reaches and no other member dominates, in ascending order.
pub fn top_members(dominators: &Dominators, set: &BitSet) -> Vec<u32> {
    let mut covered = BitSet::new(dominators.parent.len());
    let mut top = Vec::new();
    for &node in &dominators.order {
        let parent = dominators.parent_of(node);
        let under = parent.is_some_and(|parent| covered.contains(parent));
        let member = set.contains(node);
        if member && !under {
            top.push(node);
        }
        if member || under {
            covered.insert(node);
        }
    }
    top.sort_unstable();
    top
}

/// The sum of the retained sizes of a set's top members.
///
/// Counts only what *each member by itself* retains. Nodes retained by several members together, so that no member dominates
/// them, are missing. [`retained_of_set`](super::retained_of_set) counts those, too, so it is never smaller, but walks the whole
/// graph for each set.
pub fn retained_of_top_members(dominators: &Dominators, retained: &[u64], set: &BitSet) -> u64 {
    let top = top_members(dominators, set);
    let sizes = top.iter().filter_map(|node| retained.get(*node as usize));
    sizes.fold(0, |sum: u64, size| sum.saturating_add(*size))
}
