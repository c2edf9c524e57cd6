//! Properties that objects can be grouped by.

use memprof_paths::guess_gem;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use super::super::computed::{categories, last_generation};
use super::super::leaked::slots;
use super::super::numbering::{Numbering, numbered};
use super::super::tally::Groups;
use super::super::{Error, Selection, application};
use super::key::Raw;
use memprof_dump::record::{Kind, NameId};
use memprof_heap::graph::filled;
use memprof_heap::{Class, Group, Heap, NONE, Site};

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

/// A property by which objects can be grouped.
pub(super) struct Property {
    by: By,
    /// Field of the query language with the same values.
    pub field: Option<&'static str>,
    /// The objects that have it (default: all).
    pub only: Option<&'static str>,
    /// True if groups contain other groups.
    pub is_tree: bool,
    /// The group of each chosen object.
    groups: for<'h> fn(&mut Keys<'h>, &Selection<'_>) -> Result<Vec<u32>, Error>,
}

/// A property that a field of the query language has, too.
const fn field(
    by: By,
    field: &'static str,
    groups: for<'h> fn(&mut Keys<'h>, &Selection<'_>) -> Result<Vec<u32>, Error>,
) -> Property {
    Property { by, field: Some(field), only: None, is_tree: false, groups }
}

/// All properties. The histogram by each is a list of its own.
static PROPERTIES: [Property; 17] = [
    field(By::Class, "class", |keys, chosen| keys.by_group(chosen, Keys::class)),
    field(By::Type, "type", |keys, chosen| {
        keys.by_group(chosen, |keys, group| keys.number(Raw::Type(group.kind)))
    }),
    field(By::File, "file", |keys, chosen| keys.by_site(chosen, |_, site| Raw::Name(site.file))),
    field(By::Line, "site", |keys, chosen| {
        keys.by_site(chosen, |_, site| Raw::Site(site.file, site.line))
    }),
    field(By::Gem, "gem", |keys, chosen| keys.by_site(chosen, Keys::gem)),
    field(By::Application, "application", |keys, chosen| {
        keys.by_site(chosen, |keys, site| {
            let own = application(keys.heap, site);
            own.map_or(Raw::Unknown, |own| Raw::Site(own.file, own.line))
        })
    }),
    field(By::Method, "method", |keys, chosen| {
        keys.by_site(chosen, |_, site| site.method.map_or(Raw::Unknown, Raw::Name))
    }),
    field(By::Generation, "generation", |keys, chosen| {
        let generations = keys.heap.generations()?;
        Ok(keys.each(chosen, |id| known(generations, id, Raw::Number)))
    }),
    field(By::Age, "age", |keys, chosen| {
        let generations = keys.heap.generations()?;
        let now = u64::from(last_generation(keys.heap)?);
        let age = |generation| Raw::Number(now.saturating_sub(generation));
        Ok(keys.each(chosen, |id| known(generations, id, age)))
    }),
    field(By::Size, "size", |keys, chosen| {
        let memsizes = keys.heap.memsizes()?;
        Ok(keys.each(chosen, |id| bits(memsizes.get(id))))
    }),
    field(By::Length, "length", |keys, chosen| {
        let lengths = keys.heap.lengths()?;
        Ok(keys.each(chosen, |id| known(lengths, id, bits)))
    }),
    field(By::Shape, "shape", |keys, chosen| {
        let shapes = keys.heap.shape_ids()?;
        Ok(keys.each(chosen, |id| known(shapes, id, Raw::Number)))
    }),
    field(By::Slot, "slot", |keys, chosen| {
        let slots = slots(keys.heap)?;
        Ok(keys.each(chosen, |id| match slots.get(id as usize) {
            Some(&slot) if slot > 0 => Raw::Number(u64::from(slot)),
            _ => Raw::Unknown,
        }))
    }),
    Property {
        only: Some("type = imemo"),
        ..field(By::Imemo, "imemo", |keys, chosen| keys.by_group(chosen, Keys::imemo))
    },
    Property {
        by: By::Namespace,
        field: None,
        only: None,
        is_tree: true,
        groups: |keys, chosen| keys.by_group(chosen, Keys::namespace),
    },
    Property {
        by: By::Superclass,
        field: None,
        only: None,
        is_tree: true,
        groups: |keys, chosen| keys.by_group(chosen, Keys::superclass),
    },
    Property {
        by: By::Root,
        field: None,
        only: None,
        is_tree: false,
        groups: |keys, chosen| {
            let categories = categories(keys.heap, keys.heap.steps()?);
            Ok(keys.each(chosen, |id| known(&categories, id, Raw::category)))
        },
    },
];

impl By {
    /// What is known of the property.
    pub(super) fn property(self) -> &'static Property {
        PROPERTIES.iter().find(|property| property.by == self).expect("one for each")
    }
}

