//! A heap as data: objects as columns, references as a graph ([`graph`]).
//!
//! Objects are numbered in order of address; the root categories of the dump are further nodes, and one super root references
//! them. [`Heap::open`] reads a dump, or its index if it has one (`index`).

mod builder;
mod cache;
mod capturing_thread;
mod columns;
mod derived;
pub mod dominator_labels;
mod finalizers;
mod fold;
pub mod graph;
mod groups;
mod index;
mod label;
mod link;
mod memsize;
mod names;
mod object_facts;
mod object_view;
mod once;
mod open;
mod own;
mod pages;
mod site;
mod sizes;
#[cfg(any(test, feature = "testing"))]
#[doc(hidden)]
pub mod testing;
#[cfg(test)]
mod tests;
mod texts;
mod thread_locals;

use std::io;
use std::path::PathBuf;

use serde::{Deserialize, Serialize, Serializer};

pub use builder::Builder;
pub use columns::{Column, SizeColumn};
pub use groups::{Class, ClassObject, Group};
pub use index::{Unfinished, path_of as index_path};
pub use label::{Label, Packed};
pub use names::Names;
pub use object_facts::Facts;
pub use object_view::Object;
pub use open::{Options, Progress};
pub use own::Own;
pub use pages::Addresses;
pub use sizes::Sizes;
pub use texts::{Known, Stored, TextReader, Texts};

use crate::graph::{Extra, Graph};
use cache::Cache;
use capturing_thread::CapturingThread;
use columns::Columns;
use derived::Derived;
use memprof_dump::record::{Flags, Kind, NameId, NoteKind, STATE, Shape, Value};
pub use site::Site;

/// Not an object.
pub const NONE: u32 = u32::MAX;

/// The origin and completeness of a heap.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    /// File of the dump; `None` for a live process and for standard input.
    #[serde(serialize_with = "as_text")]
    pub path: Option<PathBuf>,
    /// Format of the dump, as `objspace`; `live` for a live process.
    pub format: String,
    /// Whether the dump is truncated.
    pub truncated: bool,
    /// Number of broken lines (blocks, in the binary format) that were skipped.
    pub skipped: u64,
    /// Number of the first skipped one, from 1.
    pub first_skipped: Option<u64>,
    /// Number of references to addresses without an object in the dump.
    pub missing: u64,
    /// memprof's own objects, which are excluded from all totals.
    #[serde(default)]
    pub own: Own,
}

/// A kind of root, such as `vm` or `machine_context`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Category {
    /// Name, as given by the VM.
    pub name: String,
}

/// A path may contain any bytes, but JSON only text.
fn as_text<S: Serializer>(path: &Option<PathBuf>, serializer: S) -> Result<S::Ok, S::Error> {
    let text = path.as_ref().map(|path| path.to_string_lossy());
    text.serialize(serializer)
}

/// All objects of a dump, and their references.
pub struct Heap {
    /// The origin.
    pub source: Source,
    objects: u32,
    addresses: Addresses,
    slot_sizes: Vec<u16>,
    categories: Vec<Category>,
    names: Names,
    groups: Vec<Group>,
    classes: Vec<Class>,
    class_objects: Vec<ClassObject>,
    sites: Vec<Site>,
    shapes: Vec<Shape>,
    times: Vec<(u32, u64)>,
    notes: Vec<(NoteKind, String)>,
    facts: Facts,
    object_ids: Vec<(u32, u64)>,
    texts: Texts,
    columns: Columns,
    derived: Derived,
    cache: Cache,
    /// Ignored roots: their references do not count.
    silent: Vec<u32>,
    /// The thread that captured the heap, if it was captured in the process itself.
    capturing_thread: Option<CapturingThread>,
}

impl Heap {
    /// Number of objects.
    #[inline]
    pub fn len(&self) -> u32 {
        self.objects
    }

    /// Whether it has no objects.
    pub fn is_empty(&self) -> bool {
        self.objects == 0
    }

    /// The node of a root category, by its position among [`Heap::categories`].
    pub fn category_node(&self, category: usize) -> u32 {
        self.objects + category as u32
    }

    /// The super root.
    #[inline]
    pub fn root(&self) -> u32 {
        self.objects + self.categories.len() as u32
    }

    /// Root categories. A dump without any (`since:`) has no dominators.
    pub fn categories(&self) -> &[Category] {
        &self.categories
    }

