//! A profile with all names resolved: the source of JSON and of site lists.

use rustc_hash::{FxHashMap, FxHashSet};
use serde::Serialize;

use super::{Kind, SiteRows, Sort, Totals, keep_most, location, named};
use crate::profile::{Amount, Meta, Profile, StringRow};

/// Age of freed objects in GC generations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct AgesReport {
    /// Mean of the ages, 0 if nothing was freed.
    pub mean: f64,
    /// The oldest.
    pub max: u32,
}

/// The objects of one class allocated at one place, by one stack.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SiteReport {
    /// Path of the file.
    pub file: String,
    /// Line.
    pub line: u32,
    /// Qualified name of the method.
    pub method: String,
    /// Name of the class.
    pub class: String,
    /// All objects allocated.
    pub allocated: Amount,
    /// Objects live at the end.
    pub retained: Amount,
    /// Objects freed.
    pub freed: Amount,
    /// Ages of the freed objects.
    pub ages: AgesReport,
    /// Objects live when memory peaked.
    #[serde(skip_serializing_if = "Amount::is_none")]
    pub peak: Amount,
    /// Frames as `file:line:in method`, innermost first.
    pub stack: Vec<String>,
}

/// A place that allocated strings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StringLocation {
    /// `file:line`.
    pub location: String,
    /// Number of strings.
    pub objects: u64,
}

/// A string value and the places that allocated it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StringReport {
    /// The value, possibly truncated.
    pub value: String,
    /// Number of strings with this value.
    pub objects: u64,
    /// Where they were allocated, most first, ties by location.
    pub locations: Vec<StringLocation>,
}

/// The strings of a profile.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Strings {
    /// Values of the strings allocated.
    pub allocated: Vec<StringReport>,
    /// Values of the strings retained.
    pub retained: Vec<StringReport>,
}

/// A whole profile with all names resolved and exact bytes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// The run.
    pub meta: Meta,
    /// Sums of all sites.
    pub totals: Totals,
    /// All sites, most allocated bytes first.
    pub sites: Vec<SiteReport>,
    /// String values, most first.
    pub strings: Strings,
}

impl Profile {
    /// The sites with all names resolved: largest allocation first, ties by location, method and class.
    ///
    /// Rows with the same text are merged. `limit` keeps only the first ones.
    pub fn sites(&self, sort: Sort, limit: Option<usize>) -> Vec<SiteReport> {
        let sites = SiteRows::new(self);
        let rows = sites.rows(sort, limit);
        rows.iter().map(|row| sites.whole_site(row)).collect()
    }

    /// The string values of one kind with their locations: most first, ties by value. Unknown for freed strings and for the
    /// peak.
    pub fn strings(&self, kind: Kind, limit: Option<usize>) -> Vec<StringReport> {
        let rows = match kind {
            Kind::Allocated => self.strings_allocated.as_slice(),
            Kind::Retained => self.strings_retained.as_slice(),
            Kind::Freed | Kind::Peak => &[],
        };
        let rows = rows.iter().filter(|row| row.objects > 0).collect();
        let mut rows: Vec<&StringRow> = keep_most(rows, limit, |row| row.objects);
        rows.sort_unstable_by(|a, b| b.objects.cmp(&a.objects).then_with(|| a.value.cmp(&b.value)));
        rows.truncate(limit.unwrap_or(usize::MAX));
        rows.into_iter().map(|row| self.string(row)).collect()
    }

    fn string(&self, row: &StringRow) -> StringReport {
        let mut by_place: FxHashMap<(&str, u32), u64> = FxHashMap::default();
        for &(file, line, objects) in &row.locations {
            *by_place.entry((named(&self.files[file as usize]), line)).or_default() += objects;
        }
        let locations = by_place.into_iter().map(|((file, line), objects)| StringLocation {
            location: location(file, line),
            objects,
        });
        let mut locations: Vec<StringLocation> = locations.collect();
        locations.sort_unstable_by(|a, b| {
            b.objects.cmp(&a.objects).then_with(|| a.location.cmp(&b.location))
        });
        StringReport { value: row.value.clone(), objects: row.objects, locations }
    }

