//! The fields of the query language, from the columns of a heap. Only those that a query uses are loaded.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::io;

use memprof_paths::guess_gem;
use rustc_hash::FxHashMap;

use super::Error;
use super::application;
use super::computed::{depths, last_generation, referrers};
use super::leaked::{leaked, slots};
use super::overview::process_facts;
use super::words::place;
use crate::query::{Expression, Field, Fields, Part, Row};
use memprof_dump::record::{Flags, Kind, NameId, STATE, Value};
use memprof_heap::graph::BitSet;
use memprof_heap::{Heap, NONE, Site, Sizes, TextReader};
use memprof_ledger::UnsharedPages;

/// The columns that a query needs.
pub(super) struct Columns<'h> {
    heap: &'h Heap,
    groups: &'h [u32],
    flags: &'h [u32],
    /// Upper case names of types, by group.
    types: Vec<String>,
    memsizes: Option<&'h Sizes>,
    retained: Option<&'h Sizes>,
    lengths: &'h [u32],
    shapes: &'h [u32],
    sites: &'h [u32],
    generations: &'h [u32],
    texts: &'h [u32],
    offsets: &'h [u32],
    steps: &'h [u32],
    referrers: Vec<u32>,
    depths: Vec<u32>,
    roots: Roots,
    slots: Vec<u16>,
    unshared: Option<UnsharedPages>,
    leaked: Option<BitSet>,
    /// Fact with the name of a piece of code or a thread.
    name: Option<NameId>,
    /// Fact with the state of a block that is not used.
    state: Option<NameId>,
    now: u32,
}

/// Reads texts for one thread.
pub(super) struct Reading<'h> {
    reader: RefCell<TextReader<'h>>,
    error: Cell<Option<io::Error>>,
    /// Page of the last address found.
    page: Cell<usize>,
}

/// Root categories that reference an object directly.
#[derive(Default)]
struct Roots {
    of: FxHashMap<u32, u32>,
    /// Comma-separated names of categories.
    names: Vec<String>,
}

impl<'h> Columns<'h> {
    /// Loads the columns of these fields.
    pub fn new(heap: &'h Heap, fields: Fields) -> io::Result<Columns<'h>> {
        let any = |wanted: &[Field]| wanted.iter().any(|&field| fields.contains(field));
        let sited = any(&[
            Field::File,
            Field::Line,
            Field::Site,
            Field::Application,
            Field::Method,
            Field::Gem,
            Field::Tracked,
        ]);
        let aged = any(&[Field::Generation, Field::Age]);
        let rooted = !heap.categories().is_empty();
        let reaching = any(&[Field::Depth, Field::Reachable]) && rooted;
        let graph = any(&[Field::References]);
        let steps = if reaching { heap.steps()? } else { &[] };
        let upper = |kind: Kind| kind.name().to_uppercase();
        Ok(Columns {
            heap,
            groups: heap.group_numbers()?,
            flags: heap.flag_words()?,
            types: heap.groups().iter().map(|group| upper(group.kind)).collect(),
            memsizes: any(&[Field::Size]).then(|| heap.memsizes()).transpose()?,
            retained: (any(&[Field::Retained]) && rooted).then(|| heap.retained()).transpose()?,
            lengths: if any(&[Field::Length]) { heap.lengths()? } else { &[] },
            shapes: if any(&[Field::Shape]) { heap.shape_ids()? } else { &[] },
            sites: if sited { heap.site_numbers()? } else { &[] },
            generations: if aged { heap.generations()? } else { &[] },
            texts: if any(&[Field::Value]) { heap.text_places()? } else { &[] },
            offsets: if graph { heap.graph(&[])?.offsets } else { &[] },
            steps,
            referrers: if any(&[Field::Referrers]) { referrers(heap)? } else { Vec::new() },
            depths: if any(&[Field::Depth]) { depths(heap, steps) } else { Vec::new() },
            roots: if any(&[Field::Root]) { Roots::of(heap)? } else { Roots::default() },
            slots: if any(&[Field::Slot]) { slots(heap)? } else { Vec::new() },
            unshared: any(&[Field::Unshared])
                .then(|| process_facts::header(heap).remove("unshared"))
                .flatten()
                .and_then(UnsharedPages::from_json),
            leaked: match any(&[Field::Leaked]) && rooted {
                true => {
                    let dominators = heap.dominators()?;
                    leaked(heap, |id| dominators.reaches(id))?
                }
                false => None,
            },
            name: heap.names().find("name"),
            state: heap.names().find(STATE),
            now: if any(&[Field::Age]) { last_generation(heap)? } else { 0 },
        })
    }
}

impl Columns<'_> {
    /// The number of the line that allocated an object, if it is known and the query asks for it.
    #[inline]
    pub fn site_number(&self, id: u32) -> Option<usize> {
        known(self.sites, id).map(|site| site as usize)
    }
}

