//! The dominator tree as frames of a flame graph: siblings of the same class and label are one frame, so a million strings
//! of an array are one line. The width of a frame is the total memsize of all objects below it.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::io;
use std::ops::Range;

use rustc_hash::FxHashMap;

use super::naming::{Naming, shortened};
use super::{Counts, Options};
use memprof_dump::record::Kind;
use memprof_heap::graph::{Tree, in_parts, piece_of};
use memprof_heap::{FOLDED, Heap, NONE, Packed, Sizes, dominator_labels};

/// Maximum length of a frame's name in characters.
const NAME: usize = 120;

/// A heap caches at most this many frames, about 40 MB.
const CACHED: usize = 500_000;

/// Depth of the deepest frame unless the options say otherwise: linked lists are as deep as they are long.
const DEPTH: u32 = 128;
/// Used as label of a frame that has one class object.
const ONE_OBJECT: u32 = NONE;

/// Objects of one class under one frame.
#[derive(Clone, Debug)]
pub(crate) struct Frame {
    /// Position of the parent frame; the first frame is its own parent.
    pub parent: u32,
    pub depth: u32,
    /// Number of the name.
    pub name: u32,
    /// Memsize of the objects.
    pub own: u64,
    /// Memsize including all frames below.
    pub total: u64,
    /// Number of objects, without those below.
    pub objects: u64,
    first: Ranked,
    /// The kind of objects.
    what: What,
}

impl Frame {
    /// The object that retains most; [`NONE`] if the frame has no object.
    pub fn first(&self) -> u32 {
        self.first.map_or(NONE, |(_, Reverse(id))| id)
    }
}

/// An object ranked by retained size; among equal ones the first ranks highest.
type Ranked = Option<(u64, Reverse<u32>)>;

/// Properties that a frame's objects share: their class, or the one object; and their label.
type What = (u32, u32);

/// Frames, parents before children.
#[derive(Default)]
pub(crate) struct Frames {
    pub frames: Vec<Frame>,
    pub names: Vec<String>,
    by_name: FxHashMap<String, u32>,
    /// Frames by parent and kind.
    known: FxHashMap<(u32, What), u32>,
}

impl Frames {
    /// At most `limit` frames, or as many as the options say.
    pub fn new(heap: &Heap, options: &Options<'_>, limit: usize) -> io::Result<(Frames, Counts)> {
        Frames::under(heap, heap.root(), options, limit)
    }

    /// The frames of the objects that one node retains.
    pub fn under(
        heap: &Heap,
        top: u32,
        options: &Options<'_>,
        limit: usize,
    ) -> io::Result<(Frames, Counts)> {
        let find = || {
            let mut frames = fill(heap, top, options)?;
            frames.add_up();
            Ok(frames)
        };
        let is_whole = top == heap.root() && options.depth.is_none() && options.members.is_none();
        let cached = match is_whole {
            true => Some(heap.cached(|| find().map(Frames::into_cache))?),
            false => None,
        };
        let limit = options.limit.unwrap_or(limit);
        let (frames, folded) = match cached.as_deref() {
            Some(Some(frames)) => frames.pruned(options, limit),
            _ => find()?.pruned(options, limit),
        };
        let counts = Counts { objects: frames.frames.len() as u64, folded, ..Counts::default() };
        Ok((frames, counts))
    }

    /// The frames for the heap's cache, as they take longest to compute, and their bytes. The frames of an answer are
    /// taken from it.
    fn into_cache(mut self) -> (Option<Frames>, usize) {
        (self.known, self.by_name) = Default::default();
        let bytes = self.memsize();
        match self.frames.len() <= CACHED {
            true => (Some(self), bytes),
            false => (None, 0),
        }
    }

    /// Bytes in memory.
    fn memsize(&self) -> usize {
        let names: usize = self.names.iter().map(|name| size_of_val(name) + name.len()).sum();
        size_of_val(self.frames.as_slice()) + names
    }

    /// The path from the outermost frame to this one.
    pub fn path(&self, mut frame: u32) -> Vec<u32> {
        let mut path = vec![frame];
        while frame != 0 {
            frame = self.frames[frame as usize].parent;
            path.push(frame);
        }
        path.reverse();
        path
    }

    fn name(&mut self, name: &str) -> u32 {
        let name = shortened(name, NAME);
        let next = self.names.len() as u32;
        match self.by_name.get(&*name) {
            Some(&known) => known,
            None => {
                self.by_name.insert(name.clone().into_owned(), next);
                self.names.push(name.into_owned());
                next
            }
        }
    }

