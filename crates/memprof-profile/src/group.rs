//! Sums of a profile by gem, file, location, class or method.

mod name_ids;
mod places;
mod report;
mod site_rows;
mod sources;

use std::fmt;
use std::hash::Hash;
use std::str::FromStr;

use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::profile::{Amount, Frame, Profile, SiteRow};
use memprof_paths::guess_gem;

pub(crate) use name_ids::Names;
pub use report::{AgesReport, Report, SiteReport, StringLocation, StringReport, Strings};
pub use site_rows::SiteRows;

/// Stands for an empty name, such as that of a file unknown to the VM.
pub const NO_NAME: &str = "(no name)";

/// A subset of a site's objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// All objects allocated.
    Allocated,
    /// Objects live at the end.
    Retained,
    /// Objects freed.
    Freed,
    /// Objects live, or not yet collected, when memory peaked.
    Peak,
}

impl Kind {
    /// The amount of this kind in `row`.
    pub fn of(self, row: &SiteRow) -> Amount {
        match self {
            Kind::Allocated => row.allocated,
            Kind::Retained => row.retained,
            Kind::Freed => row.freed,
            Kind::Peak => row.peak,
        }
    }
}

/// The key to group rows by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// The gem that the file belongs to, see [`guess_gem`].
    Gem,
    /// The file of the site.
    File,
    /// `file:line` of the site.
    Location,
    /// The class of the objects.
    Class,
    /// The method of the site, such as `Cache#fetch`.
    Method,
}

/// The sort order of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    /// Bytes.
    Memory,
    /// Number of objects.
    Objects,
}

impl Sort {
    /// The number in `amount` to sort by.
    pub fn measure(self, amount: Amount) -> u64 {
        match self {
            Sort::Memory => amount.bytes,
            Sort::Objects => amount.objects,
        }
    }
}

/// An unknown word, with the valid ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownWord {
    what: &'static str,
    word: String,
    choices: &'static [&'static str],
}

impl fmt::Display for UnknownWord {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let UnknownWord { what, word, choices } = self;
        write!(formatter, "unknown {what} {word:?}; expected one of: {}", choices.join(", "))
    }
}

impl std::error::Error for UnknownWord {}

/// The choice named by `word`: `words` and `choices` are parallel.
pub(crate) fn parse_word<T: Copy>(
    what: &'static str,
    word: &str,
    words: &'static [&'static str],
    choices: &[T],
) -> Result<T, UnknownWord> {
    words
        .iter()
        .position(|known| *known == word)
        .map(|index| choices[index])
        .ok_or_else(|| UnknownWord { what, word: word.to_owned(), choices: words })
}

impl FromStr for Kind {
    type Err = UnknownWord;

    fn from_str(word: &str) -> Result<Self, UnknownWord> {
        parse_word(
            "kind",
            word,
            &["allocated", "retained", "freed", "peak"],
            &[Kind::Allocated, Kind::Retained, Kind::Freed, Kind::Peak],
        )
    }
}

impl FromStr for By {
    type Err = UnknownWord;

    fn from_str(word: &str) -> Result<Self, UnknownWord> {
        parse_word(
            "grouping",
            word,
            &["gem", "file", "location", "class", "method"],
            &[By::Gem, By::File, By::Location, By::Class, By::Method],
        )
    }
}

impl FromStr for Sort {
    type Err = UnknownWord;

    fn from_str(word: &str) -> Result<Self, UnknownWord> {
        parse_word("order", word, &["memory", "objects"], &[Sort::Memory, Sort::Objects])
    }
}

/// The amounts of a whole profile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    /// All objects allocated.
    pub allocated: Amount,
    /// Objects live at the end.
    pub retained: Amount,
    /// Objects freed.
    pub freed: Amount,
}

/// One line of a grouped profile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GroupRow {
    /// The common property of the objects: name of a gem, a file, `file:line`, name of a class or of a method.
    pub label: String,
    /// The objects.
    pub amount: Amount,
}

