//! `duplicates`: equal strings. Garbage does not count as waste: the next GC frees it.
//!
//! Texts are compared by hash and length, read in storage order. A bit table finds hashes that may occur more than once;
//! only these are counted. Only the texts that are shown are sorted. This takes 20 bytes per string.

mod found;
#[cfg(test)]
mod tests;

use std::cmp::{Ordering, Reverse};

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use super::describe::Site;
use super::holders::{Holder, holders};
use super::list::{List, Measure, Page, Rows};
use super::tally::percent;
use super::{Error, Limit, Remark, Selection, Words};
use found::{Equal, Found};
use memprof_heap::graph::BitSet;
use memprof_heap::{Heap, NONE};

/// `duplicates`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Question {
    /// Filter for the strings (default: all).
    pub r#where: Option<String>,
    /// Maximum number of texts.
    pub limit: Limit<20>,
    /// Texts to skip (default: none).
    pub offset: usize,
    /// Minimum number of equal strings (default: 2).
    pub min: Option<u64>,
}

/// Strings of one class.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OfClass {
    /// Class.
    pub class: String,
    /// Strings.
    pub count: u64,
}

/// Strings allocated at one line.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AtSite {
    /// The line.
    #[serde(flatten)]
    pub site: Site,
    /// Strings.
    pub count: u64,
}

/// A text of several strings.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// Its beginning; null if the dump has marks instead of texts.
    pub text: Option<String>,
    /// Bytes.
    pub length: u64,
    /// Strings.
    pub count: u64,
    /// Sum of their memsizes.
    pub size: u64,
    /// The same without the largest one.
    pub wasted: u64,
    /// Percentage of the whole heap's memsize.
    pub percent: f64,
    /// Number of one of the strings.
    pub id: u32,
    /// Its address.
    pub address: String,
    /// Classes of the strings.
    pub classes: Vec<OfClass>,
    /// Lines that allocated them.
    pub sites: Vec<AtSite>,
    /// Their referrers.
    pub holders: Vec<Holder>,
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Answer {
    /// Texts, the most wasteful first.
    pub rows: Vec<Row>,
    /// Texts after those that are shown.
    pub more: usize,
    /// Number of strings examined, without garbage.
    pub count: u64,
    /// Sum of their memsizes.
    pub size: u64,
    /// Redundant strings: an equal one remains.
    pub duplicates: u64,
    /// Sum of the wasted bytes.
    pub wasted: u64,
    /// Percentage of the whole heap's memsize.
    pub percent: f64,
    /// Strings that cannot be compared, as their text is incomplete in the dump.
    pub unknown_count: u64,
    /// Sum of their memsizes.
    pub unknown_size: u64,
    /// Whether garbage is excluded: not if the dump has no roots.
    pub without_garbage: bool,
    /// Missing information, with the reason.
    pub warnings: Vec<Remark>,
}

/// A warning for dumps without roots, where garbage cannot be excluded.
pub(super) fn with_garbage(heap: &Heap) -> Option<Remark> {
    let unknown = heap.categories().is_empty() && !heap.is_empty();
    unknown.then_some(Remark::GarbageCounted)
}

/// Maximum length of a shown text, in characters.
const SHOWN: usize = 80;

/// Maximum number of classes, lines and referrers of a text.
const PARTS: usize = 3;

