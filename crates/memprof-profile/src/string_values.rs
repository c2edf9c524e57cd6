//! Values of strings, counted by the site that allocated them.

use rustc_hash::FxHashMap;

use crate::profile::StringRow;
use crate::sites::SiteId;

/// Bytes recorded of a value; longer strings are counted by their beginning.
pub const VALUE_LIMIT: usize = 200;

/// Maximum number of distinct values in one table, so that the profile of a program with more doesn't grow without bound.
/// Strings with values beyond the limit are not listed.
pub const DISTINCT_LIMIT: usize = 100_000;

type Sites = Vec<(SiteId, u64)>;

/// Numbers of strings allocated, by value and site.
#[derive(Clone, Debug, Default)]
pub struct StringCounts {
    values: FxHashMap<Box<[u8]>, Sites>,
}

impl StringCounts {
    /// Counts `n` strings of this value.
    pub fn add(&mut self, value: &[u8], site: SiteId, n: u64) {
        let value = value.get(..VALUE_LIMIT).unwrap_or(value);
        let full = self.values.len() >= DISTINCT_LIMIT;
        match self.values.get_mut(value) {
            Some(sites) => add_to(sites, site, n),
            None if full => {}
            None => {
                self.values.insert(value.into(), vec![(site, n)]);
            }
        }
    }

    /// Adds the counts of another table.
    pub fn merge(&mut self, other: &StringCounts) {
        for (value, sites) in &other.values {
            for (site, n) in sites {
                self.add(value, *site, *n);
            }
        }
    }

    /// Rows, most first, ties by value. `location` returns the file (as a number) and the line of a site.
    pub fn rows(
        &self,
        scale: u64,
        mut location: impl FnMut(SiteId) -> (u32, u32),
    ) -> Vec<StringRow> {
        let mut rows: Vec<StringRow> = (self.values.iter())
            .map(|(value, sites)| {
                let mut by_location: FxHashMap<(u32, u32), u64> = FxHashMap::default();
                for (site, n) in sites {
                    *by_location.entry(location(*site)).or_default() += n * scale;
                }
                let mut locations: Vec<(u32, u32, u64)> =
                    by_location.into_iter().map(|((file, line), n)| (file, line, n)).collect();
                locations
                    .sort_unstable_by_key(|(file, line, n)| (std::cmp::Reverse(*n), *file, *line));
                let objects = locations.iter().map(|(_, _, n)| n).sum();
                StringRow { value: printable(value), objects, locations }
            })
            .collect();
        rows.sort_unstable_by(|a, b| b.objects.cmp(&a.objects).then_with(|| a.value.cmp(&b.value)));
        rows
    }
}

fn add_to(sites: &mut Sites, site: SiteId, n: u64) {
    match sites.iter_mut().find(|(other, _)| *other == site) {
        Some((_, count)) => *count += n,
        None => sites.push((site, n)),
    }
}

/// The bytes as UTF-8 text; invalid bytes are written as `\xNN`. A character cut off at the end is omitted.
pub fn printable(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        let cut_off = bytes.len() == VALUE_LIMIT
            && chunk.invalid().as_ptr_range().end == bytes.as_ptr_range().end;
        if !cut_off {
            chunk.invalid().iter().for_each(|byte| text.push_str(&format!("\\x{byte:02X}")));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_by_value_and_location() {
        let mut counts = StringCounts::default();
        counts.add(b"abc", SiteId(0), 2);
        counts.add(b"abc", SiteId(1), 3);
        counts.add(b"z", SiteId(1), 9);
        let mut other = StringCounts::default();
        other.add(b"abc", SiteId(1), 5);
        counts.merge(&other);
        let rows = counts.rows(10, |site| (site.0, 7));
        assert_eq!(
            rows[0],
            StringRow {
                value: "abc".into(),
                objects: 100,
                locations: vec![(1, 7, 80), (0, 7, 20)]
            }
        );
        assert_eq!(rows[1].objects, 90);
    }

    #[test]
    fn writes_what_is_no_text() {
        assert_eq!(printable(b"a\xff\xc3\xa9"), "a\\xFF\u{e9}");
        let mut long = vec![b'x'; VALUE_LIMIT - 1];
        long.push(0xc3);
        assert_eq!(printable(&long).len(), VALUE_LIMIT - 1);
    }

    #[test]
    fn stops_at_the_limit_of_values() {
        let mut counts = StringCounts::default();
        for n in 0..DISTINCT_LIMIT as u64 + 10 {
            counts.add(&n.to_le_bytes(), SiteId(0), 1);
        }
        assert_eq!(counts.rows(1, |_| (0, 0)).len(), DISTINCT_LIMIT);
    }
}
