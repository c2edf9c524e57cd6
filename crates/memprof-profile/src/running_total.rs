//! The total of consecutive profiles of one process, in bounded memory.
//!
//! Readers of continuous profiles expect what Go serves: everything allocated since the process started, and what is live now.

use rustc_hash::FxHashMap;

use crate::group::Names;
use crate::profile::{Amount, Frame, Profile, SiteRow, StackNode};

/// The name of the site that stands for all sites beyond the limit.
pub const OTHER: &str = "(other)";

/// The sum of `total` and `next`: allocations add up, and `next` says what is live.
///
/// Of more than `limit` sites, those seen first are kept, so that no count of a site ever decreases. The rest is one site,
/// [`OTHER`].
pub fn add(total: &Profile, next: &Profile, limit: usize) -> Profile {
    let mut sum = total.clone();
    for row in &mut sum.rows {
        row.retained = Amount::default();
    }
    append(&mut sum, next);
    sum.meta = next.meta.clone();
    sum.meta.started_at = total.meta.started_at;
    sum.meta.duration = next.meta.started_at + next.meta.duration - total.meta.started_at;
    sum.meta.gc_count = total.meta.gc_count + next.meta.gc_count;
    bounded(&sum, limit)
}

/// `profile` with at most `limit` sites, as [`add`] keeps them.
pub fn bounded(profile: &Profile, limit: usize) -> Profile {
    let rows = Names::new(profile).rows();
    let other = |row: &SiteRow| {
        let frame = &profile.frames[profile.stacks[row.site as usize].frame as usize];
        frame.method == OTHER
    };
    let mut compact = Compact::new(profile);
    let mut kept = 0;
    for row in &rows {
        if kept < limit && !other(row) {
            kept += 1;
            compact.keep(row);
        } else {
            compact.fold(row);
        }
    }
    compact.finish()
}

/// Appends the tables and rows of `other`. Equal names have two ids then, which [`Names`] merges.
pub(crate) fn append(profile: &mut Profile, other: &Profile) {
    let (files, frames) = (profile.files.len() as u32, profile.frames.len() as u32);
    let (stacks, classes) = (profile.stacks.len() as u32, profile.classes.len() as u32);
    profile.files.extend_from_slice(&other.files);
    profile.classes.extend_from_slice(&other.classes);
    profile.frames.extend(
        other.frames.iter().map(|frame| Frame { file: frame.file + files, ..frame.clone() }),
    );
    profile.stacks.extend(other.stacks.iter().map(|node| StackNode {
        parent: node.parent.map(|parent| parent + stacks),
        frame: node.frame + frames,
        line: node.line,
    }));
    profile.rows.extend(other.rows.iter().map(|row| SiteRow {
        site: row.site + stacks,
        stack: row.stack + stacks,
        class: row.class + classes,
        ..row.clone()
    }));
}

/// A copy of a profile with only the names that its rows use.
struct Compact<'p> {
    from: &'p Profile,
    to: Profile,
    files: FxHashMap<u32, u32>,
    frames: FxHashMap<u32, u32>,
    stacks: FxHashMap<u32, u32>,
    classes: FxHashMap<u32, u32>,
    other: Option<SiteRow>,
}

impl<'p> Compact<'p> {
    fn new(from: &'p Profile) -> Self {
        Compact {
            from,
            to: Profile { meta: from.meta.clone(), ..Profile::default() },
            files: FxHashMap::default(),
            frames: FxHashMap::default(),
            stacks: FxHashMap::default(),
            classes: FxHashMap::default(),
            other: None,
        }
    }

    fn keep(&mut self, row: &SiteRow) {
        let row = SiteRow {
            stack: self.stack(row.stack),
            site: self.stack(row.site),
            class: self.class(row.class),
            ..row.clone()
        };
        self.to.rows.push(row);
    }

    /// Counts `row` without its names.
    fn fold(&mut self, row: &SiteRow) {
        let Some(other) = &mut self.other else {
            self.other = Some(row.clone());
            return;
        };
        other.allocated.add(row.allocated);
        other.retained.add(row.retained);
        other.freed.add(row.freed);
        other.ages.add(row.ages);
        other.peak.add(row.peak);
    }

    fn finish(mut self) -> Profile {
        if let Some(row) = self.other.take() {
            let to = &mut self.to;
            to.files.push(String::new());
            to.classes.push(OTHER.to_owned());
            let file = to.files.len() as u32 - 1;
            to.frames.push(Frame { file, method: OTHER.to_owned(), first_line: 0, native: false });
            to.stacks.push(StackNode { parent: None, frame: to.frames.len() as u32 - 1, line: 0 });
            let stack = to.stacks.len() as u32 - 1;
            let class = to.classes.len() as u32 - 1;
            to.rows.push(SiteRow { stack, site: stack, class, ..row });
        }
        self.to
    }

