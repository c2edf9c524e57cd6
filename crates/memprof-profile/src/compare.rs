//! Compares two reports: the effect of a code change on totals, lines, classes and gems.
//!
//! A side is one report, or several of the same program. With several, only a repeatable difference counts as a change: every
//! run of one side is above, or below, every run of the other.

mod matching;
mod side;

use rustc_hash::FxHashMap;
use serde::Serialize;

pub use matching::Match;
use matching::Pair;
pub use side::{MEASURES, Side};
use side::{Measures, Site};

/// One measure on both sides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Change {
    /// The earlier run closest to the later ones; a number in both ranges if they overlap.
    pub before: u64,
    /// The later run closest to the earlier ones.
    pub after: u64,
    /// The repeatable difference.
    pub change: i64,
}

/// All measures of a line, a class, a gem or the total on both sides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Changes {
    /// Objects allocated.
    pub allocated_objects: Change,
    /// Their bytes.
    pub allocated_bytes: Change,
    /// Live objects at the end.
    pub retained_objects: Change,
    /// Their bytes.
    pub retained_bytes: Change,
}

/// A line that differs between the sides.
#[derive(Clone, Debug, Serialize)]
pub struct LineChange {
    /// The path, relative to the program's directory or the gem; from the side after, if the line is there.
    pub file: String,
    /// Whether the file belongs to the program rather than to a gem or to Ruby.
    pub own: bool,
    /// The line.
    pub line: u32,
    /// Name of the method.
    pub method: String,
    /// Class of the objects.
    pub class: String,
    /// The gem.
    pub gem: String,
    /// Text of the line, if the report has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Its location before, if it moved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub was: Option<String>,
    /// How the two lines were matched.
    #[serde(rename = "match")]
    pub matched: Match,
    /// The numbers.
    #[serde(flatten)]
    pub changes: Changes,
}

/// A class or a gem that differs between the sides.
#[derive(Clone, Debug, Serialize)]
pub struct GroupChange {
    /// Its name.
    pub name: String,
    /// The numbers.
    #[serde(flatten)]
    pub changes: Changes,
}

/// Number of lines matched in one way.
#[derive(Clone, Debug, Serialize)]
pub struct Matches {
    /// The way.
    #[serde(rename = "match")]
    pub matched: Match,
    /// Lines, counted per class of objects.
    pub lines: usize,
}

/// A reason why the numbers of two sides may differ.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "remark", rename_all = "snake_case")]
pub enum Warning {
    /// A setting differs.
    Differs {
        /// `ruby`, `sample` or `command`.
        setting: &'static str,
        /// Its value before.
        before: String,
        /// Its value after.
        after: String,
    },
    /// Objects were sampled.
    Sampled,
    /// A report is incomplete.
    IncompleteReport {
        /// `before` or `after`.
        report: &'static str,
    },
}

/// Two sides compared.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// Runs on each side.
    pub runs: [usize; 2],
    /// All objects, except internal ones.
    pub totals: Changes,
    /// Internal objects of the VM, which are not part of lines, classes and gems.
    pub internal: Changes,
    /// Lines that changed, largest change first.
    pub lines: Vec<LineChange>,
    /// Classes that changed, largest change first.
    pub classes: Vec<GroupChange>,
    /// Gems that changed, largest change first.
    pub gems: Vec<GroupChange>,
    /// How lines were matched.
    pub matches: Vec<Matches>,
    /// Other reasons why the numbers of the two may differ.
    pub warnings: Vec<Warning>,
}

/// Compares two sides. Changes are sorted by `measure`, an index into [`MEASURES`]: increases first, largest first, then
/// decreases. With `internal`, the VM's own objects count like any other.
pub fn compare(before: &Side, after: &Side, measure: usize, internal: bool) -> Comparison {
    let runs = [before.runs, after.runs];
    let shown = |site: &&Site| internal || !site.internal();
    let (old, new): (Vec<&Site>, Vec<&Site>) =
        (before.sites.iter().filter(shown).collect(), after.sites.iter().filter(shown).collect());
    let hidden = |side: &Side| sum(side, |site| !internal && site.internal());
    let pairs = matching::pairs(&old, &new, before.sources && after.sources);
    Comparison {
        runs,
        totals: changes(&sum(before, |site| shown(&site)), &sum(after, |site| shown(&site))),
        internal: changes(&hidden(before), &hidden(after)),
        matches: matches(&pairs),
        lines: lines(&pairs, runs, measure),
        classes: groups(&old, &new, runs, measure, |site| &site.class),
        gems: groups(&old, &new, runs, measure, |site| &site.gem),
        warnings: warnings(before, after),
    }
}

fn sum(side: &Side, wanted: impl Fn(&Site) -> bool) -> Vec<Measures> {
    let mut sum = vec![Measures::default(); side.runs];
    for site in side.sites.iter().filter(|site| wanted(site)) {
        add(&mut sum, &site.by_run);
    }
    sum
}

