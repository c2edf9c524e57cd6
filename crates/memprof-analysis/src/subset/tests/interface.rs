//! Borders between two sets (D5).

use super::{all, each_heap, naive, some};
use crate::subset::sample_subsets::closure;

#[test]
fn the_border_is_where_references_cross() {
    each_heap(|random, heap| {
        let all = all(heap);
        let other = some(random, &all);
        let edges = naive(&all);
        let interface = all.interface_with(&other).expect("in memory");
        let crosses = |from: u32, to: u32| {
            !other.contains(from) && other.contains(to) && edges[&from].contains(&to)
        };
        for node in all.iter() {
            assert_eq!(interface.border.contains(node), all.iter().any(|to| crosses(node, to)));
            let inside = all.iter().any(|from| crosses(from, node));
            assert_eq!(interface.inside.contains(node), inside);
            // Counted in the whole, not within the other set, as in memdump's manual.
            let reached = closure(&edges, &[node]).len() as u64;
            assert_eq!(
                interface.inside.annotation("keepalive_count", node),
                inside.then_some(reached)
            );
        }
    });
}

#[test]
fn marks_stay() {
    each_heap(|random, heap| {
        let all = all(heap);
        let marked = some(random, &all);
        let marked = marked.annotate("in_after", marked.iter().map(|node| (node, 1)).collect());
        let found = all.roots_of(&marked, None).expect("in memory");
        for node in found.iter() {
            assert_eq!(found.annotation("in_after", node), marked.contains(node).then_some(1));
        }
        let counted = all.update_keepalive_count(&marked).expect("in memory");
        assert!(counted.iter().all(|node| counted.annotation("in_after", node) == Some(1)));
    });
}