/// Groups with their keys.
pub(super) struct Keys<'h> {
    pub heap: &'h Heap,
    pub property: &'static Property,
    pub groups: Groups,
    pub raw: Numbering<Raw>,
    /// Position of each group in the order of the keys, if rows are sorted by these.
    places: Vec<u32>,
    /// Cached, as gems have many files.
    gems: FxHashMap<&'h str, NameId>,
}

impl<'h> Keys<'h> {
    /// Groups the chosen objects.
    pub fn new(heap: &'h Heap, by: By, selection: &Selection<'_>) -> Result<Keys<'h>, Error> {
        let mut keys = Keys {
            heap,
            property: by.property(),
            groups: Groups::default(),
            raw: Numbering::default(),
            places: Vec::new(),
            gems: FxHashMap::default(),
        };
        keys.groups.of = (keys.property.groups)(&mut keys, selection)?;
        keys.groups.count = keys.raw.keys.len();
        Ok(keys)
    }

    /// The same; `by_name` if rows are sorted by their keys.
    pub fn in_order(mut self, by_name: bool) -> Keys<'h> {
        if by_name {
            let mut groups: Vec<u32> = (0..self.groups.count as u32).collect();
            groups.sort_by_cached_key(|&group| self.key(group));
            self.places = vec![0; groups.len()];
            groups.iter().zip(0..).for_each(|(&group, place)| self.places[group as usize] = place);
        }
        self
    }

    /// The position of a group in the order of the keys, or in that of the groups.
    pub fn place(&self, group: u32) -> u32 {
        self.places.get(group as usize).copied().unwrap_or(group)
    }

    /// Groups by a property that all objects of a type and class share.
    fn by_group(
        &mut self,
        selection: &Selection<'_>,
        number: impl Fn(&mut Self, Group) -> u32,
    ) -> Result<Vec<u32>, Error> {
        let heap = self.heap;
        let table: Vec<u32> = heap.groups().iter().map(|&group| number(self, group)).collect();
        let groups = heap.group_numbers()?;
        let of = |id: u32| table.get(*groups.get(id as usize)? as usize).copied();
        let pick = |id| if selection.contains(id) { of(id).unwrap_or(NONE) } else { NONE };
        Ok(filled(heap.len() as usize, pick))
    }

    /// Groups by a property of the line that allocated the objects.
    fn by_site(
        &mut self,
        selection: &Selection<'_>,
        raw: impl Fn(&mut Self, &'h Site) -> Raw,
    ) -> Result<Vec<u32>, Error> {
        let heap = self.heap;
        let numbers = heap.sites().iter().map(|site| {
            let raw = raw(self, site);
            self.number(raw)
        });
        let table: Vec<u32> = numbers.collect();
        let unknown = self.number(Raw::Unknown);
        let sites = heap.site_numbers()?;
        let of = |id: u32| table.get(*sites.get(id as usize)? as usize).copied();
        let pick = |id| if selection.contains(id) { of(id).unwrap_or(unknown) } else { NONE };
        Ok(filled(heap.len() as usize, pick))
    }

    fn each(&mut self, selection: &Selection<'_>, raw: impl Fn(u32) -> Raw + Sync) -> Vec<u32> {
        let key = |id: u32| selection.contains(id).then(|| raw(id));
        let (of, numbering) = numbered(self.heap.len() as usize, key, Raw::small);
        self.raw = numbering;
        of
    }

    fn number(&mut self, raw: Raw) -> u32 {
        let number = self.raw.number(raw);
        if self.property.is_tree && number as usize == self.groups.parents.len() {
            self.groups.parents.push(NONE);
        }
        number
    }

    fn shown(&self, group: Group) -> Option<&'h Class> {
        self.heap.classes().get(group.shown as usize)
    }

    fn class(&mut self, group: Group) -> u32 {
        let class = self.shown(group);
        self.number(class.map_or(Raw::Unknown, |class| Raw::Name(class.name)))
    }

    fn imemo(&mut self, group: Group) -> u32 {
        let name = group.name.filter(|_| group.kind == Kind::IMEMO);
        self.number(name.map_or(Raw::Unknown, Raw::Name))
    }

    fn namespace(&mut self, group: Group) -> u32 {
        match self.shown(group) {
            Some(class) => self.constant(class.name),
            None => self.number(Raw::Unknown),
        }
    }

    fn superclass(&mut self, group: Group) -> u32 {
        match self.shown(group) {
            Some(class) if class.object != NONE => self.subclass(class.object),
            _ => self.class(group),
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

    fn gem(&mut self, site: &'h Site) -> Raw {
        let gem = guess_gem(self.heap.name(site.file));
        Raw::Gem(*self.gems.entry(gem).or_insert(site.file))
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