impl<'h> Reading<'h> {
    pub fn new(heap: &'h Heap) -> Reading<'h> {
        Reading {
            reader: RefCell::new(heap.texts().reader()),
            error: Cell::new(None),
            page: Cell::new(0),
        }
    }

    /// The error of reading objects, if there was one.
    pub fn take_error(&self) -> Result<(), Error> {
        match self.error.take() {
            Some(error) => Err(error.into()),
            None => Ok(()),
        }
    }

    /// Calls `look` with the bytes of the text at a place, if they are known.
    fn show<T>(&self, place: u32, look: impl FnOnce(&[u8]) -> T) -> Option<T> {
        match self.reader.borrow_mut().known_bytes(place) {
            Ok(bytes) => bytes.map(look),
            Err(error) => {
                self.error.set(Some(error));
                None
            }
        }
    }
}

impl Roots {
    fn of(heap: &Heap) -> io::Result<Roots> {
        let graph = heap.graph(&[])?;
        let mut holders: FxHashMap<u32, Vec<u32>> = FxHashMap::default();
        for category in 0..heap.categories().len() as u32 {
            for &target in graph.row(heap.category_node(category as usize)) {
                let holders = holders.entry(target).or_default();
                if holders.last() != Some(&category) {
                    holders.push(category);
                }
            }
        }
        let mut roots = Roots::default();
        let mut numbers: FxHashMap<Vec<u32>, u32> = FxHashMap::default();
        for (object, holders) in holders {
            let next = roots.names.len() as u32;
            let names =
                holders.iter().map(|&holder| heap.categories()[holder as usize].name.as_str());
            let joined = names.collect::<Vec<_>>().join(",");
            let number = *numbers.entry(holders).or_insert(next);
            if number == next {
                roots.names.push(joined);
            }
            roots.of.insert(object, number);
        }
        Ok(roots)
    }
}

#[inline]
fn known(column: &[u32], id: u32) -> Option<u32> {
    column.get(id as usize).copied().filter(|&value| value != NONE)
}

/// An object, as a query sees it.
pub(super) struct At<'c, 'h> {
    pub columns: &'c Columns<'h>,
    pub reading: &'c Reading<'h>,
    pub id: u32,
}

impl<'h> At<'_, 'h> {
    #[inline]
    fn group(&self) -> Option<u32> {
        self.columns.groups.get(self.id as usize).copied()
    }

    #[inline]
    fn site(&self) -> Option<&'h Site> {
        let site = known(self.columns.sites, self.id)?;
        self.columns.heap.sites().get(site as usize)
    }

    fn address(&self) -> u64 {
        let mut page = self.reading.page.get();
        let address = self.columns.heap.addresses().near(self.id, &mut page);
        self.reading.page.set(page);
        address
    }

    fn value<T>(&self, look: impl FnOnce(&[u8]) -> T) -> Option<T> {
        let place = known(self.columns.texts, self.id)?;
        self.reading.show(place, look)
    }

    fn name(&self) -> Option<NameId> {
        let heap = self.columns.heap;
        let group = heap.groups().get(self.group()? as usize)?;
        if matches!(group.kind, Kind::CLASS | Kind::MODULE | Kind::ICLASS) {
            return heap.class_object(self.id)?.name;
        }
        if !matches!(group.kind, Kind::IMEMO | Kind::DATA) {
            return None;
        }
        match heap.facts().get(self.id, self.columns.name?)? {
            Value::Name(name) | Value::Symbol(name) => Some(name),
            _ => None,
        }
    }

    fn state(&self) -> Option<Cow<'_, str>> {
        let heap = self.columns.heap;
        let group = heap.groups().get(self.group()? as usize)?;
        if group.kind != Kind::BLOCK {
            return None;
        }
        let state = self.columns.state.and_then(|name| heap.facts().get(self.id, name));
        Some(match state {
            Some(Value::Name(state)) => heap.name(state).into(),
            _ => "used".into(),
        })
    }

    fn interned(&self, field: Field) -> Option<NameId> {
        let heap = self.columns.heap;
        match field {
            Field::Class => {
                let group = heap.groups().get(self.group()? as usize)?;
                heap.classes().get(group.shown as usize).map(|class| class.name)
            }
            Field::Imemo => {
                let group = heap.groups().get(self.group()? as usize)?;
                group.name.filter(|_| group.kind == Kind::IMEMO)
            }
            Field::Name => self.name(),
            Field::File | Field::Gem => self.site().map(|site| site.file),
            Field::Method => self.site()?.method,
            _ => None,
        }
    }
}

