//! Sites of a profile one by one: their order and contents, without all names in memory at once.

use std::cell::OnceCell;
use std::cmp::Ordering;
use std::io::Write;

use serde::Serialize;

use super::{AgesReport, Names, SiteReport, Sort, named};
use crate::profile::{Amount, Profile, SiteRow};
use memprof_paths::guess_gem;

/// Buffered bytes after which output is flushed.
const CHUNK: usize = 1 << 16;

/// Rows of a profile with the lines of their stacks, each built once: stacks share most of their frames.
pub struct SiteRows<'p> {
    profile: &'p Profile,
    names: Names<'p>,
    lines: Vec<OnceCell<Box<str>>>,
}

/// JSON fields of a site, in this order.
#[derive(Serialize)]
struct Head<'a> {
    file: &'a str,
    line: u32,
    method: &'a str,
    class: &'a str,
    gem: &'a str,
    allocated: Amount,
    retained: Amount,
    freed: Amount,
    ages: AgesReport,
    #[serde(skip_serializing_if = "Amount::is_none")]
    peak: Amount,
}

impl<'p> SiteRows<'p> {
    /// The sites of `profile`.
    pub fn new(profile: &'p Profile) -> Self {
        let lines = std::iter::repeat_with(OnceCell::new).take(profile.stacks.len());
        SiteRows { profile, names: Names::new(profile), lines: lines.collect() }
    }

    pub(super) fn names(&self) -> &Names<'p> {
        &self.names
    }

    /// Rows with the same text are merged: largest allocation first, ties by location, method, class and stack; only the first
    /// `limit`.
    pub fn rows(&self, sort: Sort, limit: Option<usize>) -> Vec<SiteRow> {
        let rows = self.names.rows();
        let mut rows = super::keep_most(rows, limit, |row| sort.measure(row.allocated));
        rows.sort_by(|a, b| {
            let most_first = sort.measure(b.allocated).cmp(&sort.measure(a.allocated));
            most_first
                .then_with(|| self.place(a).cmp(&self.place(b)))
                .then_with(|| self.compare_stacks(a.stack, b.stack))
        });
        rows.truncate(limit.unwrap_or(usize::MAX));
        rows
    }

    /// File, line, method and class.
    pub(super) fn place(&self, row: &SiteRow) -> (&'p str, u32, &'p str, &'p str) {
        let site = self.profile.stacks[row.site as usize];
        let frame = &self.profile.frames[site.frame as usize];
        let file = self.profile.file_name(frame);
        (file, site.line, named(&frame.method), self.names.class(row.class))
    }

    /// Compares the lines of two stacks, innermost first.
    pub(super) fn compare_stacks(&self, a: u32, b: u32) -> Ordering {
        if a == b {
            return Ordering::Equal;
        }
        let (mut left, mut right) = (self.names.path(a), self.names.path(b));
        loop {
            match (left.next(), right.next()) {
                (Some(a), Some(b)) if a == b => return Ordering::Equal,
                (Some(a), Some(b)) => match self.line(a).cmp(self.line(b)) {
                    Ordering::Equal => {}
                    order => return order,
                },
                (None, None) => return Ordering::Equal,
                (None, _) => return Ordering::Less,
                (_, None) => return Ordering::Greater,
            }
        }
    }

    /// A frame of a stack in the format of Ruby's backtraces.
    pub fn line(&self, node: u32) -> &str {
        self.lines[node as usize].get_or_init(|| {
            let (file, line) = self.names.place(node);
            format!("{file}:{line}:in {}", self.names.method(node)).into()
        })
    }

    /// The nodes of a row's stack, innermost first; [`SiteRows::line`] returns the text of each.
    pub fn stack(&self, row: &SiteRow) -> impl Iterator<Item = u32> + use<'p> {
        self.names.path(row.stack)
    }

    /// A row with its names, but without its stack.
    pub fn site(&self, row: &SiteRow) -> SiteReport {
        let (file, line, method, class) = self.place(row);
        SiteReport {
            file: file.to_owned(),
            line,
            method: method.to_owned(),
            class: class.to_owned(),
            allocated: row.allocated,
            retained: row.retained,
            freed: row.freed,
            ages: ages(row),
            peak: row.peak,
            stack: Vec::new(),
        }
    }

    /// A row with its names.
    pub fn whole_site(&self, row: &SiteRow) -> SiteReport {
        SiteReport {
            stack: self.stack(row).map(|node| self.line(node).to_owned()).collect(),
            ..self.site(row)
        }
    }

    /// All sites as the elements of a JSON array, with commas between them, in chunks.
    pub fn write_json<E>(&self, mut chunk: impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        let mut out: Vec<u8> = Vec::with_capacity(CHUNK * 2);
        let mut lines = vec![None; self.lines.len()];
        for (index, row) in self.rows(Sort::Memory, None).iter().enumerate() {
            if index > 0 {
                out.push(b',');
            }
            self.write_row(row, &mut lines, &mut out);
            if out.len() >= CHUNK {
                chunk(&out)?;
                out.clear();
            }
        }
        if out.is_empty() { Ok(()) } else { chunk(&out) }
    }

    /// `lines` caches stack lines as JSON: most of them are written thousands of times.
    fn write_row(&self, row: &SiteRow, lines: &mut [Option<Box<[u8]>>], out: &mut Vec<u8>) {
        let (file, line, method, class) = self.place(row);
        let head = Head {
            file,
            line,
            method,
            class,
            gem: guess_gem(file),
            allocated: row.allocated,
            retained: row.retained,
            freed: row.freed,
            ages: ages(row),
            peak: row.peak,
        };
        write(out, &head);
        out.pop(); // the brace: the stack belongs to the object, too
        let _ = out.write_all(b",\"stack\":[");
        for (index, node) in self.stack(row).enumerate() {
            if index > 0 {
                out.push(b',');
            }
            let line = lines[node as usize].get_or_insert_with(|| {
                let mut line = Vec::new();
                write(&mut line, self.line(node));
                line.into()
            });
            out.extend_from_slice(line);
        }
        let _ = out.write_all(b"]}");
    }
}

/// Writing numbers and strings to memory can't fail.
fn write(out: &mut Vec<u8>, data: &(impl Serialize + ?Sized)) {
    let _ = serde_json::to_writer(out, data);
}

fn ages(row: &SiteRow) -> AgesReport {
    let mean = match row.freed.objects {
        0 => 0.0,
        freed => row.ages.sum as f64 / freed as f64,
    };
    AgesReport { mean, max: row.ages.max }
}
