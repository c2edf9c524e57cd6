//! Properties that objects can be grouped by.

use memprof_paths::guess_gem;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use super::super::computed::{categories, last_generation};
use super::super::numbering::{Numbering, numbered};
use super::super::tally::Groups;
use super::super::{Error, Selection, application};
use super::key::Raw;
use memprof_dump::record::{Kind, NameId};
use memprof_heap::graph::filled;
use memprof_heap::{Heap, NONE};

/// Property that objects are grouped by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum By {
    /// Class or a substitute.
    #[default]
    Class,
    /// Type.
    Type,
    /// File of the line that allocated them.
    File,
    /// The line that allocated them, with its file.
    #[serde(alias = "site")]
    Line,
    /// Gem whose code allocated them.
    Gem,
    /// The application line that allocated them, directly or through a library.
    Application,
    /// Method that allocated them.
    Method,
    /// Number of GC runs before they were allocated.
    Generation,
    /// Number of GC runs since then.
    Age,
    /// Memsize, by powers of two.
    Size,
    /// Elements or bytes, by powers of two.
    Length,
    /// Number of the shape.
    Shape,
    /// Size of the slot.
    Slot,
    /// Kind of the VM's own objects.
    Imemo,
    /// Constant, as a tree: an instance of `Shop::Order` also counts for `Shop`.
    Namespace,
    /// Class, as a tree: an object counts for its class and all superclasses.
    Superclass,
    /// Root category in which the shortest path begins.
    Root,
}

impl By {
    /// True if groups contain other groups.
    pub fn is_tree(self) -> bool {
        matches!(self, By::Namespace | By::Superclass)
    }

    /// Field of the query language with the same values.
    pub(super) fn field(self) -> Option<&'static str> {
        Some(match self {
            By::Class => "class",
            By::Type => "type",
            By::File => "file",
            By::Line => "site",
            By::Gem => "gem",
            By::Application => "application",
            By::Method => "method",
            By::Generation => "generation",
            By::Age => "age",
            By::Size => "size",
            By::Length => "length",
            By::Shape => "shape",
            By::Slot => "slot",
            By::Imemo => "imemo",
            By::Namespace | By::Superclass | By::Root => return None,
        })
    }
}

/// Groups with their keys.
pub(super) struct Keys<'h> {
    pub heap: &'h Heap,
    pub by: By,
    pub groups: Groups,
    pub raw: Numbering<Raw>,
    /// Cached, as gems have many files.
    gems: FxHashMap<&'h str, NameId>,
}