    /// The root category of a node.
    pub fn category(&self, node: u32) -> Option<&Category> {
        let index = node.checked_sub(self.objects)?;
        self.categories.get(index as usize)
    }

    /// Addresses of objects.
    #[inline]
    pub fn addresses(&self) -> &Addresses {
        &self.addresses
    }

    /// The object at an address.
    pub fn at(&self, address: u64) -> Option<u32> {
        self.addresses.find(address)
    }

    /// Size of an object's slot in bytes; 0 if unknown.
    pub fn slot_size(&self, id: u32) -> u16 {
        let page = self.addresses.page(id);
        self.slot_sizes.get(page).copied().unwrap_or(0)
    }

    /// Sizes of the slots of each page, in order of address, with the first object of the page.
    pub fn pages(&self) -> impl Iterator<Item = (u16, std::ops::Range<u32>)> {
        let starts = self.addresses.starts.windows(2).map(|pair| pair[0]..pair[1]);
        self.slot_sizes.iter().copied().zip(starts)
    }

    /// Size of each object's slot.
    pub fn slots(&self) -> Vec<u16> {
        let mut slots = Vec::with_capacity(self.objects as usize);
        for (size, objects) in self.pages() {
            slots.resize(objects.end as usize, size);
        }
        slots
    }

    /// Interned texts.
    pub fn names(&self) -> &Names {
        &self.names
    }

    /// An interned text.
    #[inline]
    pub fn name(&self, id: NameId) -> &str {
        self.names.name(id)
    }

    /// Groups of objects of one type, class and internal name.
    #[inline]
    pub fn groups(&self) -> &[Group] {
        &self.groups
    }

    /// Classes as Ruby's `class` returns them.
    #[inline]
    pub fn classes(&self) -> &[Class] {
        &self.classes
    }

    /// Classes and modules of the dump, in order of their numbers.
    pub fn class_objects(&self) -> &[ClassObject] {
        &self.class_objects
    }

    /// The class or module with this number.
    pub fn class_object(&self, id: u32) -> Option<&ClassObject> {
        let found = self.class_objects.binary_search_by_key(&id, |class| class.object);
        found.ok().map(|index| &self.class_objects[index])
    }

    /// The application line that called a library, if the site is in one and the line is known.
    pub fn caller(&self, site: &Site) -> Option<&Site> {
        self.sites.get(site.caller? as usize)
    }

    /// Places where objects were allocated.
    pub fn sites(&self) -> &[Site] {
        &self.sites
    }

    /// Shapes.
    pub fn shapes(&self) -> &[Shape] {
        &self.shapes
    }

    /// Start time of a generation, in microseconds since the epoch.
    pub fn time(&self, generation: u32) -> Option<u64> {
        let found = self.times.binary_search_by_key(&generation, |&(known, _)| known);
        found.ok().map(|index| self.times[index].1)
    }

    /// Lines about the process, as JSON.
    pub fn notes(&self) -> &[(NoteKind, String)] {
        &self.notes
    }

    /// Facts without a column of their own.
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// The `object_id` of an object, if the program called that method (Ruby 4.0 and later).
    pub fn object_id(&self, id: u32) -> Option<u64> {
        let found = self.object_ids.binary_search_by_key(&id, |&(object, _)| object);
        found.ok().map(|index| self.object_ids[index].1)
    }

    /// Contents of strings, symbols and regexps, by place ([`Heap::text_places`]).
    pub fn texts(&self) -> &Texts {
        &self.texts
    }

    /// Group of each object.
    ///
    /// # Errors
    /// If the index cannot be read, as with every column.
    pub fn group_numbers(&self) -> io::Result<&[u32]> {
        self.columns.group.get()
    }

    /// Flags of each object: [`Flags`] in the lower three bytes, the age (0xff: unknown) in the upper one.
    ///
    /// # Errors
    /// See [`Heap::group_numbers`].
    pub fn flag_words(&self) -> io::Result<&[u32]> {
        self.columns.flags.get()
    }

    /// Memsize of each object.
    ///
    /// # Errors
    /// See [`Heap::group_numbers`].
    pub fn memsizes(&self) -> io::Result<&Sizes> {
        self.columns.memsize.get()
    }