impl Row for At<'_, '_> {
    #[inline]
    fn number(&self, field: Field) -> Option<u64> {
        let columns = self.columns;
        let id = self.id;
        match field {
            Field::Length => known(columns.lengths, id).map(u64::from),
            Field::Size => columns.memsizes.map(|sizes| sizes.get(id)),
            Field::Slot => columns
                .slots
                .get(id as usize)
                .filter(|&&size| size != 0)
                .map(|&size| u64::from(size)),
            Field::Retained => columns.retained.map(|sizes| sizes.get(id)),
            Field::Line => {
                self.site().filter(|site| site.line != 0).map(|site| u64::from(site.line))
            }
            Field::Generation => known(columns.generations, id).map(u64::from),
            Field::Age => known(columns.generations, id)
                .map(|generation| u64::from(columns.now.saturating_sub(generation))),
            Field::References => {
                let row = columns.offsets.get(id as usize..id as usize + 2)?;
                Some(u64::from(row[1].saturating_sub(row[0])))
            }
            Field::Referrers => columns.referrers.get(id as usize).copied().map(u64::from),
            Field::Depth => known(&columns.depths, id).map(u64::from),
            Field::Address => Some(self.address()),
            Field::Shape => known(columns.shapes, id).map(u64::from),
            _ => None,
        }
    }

    fn text(&self, field: Field) -> Option<Cow<'_, str>> {
        let heap = self.columns.heap;
        match field {
            Field::Type => {
                self.columns.types.get(self.group()? as usize).map(|name| name.as_str().into())
            }
            Field::Value => {
                let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                self.value(text).map(Cow::Owned)
            }
            Field::Site | Field::Gem | Field::Application => text_of(heap, self.site()?, field),
            Field::State => self.state(),
            Field::Root => {
                let roots = &self.columns.roots;
                let names = roots.names.get(*roots.of.get(&self.id)? as usize)?;
                Some(names.as_str().into())
            }
            _ => self.interned(field).map(|name| heap.name(name).into()),
        }
    }

    fn says(&self, field: Field, test: impl FnOnce(&str) -> bool) -> Option<bool> {
        match field {
            Field::Value => self.value(|bytes| test(&String::from_utf8_lossy(bytes))),
            _ => self.text(field).map(|text| test(&text)),
        }
    }

    fn contains(&self, field: Field, part: &Part) -> Option<bool> {
        match field {
            Field::Value => self.value(|bytes| part.is_in_bytes(bytes)),
            _ => self.text(field).map(|text| part.is_in(&text)),
        }
    }

    #[inline]
    fn place(&self) -> u32 {
        self.id
    }

    #[inline]
    fn truth(&self, field: Field) -> Option<bool> {
        let flag =
            |flag: Flags| self.columns.flags.get(self.id as usize).map(|flags| flags & flag.0 != 0);
        match field {
            Field::Tracked => Some(self.site().is_some()),
            Field::Reachable => self.columns.steps.get(self.id as usize).map(|&step| step != NONE),
            Field::Leaked => self.columns.leaked.as_ref().map(|leaked| leaked.contains(self.id)),
            Field::Frozen => flag(Flags::FROZEN),
            Field::Shared => flag(Flags::SHARED),
            Field::Embedded => flag(Flags::EMBEDDED),
            Field::Old => flag(Flags::OLD),
            Field::Singleton => flag(Flags::SINGLETON),
            Field::Unshared => {
                let pages = self.columns.unshared.as_ref()?;
                Some(pages.contains(self.address()))
            }
            _ => None,
        }
    }

    #[inline]
    fn text_key(&self, field: Field) -> Option<u32> {
        match field {
            Field::Type => self.group(),
            Field::Site => known(self.columns.sites, self.id),
            Field::Application => {
                application(self.columns.heap, self.site()?)?;
                known(self.columns.sites, self.id)
            }
            Field::Root => self.columns.roots.of.get(&self.id).copied(),
            Field::Value | Field::State => None,
            _ => self.interned(field).map(|name| name.0),
        }
    }
}