    /// Names of the files with rows or strings in this profile, sorted.
    pub fn file_names(&self) -> Vec<&str> {
        let sites = self.rows.iter().map(|row| self.frame(row.site as usize).file);
        let strings = self.strings_allocated.iter().chain(&self.strings_retained);
        let strings = strings.flat_map(|row| row.locations.iter().map(|location| location.0));
        distinct(sites.chain(strings), &self.files)
    }

    /// Names of the classes with rows in this profile, sorted.
    pub fn class_names(&self) -> Vec<&str> {
        distinct(self.rows.iter().map(|row| row.class), &self.classes)
    }

    /// The part of this profile with sites in `files` and objects of `classes`, by the names from [`Profile::file_names`] and
    /// [`Profile::class_names`]; `None` selects all.
    ///
    /// Strings are selected by the file that allocated them, and only if the class `String` is selected.
    pub fn filter(&self, files: Option<&[String]>, classes: Option<&[String]>) -> Profile {
        let keep_file = kept(&self.files, files);
        let keep_class = kept(&self.classes, classes);
        let strings = classes.is_none_or(|classes| classes.iter().any(|class| class == "String"));
        let keep_strings = |rows: &[StringRow]| -> Vec<StringRow> {
            if strings {
                rows.iter().filter_map(|row| filter_string(row, &keep_file)).collect()
            } else {
                Vec::new()
            }
        };
        let rows = self.rows.iter().filter(|row| {
            keep_class[row.class as usize] && keep_file[self.frame(row.site as usize).file as usize]
        });
        Profile {
            meta: self.meta.clone(),
            files: self.files.clone(),
            frames: self.frames.clone(),
            stacks: self.stacks.clone(),
            classes: self.classes.clone(),
            rows: rows.cloned().collect(),
            strings_allocated: keep_strings(&self.strings_allocated),
            strings_retained: keep_strings(&self.strings_retained),
        }
    }

    /// The whole profile with all names resolved.
    pub fn to_report(&self) -> Report {
        Report {
            meta: self.meta.clone(),
            totals: self.totals(),
            sites: self.sites(Sort::Memory, None),
            strings: Strings {
                allocated: self.strings(Kind::Allocated, None),
                retained: self.strings(Kind::Retained, None),
            },
        }
    }

    /// [`Profile::to_report`] as JSON: `meta`, `totals`, `sites`, `strings`.
    pub fn to_json_value(&self) -> serde_json::Value {
        serde_json::to_value(self.to_report()).expect("a report has only keys that are strings")
    }
}

/// The names of `ids`, each once, in order.
fn distinct(ids: impl Iterator<Item = u32>, names: &[String]) -> Vec<&str> {
    let ids: FxHashSet<u32> = ids.collect();
    let mut names: Vec<&str> = ids.into_iter().map(|id| named(&names[id as usize])).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// For each of `names`, whether it is wanted.
fn kept(names: &[String], wanted: Option<&[String]>) -> Vec<bool> {
    let Some(wanted) = wanted else {
        return vec![true; names.len()];
    };
    let wanted: FxHashSet<&str> = wanted.iter().map(String::as_str).collect();
    names
        .iter()
        .map(|name| wanted.contains(named(name)) || wanted.contains(name.as_str()))
        .collect()
}

/// `row` with only the locations in selected files.
fn filter_string(row: &StringRow, keep_file: &[bool]) -> Option<StringRow> {
    let locations = row.locations.iter().filter(|location| keep_file[location.0 as usize]);
    let locations: Vec<(u32, u32, u64)> = locations.copied().collect();
    let objects: u64 = locations.iter().map(|location| location.2).sum();
    (objects > 0).then(|| StringRow { value: row.value.clone(), objects, locations })
}
