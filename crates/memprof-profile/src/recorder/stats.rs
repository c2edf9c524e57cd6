//! Live objects by file, line and class.

use std::cmp::Reverse;
use std::hash::Hash;
use std::ops::Range;

use rustc_hash::FxHashMap;

use super::Recorder;
use crate::group::NO_NAME;
use crate::printable;
use crate::sessions::SessionId;
use crate::sites::{ClassId, FrameId, SiteId, Sites};

/// One line of [`Recorder::stats`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatsRow {
    /// Live objects.
    pub objects: u64,
    /// Path of the file.
    pub file: String,
    /// Line.
    pub line: u32,
    /// Name of the class.
    pub class: String,
}

impl Recorder {
    /// Live objects of a session by file, line and class: most first, ties by place.
    pub fn stats(&mut self, session: SessionId) -> Vec<StatsRow> {
        let counted = self.counted(session, usize::MAX);
        (counted.into_iter())
            .map(|(objects, row)| {
                let row = &self.rows.rows[row as usize];
                StatsRow {
                    objects,
                    file: self.rows.files.name(row.file).into(),
                    line: row.line,
                    class: self.rows.classes.name(row.class).into(),
                }
            })
            .collect()
    }

    /// [`Recorder::stats`] as text: `heading`, and the first `limit` rows, a line each.
    pub fn stats_text(
        &mut self,
        session: SessionId,
        limit: Option<usize>,
        heading: &str,
    ) -> String {
        let counted = self.counted(session, limit.unwrap_or(usize::MAX));
        let mut text = String::with_capacity(heading.len() + counted.len() * 128);
        text.push_str(heading);
        // A server does this for each request, and the machinery of `write!` would take half of the time.
        let mut number = itoa::Buffer::new();
        for (objects, row) in counted {
            let objects = number.format(objects);
            text.push_str(&"       "[objects.len().min(7)..]);
            text.push_str(objects);
            text.push_str(self.rows.text(row));
        }
        text
    }

    /// Live objects of a session, and the number of their row.
    fn counted(&mut self, session: SessionId, limit: usize) -> Vec<(u64, u32)> {
        let mut rows = std::mem::take(&mut self.rows);
        for (_, cell, scale) in (self.cells_of(session)).filter(|(_, cell, _)| cell.live() > 0) {
            rows.count(&self.sites, cell.site, cell.live() * scale);
        }
        let counted = rows.take_counted(limit);
        self.rows = rows;
        counted
    }
}

/// Cached file, line and class of sites. A server's requests keep allocating at the same sites: the text of a row, and its rank
/// among rows with as many objects, are computed once.
#[derive(Debug, Default)]
pub(super) struct Rows {
    /// Row of a site; index is the site's number.
    of_site: Vec<Option<u32>>,
    numbers: FxHashMap<(u32, u32, u32), u32>,
    rows: Vec<Row>,
    /// Text of a row after its number of objects, ` app.rb:3:String` with a line feed.
    texts: String,
    files: Names<FrameId>,
    classes: Names<ClassId>,
    /// Rows with a count.
    counted: Vec<u32>,
}

#[derive(Debug)]
struct Row {
    objects: u64,
    /// Number of the file in [`Rows::files`].
    file: u32,
    line: u32,
    /// Number of the class in [`Rows::classes`].
    class: u32,
    /// Range of its text in [`Rows::texts`].
    text: Range<usize>,
}

impl Rows {
    fn count(&mut self, sites: &Sites, site: SiteId, objects: u64) {
        let known = self.of_site.get(site.0 as usize).copied().flatten();
        let Some(number) = known.or_else(|| self.add(sites, site)) else {
            return;
        };
        let row = &mut self.rows[number as usize];
        if row.objects == 0 {
            self.counted.push(number);
        }
        row.objects += objects;
    }

