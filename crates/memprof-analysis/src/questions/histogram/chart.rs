//! Groups in the order of their keys, few enough for a chart.

use serde::Serialize;

use super::Row;
use super::ranking::Ranking;

/// A bar of a chart.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Bar {
    /// A group.
    One(Row),
    /// Adjacent groups.
    Several {
        /// The range of their keys.
        key: String,
        /// Objects.
        count: u64,
        /// Sum of their memsizes.
        size: u64,
        /// The filter that chooses the same objects.
        r#where: Option<String>,
    },
}

impl Ranking<'_> {
    /// At most `most` bars. Groups with an unknown key have none. `filter` chose the objects.
    pub fn bars(&self, groups: &[u32], most: usize, filter: Option<&str>) -> Vec<Bar> {
        let there = groups.iter().filter(|&&group| self.tallies[group as usize].count > 0);
        let mut ordered: Vec<(u64, u64, u32)> = there
            .filter_map(|&group| {
                let (first, last) = self.keys.raw.keys.get(group as usize)?.range()?;
                Some((first, last, group))
            })
            .collect();
        ordered.sort_unstable();
        let each = ordered.len() / (most + 1) + 1;
        ordered.chunks(each).map(|part| self.bar(part, filter)).collect()
    }

    fn bar(&self, part: &[(u64, u64, u32)], filter: Option<&str>) -> Bar {
        if let [(.., group)] = *part {
            return Bar::One(self.row(group));
        }
        let tallies = || part.iter().map(|&(.., group)| &self.tallies[group as usize]);
        let first = part.first().map_or(0, |&(first, ..)| first);
        let last = part.last().map_or(0, |&(_, last, _)| last);
        Bar::Several {
            key: format!("{first}..{last}"),
            count: tallies().map(|tally| tally.count).sum(),
            size: tallies().map(|tally| tally.size).sum(),
            r#where: self.keys.by.field().map(|field| {
                let range = format!("{field} in {first}..{last}");
                match filter {
                    Some(filter) => format!("{range} and ({filter})"),
                    None => range,
                }
            }),
        }
    }
}