impl Profile {
    /// The amounts of all rows.
    pub fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        for row in &self.rows {
            totals.allocated.add(row.allocated);
            totals.retained.add(row.retained);
            totals.freed.add(row.freed);
        }
        totals
    }

    /// Groups the objects of one kind and sums them up: largest first, ties by label.
    ///
    /// Groups without objects of that kind are omitted. `limit` keeps only the first ones.
    pub fn group(&self, kind: Kind, by: By, sort: Sort, limit: Option<usize>) -> Vec<GroupRow> {
        // Ids are summed in arrays first, so that names are looked up once per id, not once per row.
        let name = |name: &&str| (*name).to_owned();
        match by {
            By::Class => {
                let ids = self.rows.iter().map(|row| (row.class, kind.of(row)));
                let groups = merge(ids, &self.classes, |class| named(class));
                rank(groups, sort, limit, name)
            }
            By::Location => {
                let files = name_ids::first_ids(self.files.iter());
                let groups = merge(self.by_site(kind), &self.stacks, |site| {
                    (files[self.frames[site.frame as usize].file as usize], site.line)
                });
                rank(groups, sort, limit, |&(file, line)| {
                    location(named(&self.files[file as usize]), line)
                })
            }
            By::Method => {
                let groups = merge(self.by_frame(kind), &self.frames, |frame| named(&frame.method));
                rank(groups, sort, limit, name)
            }
            By::File => {
                rank(merge(self.by_file(kind), &self.files, |file| named(file)), sort, limit, name)
            }
            By::Gem => rank(
                merge(self.by_file(kind), &self.files, |file| guess_gem(file)),
                sort,
                limit,
                name,
            ),
        }
    }

    fn by_site(&self, kind: Kind) -> impl Iterator<Item = (u32, Amount)> {
        self.rows.iter().map(move |row| (row.site, kind.of(row)))
    }

    fn by_frame(&self, kind: Kind) -> impl Iterator<Item = (u32, Amount)> {
        self.by_site(kind).map(|(site, amount)| (self.stacks[site as usize].frame, amount))
    }

    fn by_file(&self, kind: Kind) -> impl Iterator<Item = (u32, Amount)> {
        self.by_frame(kind).map(|(frame, amount)| (self.frames[frame as usize].file, amount))
    }

    /// The frame of a node of the stack tree.
    pub(crate) fn frame(&self, node: usize) -> &Frame {
        &self.frames[self.stacks[node].frame as usize]
    }

    /// The path of the file of a frame, or [`NO_NAME`].
    pub(crate) fn file_name(&self, frame: &Frame) -> &str {
        named(&self.files[frame.file as usize])
    }
}

/// `name`, or [`NO_NAME`] if it is empty.
pub(crate) fn named(name: &str) -> &str {
    if name.is_empty() { NO_NAME } else { name }
}

/// The label of a location.
pub(crate) fn location(file: &str, line: u32) -> String {
    format!("{file}:{line}")
}

/// Sums amounts by id, then merges ids with the same key. Keys without objects are omitted.
fn merge<'p, T, K: Eq + Hash>(
    amounts: impl Iterator<Item = (u32, Amount)>,
    things: &'p [T],
    key: impl Fn(&'p T) -> K,
) -> FxHashMap<K, Amount> {
    let mut by_id = vec![Amount::default(); things.len()];
    for (id, amount) in amounts {
        by_id[id as usize].add(amount);
    }
    let mut by_key = FxHashMap::default();
    for (thing, amount) in things.iter().zip(by_id) {
        if amount != Amount::default() {
            by_key.entry(key(thing)).or_insert_with(Amount::default).add(amount);
        }
    }
    by_key
}

/// The groups with their labels: largest first, ties by label.
fn rank<K>(
    groups: FxHashMap<K, Amount>,
    sort: Sort,
    limit: Option<usize>,
    label: impl Fn(&K) -> String,
) -> Vec<GroupRow> {
    let groups =
        keep_most(groups.into_iter().collect(), limit, |(_, amount)| sort.measure(*amount));
    let rows = groups.iter().map(|(key, amount)| GroupRow { label: label(key), amount: *amount });
    let mut rows: Vec<GroupRow> = rows.collect();
    rows.sort_unstable_by(|a, b| {
        let most_first = sort.measure(b.amount).cmp(&sort.measure(a.amount));
        most_first.then_with(|| a.label.cmp(&b.label))
    });
    rows.truncate(limit.unwrap_or(usize::MAX));
    rows
}

/// Drops rows that cannot be among the first `limit`, so that only names that may be shown are resolved. Rows that tie with the
/// last one remain: their names decide.
pub(crate) fn keep_most<T>(
    mut rows: Vec<T>,
    limit: Option<usize>,
    measure: impl Fn(&T) -> u64,
) -> Vec<T> {
    match limit {
        Some(0) => rows.clear(),
        Some(limit) if limit < rows.len() => {
            let (_, last, _) =
                rows.select_nth_unstable_by(limit - 1, |a, b| measure(b).cmp(&measure(a)));
            let least = measure(last);
            rows.retain(|row| measure(row) >= least);
        }
        _ => {}
    }
    rows
}

#[cfg(test)]
mod naive_tests;
#[cfg(test)]
mod tests;