impl<'h> Keys<'h> {
    /// Groups the chosen objects.
    pub fn new(heap: &'h Heap, by: By, selection: &Selection<'_>) -> Result<Keys<'h>, Error> {
        let mut keys = Keys {
            heap,
            by,
            groups: Groups::default(),
            raw: Numbering::default(),
            gems: FxHashMap::default(),
        };
        keys.groups.of = keys.of_all(selection)?;
        keys.groups.count = keys.raw.keys.len();
        Ok(keys)
    }

    fn of_all(&mut self, selection: &Selection<'_>) -> Result<Vec<u32>, Error> {
        let heap = self.heap;
        let all = heap.len() as usize;
        let pick = |id: u32, group: u32| if selection.contains(id) { group } else { NONE };
        match self.by {
            By::Class | By::Type | By::Imemo | By::Namespace | By::Superclass => {
                let table: Vec<u32> =
                    (0..heap.groups().len()).map(|group| self.of_group(group)).collect();
                let groups = heap.group_numbers()?;
                let of = |id: u32| table.get(*groups.get(id as usize)? as usize).copied();
                Ok(filled(all, |id| pick(id, of(id).unwrap_or(NONE))))
            }
            By::File | By::Line | By::Gem | By::Application | By::Method => {
                let table: Vec<u32> =
                    (0..heap.sites().len()).map(|site| self.of_site(site)).collect();
                let unknown = self.number(Raw::Unknown);
                let sites = heap.site_numbers()?;
                let of =
                    |id: u32| sites.get(id as usize).and_then(|&site| table.get(site as usize));
                Ok(filled(all, |id| pick(id, of(id).copied().unwrap_or(unknown))))
            }
            By::Root => {
                let categories = categories(heap, heap.steps()?);
                Ok(self.each(selection, |id| match categories.get(id as usize) {
                    Some(&category) if category != NONE => Raw::Category(category),
                    _ => Raw::Unknown,
                }))
            }
            By::Size => {
                let memsizes = heap.memsizes()?;
                Ok(self.each(selection, |id| bits(memsizes.get(id))))
            }
            By::Length => {
                let lengths = heap.lengths()?;
                Ok(self.each(selection, |id| known(lengths, id, bits)))
            }
            By::Shape => {
                let shapes = heap.shape_ids()?;
                Ok(self.each(selection, |id| known(shapes, id, Raw::Number)))
            }
            By::Generation => {
                let generations = heap.generations()?;
                Ok(self.each(selection, |id| known(generations, id, Raw::Number)))
            }
            By::Age => {
                let generations = heap.generations()?;
                let now = u64::from(last_generation(heap)?);
                let age = |generation| Raw::Number(now.saturating_sub(generation));
                Ok(self.each(selection, |id| known(generations, id, age)))
            }
            By::Slot => {
                let slots = heap.slots();
                let slot = |id: u32| slots.get(id as usize).map_or(0, |&slot| u64::from(slot));
                Ok(self.each(selection, |id| match slot(id) {
                    0 => Raw::Unknown,
                    slot => Raw::Number(slot),
                }))
            }
        }
    }

    fn each(&mut self, selection: &Selection<'_>, raw: impl Fn(u32) -> Raw + Sync) -> Vec<u32> {
        let key = |id: u32| selection.contains(id).then(|| raw(id));
        let (of, numbering) = numbered(self.heap.len() as usize, key, Raw::small);
        self.raw = numbering;
        of
    }

    fn number(&mut self, raw: Raw) -> u32 {
        let number = self.raw.number(raw);
        if self.by.is_tree() && number as usize == self.groups.parents.len() {
            self.groups.parents.push(NONE);
        }
        number
    }

    fn of_group(&mut self, group: usize) -> u32 {
        let heap = self.heap;
        let group = heap.groups()[group];
        let class = heap.classes().get(group.shown as usize).copied();
        match (self.by, class) {
            (By::Type, _) => self.number(Raw::Type(group.kind)),
            (By::Imemo, _) => {
                let name = group.name.filter(|_| group.kind == Kind::IMEMO);
                self.number(name.map_or(Raw::Unknown, Raw::Name))
            }
            (_, None) => self.number(Raw::Unknown),
            (By::Superclass, Some(class)) if class.object != NONE => self.subclass(class.object),
            (By::Namespace, Some(class)) => self.constant(class.name),
            (_, Some(class)) => self.number(Raw::Name(class.name)),
        }
    }

    /// A class, below its superclasses.
    fn subclass(&mut self, object: u32) -> u32 {
        let first = self.number(Raw::ClassObject(object));
        let (mut at, mut object) = (first, object);
        while self.groups.parents[at as usize] == NONE {
            let above = self.heap.class_object(object).map_or(NONE, |class| class.superclass);
            let real = self.heap.class_object(above).map_or(NONE, |class| class.real);
            if self.heap.class_object(real).is_none() {
                break;
            }
            let next = self.number(Raw::ClassObject(real));
            if !self.attach(at, next) {
                break;
            }
            (at, object) = (next, real);
        }
        first
    }

    /// Makes a group part of another; false if that would create a cycle.
    fn attach(&mut self, group: u32, above: u32) -> bool {
        if self.groups.chain(above).any(|known| known == group) {
            return false;
        }
        self.groups.parents[group as usize] = above;
        true
    }

    /// A constant, below its outer constants.
    fn constant(&mut self, name: NameId) -> u32 {
        let text = self.heap.name(name);
        let first = self.prefix(name, text.len());
        let (mut at, mut end) = (first, text.len());
        while let Some(shorter) = text[..end].rfind("::").filter(|&shorter| shorter > 0) {
            if self.groups.parents[at as usize] != NONE {
                break;
            }
            let above = self.prefix(name, shorter);
            if !self.attach(at, above) {
                break;
            }
            (at, end) = (above, shorter);
        }
        first
    }

    fn prefix(&mut self, name: NameId, length: usize) -> u32 {
        // A prefix that is a name itself shares its number.
        let text = &self.heap.name(name)[..length];
        let raw = match self.heap.names().find(text) {
            Some(name) => Raw::Name(name),
            None => match self.gems.get(text) {
                Some(&known) => Raw::Prefix(known, length as u32),
                None => {
                    self.gems.insert(text, name);
                    Raw::Prefix(name, length as u32)
                }
            },
        };
        self.number(raw)
    }

    fn of_site(&mut self, site: usize) -> u32 {
        let site = self.heap.sites()[site];
        let raw = match self.by {
            By::Line => Raw::Site(site.file, site.line),
            By::Application => match application(self.heap, &site) {
                Some(own) => Raw::Site(own.file, own.line),
                None => Raw::Unknown,
            },
            By::Method => site.method.map_or(Raw::Unknown, Raw::Name),
            By::Gem => {
                let gem = guess_gem(self.heap.name(site.file));
                Raw::Gem(*self.gems.entry(gem).or_insert(site.file))
            }
            _ => Raw::Name(site.file),
        };
        self.number(raw)
    }
}

fn bits(number: u64) -> Raw {
    Raw::Bits(u64::BITS - number.leading_zeros())
}

#[inline]
fn known(column: &[u32], id: u32, raw: impl Fn(u64) -> Raw) -> Raw {
    match column.get(id as usize) {
        Some(&value) if value != NONE => raw(u64::from(value)),
        _ => Raw::Unknown,
    }
}