    /// Sum of the memsizes of all objects, without free malloc blocks.
    ///
    /// # Errors
    /// See [`Heap::group_numbers`].
    pub fn size(&self) -> io::Result<u64> {
        let sizes = self.memsizes()?;
        let free = self.free_blocks().fold(0_u64, |sum, (id, _)| sum.saturating_add(sizes.get(id)));
        Ok(sizes.sum().saturating_sub(free))
    }

    /// Malloc blocks that are not used, and their states: `free`, or `cached` by a thread.
    pub fn free_blocks(&self) -> impl Iterator<Item = (u32, &str)> {
        let name = self.names.find(STATE);
        let states = name.into_iter().flat_map(move |name| self.facts.named(name));
        states.filter_map(move |(id, state)| match state {
            Value::Name(state) if self.kind(id).ok()? == Some(Kind::BLOCK) => {
                Some((id, self.name(state)))
            }
            _ => None,
        })
    }

    /// Length of each object, [`NONE`] for objects without one; empty if no object has one.
    ///
    /// # Errors
    /// See [`Heap::group_numbers`].
    pub fn lengths(&self) -> io::Result<&[u32]> {
        self.columns.length.get()
    }

    /// Shape of each object, as [`Heap::lengths`].
    ///
    /// # Errors
    /// See [`Heap::group_numbers`].
    pub fn shape_ids(&self) -> io::Result<&[u32]> {
        self.columns.shape.get()
    }

    /// Position in [`Heap::sites`] of each object's site, as [`Heap::lengths`].
    ///
    /// # Errors
    /// See [`Heap::group_numbers`].
    pub fn site_numbers(&self) -> io::Result<&[u32]> {
        self.columns.site.get()
    }

    /// Generation of each object, as [`Heap::lengths`].
    ///
    /// # Errors
    /// See [`Heap::group_numbers`].
    pub fn generations(&self) -> io::Result<&[u32]> {
        self.columns.generation.get()
    }

    /// Place of each object's text, as [`Heap::lengths`].
    ///
    /// # Errors
    /// See [`Heap::group_numbers`].
    pub fn text_places(&self) -> io::Result<&[u32]> {
        self.columns.text.get()
    }

    /// Labels of all references, in the order of the graph's targets; empty if the dump has none.
    ///
    /// # Errors
    /// See [`Heap::group_numbers`].
    pub fn labels(&self) -> io::Result<&[u32]> {
        self.columns.labels.get()
    }

    /// References to addresses without an object in the dump: the source node, in order, and the address.
    ///
    /// # Errors
    /// See [`Heap::group_numbers`].
    pub fn dangling(&self) -> io::Result<impl Iterator<Item = (u32, u64)> + '_> {
        let dangling = &self.columns.dangling;
        let (from, to) = (dangling.from.get()?, dangling.to.get()?);
        Ok(from.iter().copied().zip(to.iter().copied()))
    }

    /// The class object of each group, for [`Heap::graph`].
    pub fn group_classes(&self) -> Vec<u32> {
        self.groups.iter().map(|group| group.class).collect()
    }

    /// The graph of all nodes, without the references of ignored roots; `classes` are the [`Heap::group_classes`].
    ///
    /// # Errors
    /// See [`Heap::group_numbers`].
    pub fn graph<'h>(&'h self, classes: &'h [u32]) -> io::Result<Graph<'h>> {
        Ok(Graph {
            offsets: self.columns.offsets.get()?,
            targets: self.columns.targets.get()?,
            extra: Extra { group: self.columns.group.get()?, class: classes },
            silent: &self.silent,
        })
    }
}

/// A flag set by the builder: excludes a node from all totals, as its references and size were attributed to its owner, or it is
/// memprof's own.
pub const FOLDED: Flags = Flags(1 << 23);

/// A flag set by the builder, with [`FOLDED`]: a malloc block that is free or cached by a thread, and so in no set of objects
/// unless a query asks for its state.
pub const FREE: Flags = Flags(1 << 22);

fn note_kind(number: u8) -> Option<NoteKind> {
    Some(match number {
        0 => NoteKind::Header,
        1 => NoteKind::Finalizers,
        2 => NoteKind::Globals,
        3 => NoteKind::Frame,
        4 => NoteKind::Lsof,
        5 => NoteKind::Ps,
        6 => NoteKind::Footer,
        _ => return None,
    })
}