    fn push(&mut self, parent: u32, name: &str) -> u32 {
        let name = self.name(name);
        let depth = self.frames.get(parent as usize).map_or(0, |frame| frame.depth + 1);
        self.frames.push(Frame {
            parent,
            depth,
            name,
            own: 0,
            total: 0,
            objects: 0,
            first: None,
            what: (NONE, NONE),
        });
        self.frames.len() as u32 - 1
    }

    /// The frame of such objects below another frame, created if necessary.
    fn below(&mut self, above: u32, what: What, name: impl FnOnce() -> String) -> u32 {
        if let Some(&known) = self.known.get(&(above, what)) {
            return known;
        }
        let frame = self.push(above, &name());
        self.frames[frame as usize].what = what;
        self.known.insert((above, what), frame);
        frame
    }

    /// Counts an object.
    fn add(&mut self, frame: u32, objects: u64, own: u64, first: Ranked) {
        let frame = &mut self.frames[frame as usize];
        frame.objects += objects;
        frame.own = frame.own.saturating_add(own);
        if frame.first < first {
            frame.first = first;
        }
    }

    /// Adds frames that were counted separately, with the same outermost frame.
    fn merge(&mut self, other: &Frames) {
        let mut place = vec![0; other.frames.len()];
        for (index, frame) in other.frames.iter().enumerate() {
            if index > 0 {
                let name = || other.names[frame.name as usize].clone();
                place[index] = self.below(place[frame.parent as usize], frame.what, name);
            }
            self.add(place[index], frame.objects, frame.own, frame.first);
        }
    }

    fn add_up(&mut self) {
        for frame in &mut self.frames {
            frame.total = frame.own;
        }
        for index in (1..self.frames.len()).rev() {
            let (total, parent) = (self.frames[index].total, self.frames[index].parent as usize);
            self.frames[parent].total = self.frames[parent].total.saturating_add(total);
        }
    }

    /// The widest frames only. Dropped frames are summarized in frames `(12 more)`; also returns how many objects these
    /// have.
    fn pruned(&self, options: &Options<'_>, limit: usize) -> (Frames, u64) {
        let least = options.min_retained.max(1);
        let all = self.frames.len() as u32;
        let mut order: Vec<u32> =
            (1..all).filter(|&index| self.frames[index as usize].total >= least).collect();
        let limit = limit.max(1) - 1;
        if limit < order.len() {
            let frames = &self.frames;
            order.select_nth_unstable_by_key(limit, |&index| {
                (Reverse(frames[index as usize].total), index)
            });
            order.truncate(limit);
        }
        order.sort_unstable();
        let mut pruned = Frames::default();
        let mut position = vec![NONE; self.frames.len()];
        for index in std::iter::once(0).chain(order) {
            let frame = &self.frames[index as usize];
            let name = pruned.name(&self.names[frame.name as usize]);
            position[index as usize] = pruned.frames.len() as u32;
            pruned.frames.push(Frame {
                parent: position[frame.parent as usize],
                name,
                ..frame.clone()
            });
        }
        // Objects and bytes by parent frame.
        let mut more: Vec<(u64, u64)> = vec![(0, 0); pruned.frames.len()];
        let mut nearest = position.clone();
        for (index, frame) in
            (self.frames.iter()).enumerate().filter(|&(index, _)| position[index] == NONE)
        {
            nearest[index] = nearest[frame.parent as usize];
            let (objects, own) = &mut more[nearest[index] as usize];
            *objects += frame.objects;
            *own = own.saturating_add(frame.own);
        }
        let mut folded = 0;
        for (parent, (objects, own)) in (0..).zip(more).filter(|(_, (objects, _))| *objects > 0) {
            let frame = pruned.push(parent, &format!("({objects} more)"));
            let frame = &mut pruned.frames[frame as usize];
            (frame.own, frame.total, frame.objects) = (own, own, objects);
            folded += objects;
        }
        (pruned, folded)
    }
}

/// All frames of the objects that a node retains, or of the whole heap with unreachable objects. Several threads each take a
/// piece of the dominator tree and count in their own frames.
fn fill(heap: &Heap, top: u32, options: &Options<'_>) -> io::Result<Frames> {
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
            way.extend(dominators.ancestors(first).take_while(|&node| node != self.top));
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