    /// The row of a site requested for the first time.
    #[cold]
    fn add(&mut self, sites: &Sites, id: SiteId) -> Option<u32> {
        let site = sites.get(id)?;
        let node = sites.node(site.place)?;
        let (file, class) = (file_of(sites, node.frame), sites.class_name(site.class));
        let place = (
            self.files.number(node.frame, file),
            node.line,
            self.classes.number(site.class, class),
        );
        let new = self.rows.len() as u32;
        let number = *self.numbers.entry(place).or_insert(new);
        if number == new {
            let start = self.texts.len();
            self.texts.push(' ');
            printable::push(&mut self.texts, file);
            self.texts.push_str(&format!(":{}:", node.line));
            printable::push(&mut self.texts, class);
            self.texts.push('\n');
            let (file, line, class) = place;
            let text = start..self.texts.len();
            self.rows.push(Row { objects: 0, file, line, class, text });
        }
        let index = id.0 as usize;
        if self.of_site.len() <= index {
            self.of_site.resize(index + 1, None);
        }
        self.of_site[index] = Some(number);
        Some(number)
    }

    /// The counts, most first, ties by place. Resets them to 0.
    fn take_counted(&mut self, limit: usize) -> Vec<(u64, u32)> {
        let (rows, files, classes) = (&mut self.rows, self.files.ranks(), self.classes.ranks());
        let mut order: Vec<(Reverse<u64>, u32, u32, u32, u32)> = (self.counted.drain(..))
            .map(|number| {
                let row = &mut rows[number as usize];
                let objects = Reverse(std::mem::take(&mut row.objects));
                let file = files[row.file as usize];
                let class = classes[row.class as usize];
                (objects, file, row.line, class, number)
            })
            .collect();
        if limit < order.len() {
            order.select_nth_unstable(limit);
            order.truncate(limit);
        }
        order.sort_unstable();
        (order.into_iter()).map(|(Reverse(objects), _, _, _, number)| (objects, number)).collect()
    }

    fn text(&self, row: u32) -> &str {
        &self.texts[self.rows[row as usize].text.clone()]
    }

    /// Memory size of the tables in bytes.
    pub(super) fn memsize(&self) -> usize {
        self.of_site.capacity() * size_of::<Option<u32>>()
            + self.numbers.capacity() * (size_of::<((u32, u32, u32), u32)>() + 1)
            + self.rows.capacity() * size_of::<Row>()
            + self.texts.capacity()
            + self.files.memsize()
            + self.classes.memsize()
    }
}

/// Names of files or classes, numbered in order of appearance, and their ranks. Names are long and similar, so rows are
/// compared by rank.
#[derive(Debug)]
struct Names<Id> {
    /// Name number of a frame's file or of a class.
    numbers: FxHashMap<Id, u32>,
    /// Index is the number.
    names: Vec<Box<str>>,
    /// Numbers in the order of names.
    order: Vec<u32>,
    /// Index is the number; out of date if shorter than `names`.
    ranks: Vec<u32>,
}

impl<Id> Default for Names<Id> {
    fn default() -> Self {
        Names {
            numbers: FxHashMap::default(),
            names: Vec::new(),
            order: Vec::new(),
            ranks: Vec::new(),
        }
    }
}

impl<Id: Eq + Hash> Names<Id> {
    fn number(&mut self, id: Id, name: &str) -> u32 {
        *self.numbers.entry(id).or_insert_with(|| {
            let named = |number: &u32| &*self.names[*number as usize];
            let search = (self.order).binary_search_by(|number| named(number).cmp(name));
            match search {
                Ok(at) => self.order[at],
                Err(at) => {
                    let number = self.names.len() as u32;
                    self.names.push(name.into());
                    self.order.insert(at, number);
                    number
                }
            }
        })
    }

    fn name(&self, number: u32) -> &str {
        &self.names[number as usize]
    }

    fn ranks(&mut self) -> &[u32] {
        if self.ranks.len() < self.names.len() {
            self.ranks.resize(self.names.len(), 0);
            for (rank, number) in (0..).zip(&self.order) {
                self.ranks[*number as usize] = rank;
            }
        }
        &self.ranks
    }

    fn memsize(&self) -> usize {
        let text: usize = self.names.iter().map(|name| name.len()).sum();
        text + self.numbers.capacity() * (size_of::<(Id, u32)>() + 1)
            + self.names.capacity() * (size_of::<Box<str>>() + 8)
    }
}

fn file_of(sites: &Sites, frame: FrameId) -> &str {
    let file = sites.frame_key(frame).map_or("", |key| &*key.file);
    if file.is_empty() { NO_NAME } else { file }
}
