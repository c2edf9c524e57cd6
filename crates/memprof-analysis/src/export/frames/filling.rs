//! Assigns the nodes of the dominator tree to frames in several threads: each thread takes a piece of the tree and counts
//! in its own frames.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::io;
use std::ops::Range;

use super::super::Options;
use super::super::naming::{Naming, shortened};
use super::{Frames, NAME};
use memprof_dump::record::Kind;
use memprof_heap::graph::{Tree, in_parts, piece_of};
use memprof_heap::{FOLDED, Heap, NONE, Packed, Sizes, dominator_labels};

/// Depth of the deepest frame unless the options say otherwise: linked lists are as deep as they are long.
const DEPTH: u32 = 128;
/// Used as label of a frame that has one class object.
const ONE_OBJECT: u32 = NONE;

/// All frames of the objects that a node retains, or of the whole heap with unreachable objects.
pub(super) fn fill(heap: &Heap, top: u32, options: &Options<'_>) -> io::Result<Frames> {
    let tree = heap.tree()?;
    let filling = Filling {
        heap,
        top,
        tree,
        labels: heap.dominator_labels()?,
        memsizes: heap.memsizes()?,
        retained: heap.retained()?,
        flags: heap.flag_words()?,
        deepest: options.depth.unwrap_or(DEPTH).saturating_add(1),
        options,
    };
    let naming = Naming::new(heap)?;
    let mut frames = filling.outermost(&naming)?;
    let Some(start) = tree.place(top) else {
        // The node may be unreachable, and so missing from the tree.
        filling.count(&mut frames, 0, top);
        return Ok(frames);
    };
    let places = start as usize..tree.subtree_end(top) as usize;
    let piece = piece_of(places.len());
    let empty = || Naming::new(heap).map(|naming| (naming, Vec::new()));
    let found = in_parts(places.len(), piece, empty, |state, part| {
        let Ok((naming, pieces)) = state else {
            return;
        };
        let part = places.start + part.start..places.start + part.end;
        match filling.piece(naming, part.clone()) {
            Ok(frames) => pieces.push((part.start, frames)),
            Err(error) => *state = Err(error),
        }
    });
    let mut pieces = Vec::new();
    for state in found {
        pieces.extend(state?.1);
    }
    pieces.sort_unstable_by_key(|(start, _)| *start);
    pieces.iter().for_each(|(_, piece)| frames.merge(piece));
    if top == heap.root() {
        filling.unreachable(&naming, &mut frames);
    }
    Ok(frames)
}

/// The data required to find a node's frame.
struct Filling<'f> {
    heap: &'f Heap,
    top: u32,
    tree: &'f Tree,
    /// See [`Heap::dominator_labels`].
    labels: &'f [u32],
    memsizes: &'f Sizes,
    retained: &'f Sizes,
    flags: &'f [u32],
    deepest: u32,
    options: &'f Options<'f>,
}

impl Filling<'_> {
    /// The frame that contains all others.
    fn outermost(&self, naming: &Naming<'_>) -> io::Result<Frames> {
        let mut frames = Frames::default();
        if self.top < self.heap.len() {
            frames.push(0, &naming.title(self.top)?);
        } else {
            let category = self.heap.category(self.top);
            frames.push(0, category.map_or("root", |category| &category.name));
        }
        Ok(frames)
    }

    /// The frames of adjacent nodes of the tree, and of the nodes above them.
    fn piece(&self, naming: &Naming<'_>, places: Range<usize>) -> io::Result<Frames> {
        let mut frames = self.outermost(naming)?;
        // Frames of the nodes above, with the place where their subtree ends.
        let mut above: Vec<(u32, u32)> = Vec::new();
        let first = self.tree.nodes()[places.start];
        let mut way: Vec<u32> = Vec::new();
        if first != self.top {
            let dominators = self.heap.dominators()?;
            way.extend(
                dominators
                    .ancestors(first)
                    .take_while(|&node| node != self.top),
            );
            way.push(self.top);
        }
        for &node in way.iter().rev() {
            let frame = self.frame(naming, &mut frames, &above, node);
            above.push((self.tree.subtree_end(node), frame));
        }
        for place in places {
            let (node, end) = (self.tree.nodes()[place], self.tree.ends()[place]);
            while above.last().is_some_and(|(end, _)| place as u32 >= *end) {
                above.pop();
            }
            let frame = self.frame(naming, &mut frames, &above, node);
            self.count(&mut frames, frame, node);
            if end > place as u32 + 1 {
                above.push((end, frame));
            }
        }
        Ok(frames)
    }

    fn frame(
        &self,
        naming: &Naming<'_>,
        frames: &mut Frames,
        above: &[(u32, u32)],
        node: u32,
    ) -> u32 {
        match above.last() {
            None => 0,
            Some(&(_, above)) if node >= self.heap.len() => {
                frames.below(above, (node, ONE_OBJECT), || naming.class(node).to_owned())
            }
            Some(&(_, above)) if frames.frames[above as usize].depth >= self.deepest => above,
            Some(&(_, above)) => below(naming, frames, above, node, self.labels[node as usize]),
        }
    }

    fn count(&self, frames: &mut Frames, frame: u32, node: u32) {
        let word = self.flags.get(node as usize);
        let is_there = word.is_some_and(|word| word & FOLDED.0 == 0);
        let members = self.options.members;
        if is_there && members.is_none_or(|members| members.contains(node)) {
            let rank = (self.retained.get(node), Reverse(node));
            frames.add(frame, 1, self.memsizes.get(node), Some(rank));
        }
    }

    /// Garbage that was not yet swept.
    fn unreachable(&self, naming: &Naming<'_>, frames: &mut Frames) {
        let mut above = NONE;
        let garbage = (0..self.heap.len()).filter(|&id| self.tree.place(id).is_none());
        for id in garbage.filter(|&id| self.flags[id as usize] & FOLDED.0 == 0) {
            if above == NONE {
                above = frames.push(0, "(unreachable)");
            }
            let frame = below(naming, frames, above, id, Packed::NONE.0);
            self.count(frames, frame, id);
        }
    }
}

/// The frame of an object with this label below another frame.
fn below(naming: &Naming<'_>, frames: &mut Frames, above: u32, node: u32, label: u32) -> u32 {
    let one = matches!(naming.kind(node), Kind::CLASS | Kind::MODULE);
    let what = match one {
        true => (node, ONE_OBJECT),
        false => (naming.class_number(node), label),
    };
    frames.below(above, what, || {
        let class = if one {
            Cow::Owned(naming.class_title(node))
        } else {
            shortened(naming.class(node), NAME)
        };
        match label {
            0 => class.into_owned(),
            dominator_labels::ELEMENT => format!("{class}@[]"),
            dominator_labels::KEY => format!("{class}@key"),
            _ => {
                let label = naming.text_of(Packed(label).label());
                format!("{class}@{}", label.strip_prefix('@').unwrap_or(&label))
            }
        }
    })
}