impl Question {
    /// The answer.
    ///
    /// # Errors
    /// If the filter is invalid, or the index or a text cannot be read.
    pub fn answer(&self, heap: &Heap) -> Result<Answer, Error> {
        let mut found = Found::of(heap, &Selection::live(heap, self.r#where.as_deref())?)?;
        let (texts, strings) = found.equals(heap.memsizes()?);
        let least = self.min.unwrap_or(2).max(2);
        let texts = Texts { texts, least };
        let repeated = || texts.texts.iter().filter(|text| text.count >= least);
        let duplicates = repeated().map(|text| text.count - 1).sum();
        let wasted = repeated().fold(0_u64, |sum, text| sum.saturating_add(text.wasted()));
        let numbers = 0..texts.texts.len() as u32;
        let list = List::new(&texts, &[Measure::Wasted, Measure::Count]);
        let Page { shown, more } = list.page(numbers, self.limit, self.offset);
        let whole = heap.size()?;
        Ok(Answer {
            rows: rows(heap, &Shown::of(heap, &texts.texts, &strings, &shown), whole)?,
            more,
            count: found.count,
            size: found.size,
            duplicates,
            wasted,
            percent: percent(wasted, whole),
            unknown_count: found.unknown_count,
            unknown_size: found.unknown_size,
            without_garbage: !heap.categories().is_empty(),
            warnings: (found.warnings().into_iter()).chain(with_garbage(heap)).collect(),
        })
    }
}

/// Texts by number. Those of fewer than `least` strings are not listed.
struct Texts {
    texts: Vec<Equal>,
    least: u64,
}

impl Rows for Texts {
    fn measure(&self, number: u32, measure: Measure) -> Option<u64> {
        let text = &self.texts[number as usize];
        match measure {
            Measure::Wasted => Some(text.wasted()),
            Measure::Count => Some(text.count),
            _ => None,
        }
    }

    fn compare_keys(&self, one: u32, other: u32) -> Ordering {
        let first = |number: u32| self.texts[number as usize].first;
        first(one).cmp(&first(other))
    }

    fn is_listed(&self, number: u32) -> bool {
        self.texts[number as usize].count >= self.least
    }
}

/// The texts that are shown, with their strings.
struct Shown {
    texts: Vec<Equal>,
    /// Strings of each.
    members: Vec<Vec<u32>>,
    /// All of these.
    all: BitSet,
    /// Position among `texts` by string; meaningless for other objects.
    of: Vec<u32>,
}

impl Shown {
    fn of(heap: &Heap, texts: &[Equal], strings: &[(u32, u32)], order: &[u32]) -> Shown {
        let mut rank = vec![NONE; texts.len()];
        for (&number, row) in order.iter().zip(0..) {
            rank[number as usize] = row;
        }
        let texts: Vec<Equal> = order.iter().map(|&number| texts[number as usize]).collect();
        let room = |text: &Equal| Vec::with_capacity(text.count as usize);
        let mut shown = Shown {
            members: texts.iter().map(room).collect(),
            texts,
            all: BitSet::new(heap.len() as usize),
            of: vec![0; heap.len() as usize],
        };
        for &(number, id) in strings {
            let row = rank[number as usize];
            if let Some(members) = shown.members.get_mut(row as usize) {
                members.push(id);
                shown.all.insert(id);
                shown.of[id as usize] = row;
            }
        }
        shown
    }

    /// The position of a string's text; [`NONE`] for other objects.
    fn row(&self, id: u32) -> u32 {
        // The set is small enough for the CPU cache.
        if self.all.contains(id) { self.of[id as usize] } else { NONE }
    }
}

fn rows(heap: &Heap, shown: &Shown, whole: u64) -> Result<Vec<Row>, Error> {
    let words = Words::new(heap)?;
    let places = heap.text_places()?;
    let sites = heap.site_numbers()?;
    // A library line has a site for each application line that called it.
    let mut by_line = FxHashMap::default();
    let numbered = (0..).zip(heap.sites());
    let lines: Vec<u32> = numbered
        .map(|(number, site)| {
            *(by_line.entry((site.file, site.line, site.method))).or_insert(number)
        })
        .collect();
    let groups = heap.group_numbers()?;
    let holders = holders(heap, &words, shown.texts.len(), |id| shown.row(id), PARTS)?;
    let name = |name| heap.name(name).to_owned();
    let class_of = |group: &u32| heap.groups().get(*group as usize).map(|group| group.shown);
    let class = |&(class, count): &(u32, u64)| {
        let class = heap.classes().get(class as usize)?;
        Some(OfClass { class: name(class.name), count })
    };
    let site = |&(site, count): &(u32, u64)| {
        let site = Site::of(heap, heap.sites().get(site as usize)?);
        Some(AtSite { site, count })
    };
    let mut rows = Vec::with_capacity(shown.texts.len());
    for ((text, members), holders) in shown.texts.iter().zip(&shown.members).zip(holders) {
        let id = text.first;
        let stored = heap.texts().get(places.get(id as usize).copied().unwrap_or(NONE))?;
        let members = || members.iter().copied();
        let classes = most(members().filter_map(|id| groups.get(id as usize).and_then(class_of)));
        let sited = |id: u32| lines.get(*sites.get(id as usize)? as usize).copied();
        let made = most(members().filter_map(sited));
        rows.push(Row {
            text: stored
                .bytes()
                .map(|bytes| shortened(&String::from_utf8_lossy(bytes), stored.length)),
            length: stored.length,
            count: text.count,
            size: text.size,
            wasted: text.wasted(),
            percent: percent(text.wasted(), whole),
            id,
            address: format!("{:#x}", heap.addresses().of(id)),
            classes: classes.iter().filter_map(class).collect(),
            sites: made.iter().filter_map(site).collect(),
            holders,
        });
    }
    Ok(rows)
}

/// The most frequent numbers.
fn most(numbers: impl Iterator<Item = u32>) -> Vec<(u32, u64)> {
    let mut counts: FxHashMap<u32, u64> = FxHashMap::default();
    numbers.for_each(|number| *counts.entry(number).or_default() += 1);
    let mut counts: Vec<(u32, u64)> = counts.into_iter().collect();
    counts.sort_unstable_by_key(|&(number, count)| (Reverse(count), number));
    counts.truncate(PARTS);
    counts
}

fn shortened(text: &str, length: u64) -> String {
    let mut shown: String = text.chars().take(SHOWN).collect();
    if (shown.len() as u64) < length {
        shown.push('…');
    }
    shown
}
