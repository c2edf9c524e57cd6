use std::hint::black_box;

use super::super::{Graph, NONE, Stop, Stopped};

/// The nodes that a root reaches, numbered in depth-first order, and the non-tree edges.
pub struct Numbering {
    /// The number and edges of each node, by node.
    pub seen: Vec<Seen>,
    /// The node of each number.
    pub order: Vec<u32>,
    /// The number of the parent in the depth-first tree, by number; 0 for the root.
    pub parent: Vec<u32>,
    /// Non-tree edges.
    pub others: Vec<Other>,
    /// Extra edges.
    pub instances: Instances,
}

#[derive(Clone, Copy)]
pub struct Seen {
    /// The node's number, [`NONE`] if it is not reached.
    pub number: u32,
    /// The last of the `others` that leads here.
    pub others: u32,
}

/// An edge in the list of edges with the same target. Lists avoid the second pass over the graph that sorting would need.
#[derive(Clone, Copy)]
pub struct Other {
    /// The number of the source node.
    pub source: u32,
    /// The edge to the same target that was found before.
    pub next: u32,
}

/// Extra edges in lists by group. A source has only one, so the source identifies its edge.
pub struct Instances {
    /// The last member of each group.
    last: Vec<u32>,
    /// The previously found member of the same group, by number.
    pub next: Vec<u32>,
}

/// Prefetched targets per node: more would be evicted from the cache before they are used.
const FETCHED: usize = 8;

/// A node, and the rest of its row.
struct Frame {
    number: u32,
    start: u32,
    end: u32,
}

impl Frame {
    fn is_done(&self) -> bool {
        self.start >= self.end
    }
}

impl Numbering {
    /// Walks the graph depth first, unless it is stopped.
    pub fn walk(graph: &Graph<'_>, root: u32, stop: Stop<'_>) -> Result<Numbering, Stopped> {
        let unseen = Seen { number: NONE, others: NONE };
        let mut numbering = Numbering {
            seen: vec![unseen; graph.len()],
            order: Vec::new(),
            parent: Vec::new(),
            others: Vec::new(),
            instances: Instances { last: vec![NONE; graph.extra.class.len()], next: Vec::new() },
        };
        if (root as usize) < graph.len() {
            numbering.walk_from(graph, root, stop)?;
        }
        Ok(numbering)
    }

    fn walk_from(&mut self, graph: &Graph<'_>, root: u32, stop: Stop<'_>) -> Result<(), Stopped> {
        let nothing = Frame { number: 0, start: 0, end: 0 };
        let mut stack = Vec::new();
        let mut frame = self.descend(graph, root, nothing, &mut stack);
        loop {
            while !frame.is_done() {
                // Each edge is visited once, in any order.
                stop.at(frame.start)?;
                let target = graph.targets[frame.start as usize];
                frame.start += 1;
                let Some(seen) = self.seen.get_mut(target as usize) else {
                    continue;
                };
                if seen.number == NONE {
                    frame = self.descend(graph, target, frame, &mut stack);
                } else if seen.number != 0 && seen.number != frame.number {
                    // The root has no dominator, and no node is its own.
                    let next = seen.others;
                    seen.others = self.others.len() as u32;
                    self.others.push(Other { source: frame.number, next });
                }
            }
            match stack.pop() {
                Some(outer) => frame = outer,
                None => return Ok(()),
            }
        }
    }

    /// Enters a node, its class if that is new, and so on; returns the next frame to visit. Pushes only nodes with more to visit,
    /// so neither leaves nor list members go onto the stack.
    #[inline]
    fn descend(
        &mut self,
        graph: &Graph<'_>,
        node: u32,
        mut frame: Frame,
        stack: &mut Vec<Frame>,
    ) -> Frame {
        let mut next = Some(node);
        while let Some(node) = next {
            let inner;
            (inner, next) = self.enter(graph, node, frame.number);
            if inner.is_done() && next.is_none() {
                break;
            }
            if !frame.is_done() {
                stack.push(frame);
            }
            frame = inner;
        }
        frame
    }

    /// Numbers a node; returns its row, and its class if that has no number yet.
    #[inline]
    fn enter(&mut self, graph: &Graph<'_>, node: u32, parent: u32) -> (Frame, Option<u32>) {
        let number = self.order.len() as u32;
        self.seen[node as usize].number = number;
        self.order.push(node);
        self.parent.push(parent);
        let (start, end) = graph.span(node);
        let frame = Frame { number, start, end };
        self.fetch(graph, &graph.targets[start as usize..end as usize]);
        if graph.extra.group.is_empty() {
            return (frame, None);
        }
        let Some((group, class)) = graph.extra_of(node) else {
            self.instances.next.push(NONE);
            return (frame, None);
        };
        let last = &mut self.instances.last[group as usize];
        self.instances.next.push(*last);
        *last = number;
        let seen = self.seen.get(class as usize);
        let new = seen.is_some_and(|seen| seen.number == NONE);
        (frame, new.then_some(class))
    }
}

impl Numbering {
    /// Prefetches data for the first targets of a row: the cache misses of these scattered reads overlap.
    #[inline]
    fn fetch(&self, graph: &Graph<'_>, row: &[u32]) {
        for target in row.iter().take(FETCHED) {
            let target = *target as usize;
            black_box(self.seen.get(target).map(|seen| seen.number));
            black_box(graph.offsets.get(target).copied());
        }
    }
}

impl Instances {
    /// The number of each class, in ascending order, with the last of its instances; once for each group.
    pub fn by_class(&self, graph: &Graph<'_>, seen: &[Seen]) -> Vec<(u32, u32)> {
        let lists = self.last.iter().zip(graph.extra.class);
        let lists = lists.filter(|(last, _)| **last != NONE);
        let mut lists: Vec<(u32, u32)> = lists
            .filter_map(|(last, class)| Some((seen.get(*class as usize)?.number, *last)))
            .collect();
        lists.sort_unstable();
        lists
    }
}