/// The common properties of a group, as a query sees them: type, class, and the kind of imemo.
struct OfGroup<'c, 'h> {
    columns: &'c Columns<'h>,
    number: usize,
}

/// A site, or none, as a query sees it.
struct OfSite<'h> {
    heap: &'h Heap,
    site: Option<&'h Site>,
}

/// Evaluates a query for whole groups and sites, before any object is looked at.
impl Columns<'_> {
    /// Whether objects of each group can match, if the query has conditions on groups: most queries begin with a type or
    /// a class, which few groups have.
    pub fn possible_groups(&self, expression: &Expression) -> Option<Vec<bool>> {
        let parts = parts_about(expression, &[Field::Type, Field::Class, Field::Imemo])?;
        let possible = |number| {
            let group = OfGroup { columns: self, number };
            parts.iter().all(|part| part.matches(&group))
        };
        Some((0..self.types.len()).map(possible).collect())
    }

    /// The same for each site and, as the last entry, for objects whose site is unknown.
    pub fn possible_sites(&self, expression: &Expression) -> Option<Vec<bool>> {
        use Field::{Application, File, Gem, Line, Method, Site, Tracked};
        let parts =
            parts_about(expression, &[File, Line, Site, Method, Gem, Application, Tracked])?;
        let sites = self.heap.sites().iter().map(Some).chain([None]);
        let possible = sites.map(|site| {
            let site = OfSite { heap: self.heap, site };
            parts.iter().all(|part| part.matches(&site))
        });
        Some(possible.collect())
    }
}

/// The required parts of a query that only use these fields, if there are any.
fn parts_about<'e>(expression: &'e Expression, fields: &[Field]) -> Option<Vec<&'e Expression>> {
    let parts = match expression {
        Expression::And(parts) => parts.as_slice(),
        one => std::slice::from_ref(one),
    };
    let about = |part: &&Expression| part.fields().iter().all(|field| fields.contains(&field));
    let parts: Vec<&Expression> = parts.iter().filter(about).collect();
    (!parts.is_empty()).then_some(parts)
}

impl Row for OfSite<'_> {
    fn number(&self, field: Field) -> Option<u64> {
        let line = self.site.filter(|_| field == Field::Line)?.line;
        (line != 0).then_some(u64::from(line))
    }

    fn text(&self, field: Field) -> Option<Cow<'_, str>> {
        text_of(self.heap, self.site?, field)
    }

    fn truth(&self, field: Field) -> Option<bool> {
        (field == Field::Tracked).then_some(self.site.is_some())
    }
}

/// The value of a field for a site.
fn text_of<'h>(heap: &'h Heap, site: &Site, field: Field) -> Option<Cow<'h, str>> {
    let file = heap.name(site.file);
    Some(match field {
        Field::File => file.into(),
        Field::Site => place(file, site.line).into(),
        Field::Gem => guess_gem(file).into(),
        Field::Method => heap.name(site.method?).into(),
        Field::Application => {
            let own = application(heap, site)?;
            place(heap.name(own.file), own.line).into()
        }
        _ => return None,
    })
}

impl Row for OfGroup<'_, '_> {
    fn number(&self, _: Field) -> Option<u64> {
        None
    }

    fn text(&self, field: Field) -> Option<Cow<'_, str>> {
        let heap = self.columns.heap;
        let group = heap.groups().get(self.number)?;
        let name = match field {
            Field::Type => return Some(self.columns.types.get(self.number)?.into()),
            Field::Class => heap.classes().get(group.shown as usize)?.name,
            Field::Imemo => group.name.filter(|_| group.kind == Kind::IMEMO)?,
            _ => return None,
        };
        Some(heap.name(name).into())
    }

    fn truth(&self, _: Field) -> Option<bool> {
        None
    }
}