fn add(sum: &mut [Measures], other: &[Measures]) {
    for (sum, other) in sum.iter_mut().zip(other) {
        for (sum, other) in sum.iter_mut().zip(other) {
            *sum += other;
        }
    }
}

/// The numbers of both sides, one entry a run.
fn changes(before: &[Measures], after: &[Measures]) -> Changes {
    let of = |measure: usize| {
        let range = |runs: &[Measures]| {
            let values = runs.iter().map(|run| run[measure]);
            (values.clone().min().unwrap_or(0), values.max().unwrap_or(0))
        };
        let ((low, high), (new_low, new_high)) = (range(before), range(after));
        let (before, after) = if new_low > high {
            (high, new_low)
        } else if new_high < low {
            (low, new_high)
        } else {
            (low.max(new_low), low.max(new_low))
        };
        Change { before, after, change: after as i64 - before as i64 }
    };
    Changes {
        allocated_objects: of(0),
        allocated_bytes: of(1),
        retained_objects: of(2),
        retained_bytes: of(3),
    }
}

impl Changes {
    fn each(&self) -> [i64; 4] {
        [
            self.allocated_objects.change,
            self.allocated_bytes.change,
            self.retained_objects.change,
            self.retained_bytes.change,
        ]
    }

    fn any(&self) -> bool {
        self.each().iter().any(|&change| change != 0)
    }

    /// Increases before decreases, largest first; ties by the other measures.
    fn order(&self, measure: usize) -> (bool, std::cmp::Reverse<u64>, [std::cmp::Reverse<i64>; 4]) {
        let change = self.each()[measure];
        (change < 0, std::cmp::Reverse(change.unsigned_abs()), self.each().map(std::cmp::Reverse))
    }
}

fn lines(pairs: &[Pair<'_>], runs: [usize; 2], measure: usize) -> Vec<LineChange> {
    let none = runs.map(|runs| vec![Measures::default(); runs]);
    let mut lines: Vec<LineChange> = pairs
        .iter()
        .filter_map(|pair| {
            let by_run = |site: Option<&Site>, side: usize| match site {
                Some(site) => site.by_run.clone(),
                None => none[side].clone(),
            };
            let changes = changes(&by_run(pair.before, 0), &by_run(pair.after, 1));
            let site = pair.after.or(pair.before)?;
            changes.any().then(|| LineChange {
                file: site.file.clone(),
                own: site.own,
                line: site.line,
                method: site.method.clone(),
                class: site.class.clone(),
                gem: site.gem.clone(),
                source: site.source.clone(),
                was: pair.was(),
                matched: pair.matched,
                changes,
            })
        })
        .collect();
    lines.sort_by(|a, b| {
        let place = |line: &LineChange| (line.file.clone(), line.line, line.class.clone());
        (a.changes.order(measure).cmp(&b.changes.order(measure)))
            .then_with(|| place(a).cmp(&place(b)))
    });
    lines
}

fn groups<'s>(
    before: &[&'s Site],
    after: &[&'s Site],
    runs: [usize; 2],
    measure: usize,
    name: impl Fn(&'s Site) -> &'s str,
) -> Vec<GroupChange> {
    let mut groups: FxHashMap<&str, [Vec<Measures>; 2]> = FxHashMap::default();
    for (side, sites) in [before, after].into_iter().enumerate() {
        for &site in sites {
            let sums = groups
                .entry(name(site))
                .or_insert_with(|| runs.map(|runs| vec![Measures::default(); runs]));
            add(&mut sums[side], &site.by_run);
        }
    }
    let mut groups: Vec<GroupChange> = groups
        .into_iter()
        .map(|(name, [before, after])| GroupChange {
            name: name.to_owned(),
            changes: changes(&before, &after),
        })
        .filter(|group| group.changes.any())
        .collect();
    groups.sort_unstable_by(|a, b| {
        (a.changes.order(measure).cmp(&b.changes.order(measure))).then_with(|| a.name.cmp(&b.name))
    });
    groups
}

fn matches(pairs: &[Pair<'_>]) -> Vec<Matches> {
    let ways = Match::ALL.into_iter().map(|matched| Matches {
        matched,
        lines: pairs.iter().filter(|pair| pair.matched == matched).count(),
    });
    ways.filter(|way| way.lines > 0).collect()
}

fn warnings(before: &Side, after: &Side) -> Vec<Warning> {
    let differ = |setting, before: String, after: String| {
        (before != after).then_some(Warning::Differs { setting, before, after })
    };
    let incomplete =
        |report, side: &Side| side.incomplete.then_some(Warning::IncompleteReport { report });
    let warnings = [
        differ("ruby", before.runtime.clone(), after.runtime.clone()),
        differ("sample", before.sample.to_string(), after.sample.to_string()),
        differ("command", before.command.clone(), after.command.clone()),
        (before.sample > 1 || after.sample > 1).then_some(Warning::Sampled),
        incomplete("before", before),
        incomplete("after", after),
    ];
    warnings.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests;