    fn class(&mut self, id: u32) -> u32 {
        let Compact { from, to, classes, .. } = self;
        *classes.entry(id).or_insert_with(|| push(&mut to.classes, &from.classes[id as usize]))
    }

    fn file(&mut self, id: u32) -> u32 {
        let Compact { from, to, files, .. } = self;
        *files.entry(id).or_insert_with(|| push(&mut to.files, &from.files[id as usize]))
    }

    fn frame(&mut self, id: u32) -> u32 {
        if let Some(known) = self.frames.get(&id) {
            return *known;
        }
        let frame = &self.from.frames[id as usize];
        let copy = Frame { file: self.file(frame.file), ..frame.clone() };
        let new = push(&mut self.to.frames, &copy);
        self.frames.insert(id, new);
        new
    }

    /// Callers come before their callees, as the table requires. Stacks may be deep, so there is no recursion.
    fn stack(&mut self, id: u32) -> u32 {
        let mut missing = Vec::new();
        let mut at = Some(id);
        while let Some(node) = at.filter(|node| !self.stacks.contains_key(node)) {
            missing.push(node);
            at = self.from.stacks[node as usize].parent;
        }
        for node in missing.into_iter().rev() {
            let StackNode { parent, frame, line } = self.from.stacks[node as usize];
            let parent = parent.map(|parent| self.stacks[&parent]);
            let copy = StackNode { parent, frame: self.frame(frame), line };
            let new = push(&mut self.to.stacks, &copy);
            self.stacks.insert(node, new);
        }
        self.stacks[&id]
    }
}

fn push<T: Clone>(table: &mut Vec<T>, entry: &T) -> u32 {
    table.push(entry.clone());
    table.len() as u32 - 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export::sample::profile;
    use crate::group::{By, Kind, Sort};

    fn classes(profile: &Profile, kind: Kind) -> Vec<(String, u64, u64)> {
        let rows = profile.group(kind, By::Class, Sort::Memory, None);
        rows.into_iter().map(|row| (row.label, row.amount.objects, row.amount.bytes)).collect()
    }

    #[test]
    fn allocations_add_up_and_the_last_one_says_what_is_live() {
        let mut next = profile();
        next.meta.started_at = 1_700_000_010.5;
        for row in &mut next.rows {
            row.retained = Amount::new(row.retained.objects.min(1), row.retained.bytes.min(40));
        }
        let sum = add(&profile(), &next, 100);
        assert_eq!(
            classes(&sum, Kind::Allocated),
            classes(&profile(), Kind::Allocated)
                .into_iter()
                .map(|(name, objects, bytes)| (name, objects * 2, bytes * 2))
                .collect::<Vec<_>>()
        );
        assert_eq!(classes(&sum, Kind::Retained), classes(&next, Kind::Retained));
        assert_eq!(sum.meta.started_at, 1_700_000_000.5);
        assert_eq!(sum.meta.duration, 10.25);
    }

    #[test]
    fn the_tables_do_not_grow_with_equal_profiles() {
        let mut sum = bounded(&profile(), 100);
        let sizes = |profile: &Profile| {
            [
                profile.files.len(),
                profile.frames.len(),
                profile.stacks.len(),
                profile.classes.len(),
                profile.rows.len(),
            ]
        };
        let first = sizes(&sum);
        for _ in 0..50 {
            sum = add(&sum, &profile(), 100);
        }
        assert_eq!(sizes(&sum), first);
        assert_eq!(sum.totals().allocated.objects, 51 * profile().totals().allocated.objects);
    }

    #[test]
    fn sites_beyond_the_limit_are_one_and_nothing_is_lost() {
        let mut sum = bounded(&profile(), 2);
        for number in 0..20 {
            let mut next = profile();
            next.classes[0] = format!("Class{number}");
            sum = add(&sum, &next, 2);
        }
        assert_eq!(sum.rows.len(), 3);
        assert!(sum.stacks.len() < 10);
        assert_eq!(sum.totals().allocated.objects, 21 * profile().totals().allocated.objects);
        assert_eq!(sum.totals().retained.objects, profile().totals().retained.objects);
        let other = classes(&sum, Kind::Allocated).into_iter().find(|row| row.0 == OTHER);
        assert!(other.is_some());
    }

    #[test]
    fn an_empty_profile_is_neutral() {
        let sum = add(&Profile::default(), &profile(), 100);
        assert_eq!(sum.totals(), profile().totals());
        let sum = add(&profile(), &Profile::default(), 100);
        assert_eq!(sum.totals().allocated, profile().totals().allocated);
        assert_eq!(sum.totals().retained, Amount::default());
    }
}
