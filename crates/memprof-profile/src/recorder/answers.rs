//! What the recorder is asked: live objects by place, and profiles.

use std::cmp::Reverse;

use rustc_hash::FxHashMap;

use super::Recorder;
use super::profile_builder::ProfileBuilder;
use crate::cells::{Cell, CellId};
use crate::group::NO_NAME;
use crate::printable;
use crate::profile::{Amount, Meta, Profile, SiteRow, StringRow};
use crate::sessions::{SegmentId, SessionId};
use crate::sites::{ClassId, FrameId, SiteId};
use crate::string_values::StringCounts;

/// What is alive of each cell, as found on the heap: objects, and their memsizes.
#[derive(Debug, Default)]
pub struct Survivors {
    /// Index is the cell's number.
    pub(super) amounts: Vec<Amount>,
    pub(super) strings: FxHashMap<SegmentId, StringCounts>,
}

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

/// Names by number, and the place of each in their order.
#[derive(Default)]
struct Ranks<'a> {
    numbers: FxHashMap<&'a str, u32>,
    names: Vec<&'a str>,
}

impl<'a> Ranks<'a> {
    fn number(&mut self, name: &'a str) -> u32 {
        *self.numbers.entry(name).or_insert_with(|| {
            self.names.push(name);
            self.names.len() as u32 - 1
        })
    }

    /// The rank of each number, and the names by rank.
    fn ranks(self) -> (Vec<u32>, Vec<&'a str>) {
        let mut order: Vec<(&str, usize)> = self.names.into_iter().zip(0..).collect();
        order.sort_unstable();
        let mut ranks = vec![0; order.len()];
        for (rank, (_, number)) in (0..).zip(&order) {
            ranks[*number] = rank;
        }
        (ranks, order.into_iter().map(|(name, _)| name).collect())
    }
}

impl Recorder {
    pub(super) fn cells_of(
        &self,
        session: SessionId,
    ) -> impl Iterator<Item = (CellId, &Cell, u64)> + '_ {
        self.sessions.segments_of(session).flat_map(move |segment| {
            let scale = u64::from(
                self.sessions
                    .get(segment)
                    .map_or(1, |segment| segment.interval),
            );
            let cells = self
                .by_site
                .get(segment.0 as usize)
                .into_iter()
                .flat_map(|cells| cells.values());
            cells.filter_map(move |id| Some((*id, self.cells.get(*id)?, scale)))
        })
    }

    /// Live objects of a session by file, line and class: most first, ties by place.
    pub fn stats(&self, session: SessionId) -> Vec<StatsRow> {
        (self.ranked(session, usize::MAX).into_iter())
            .map(|(objects, (file, line, class))| StatsRow {
                objects,
                file: file.into(),
                line,
                class: class.into(),
            })
            .collect()
    }

    /// [`Recorder::stats`] as text: `heading`, and the first `limit` rows, a line each.
    pub fn stats_text(&self, session: SessionId, limit: Option<usize>, heading: &str) -> String {
        let rows = self.ranked(session, limit.unwrap_or(usize::MAX));
        let mut text = String::with_capacity(heading.len() + rows.len() * 128);
        text.push_str(heading);
        // A server does this for each request, and the machinery of `write!` would take half of the time.
        let mut number = itoa::Buffer::new();
        for (objects, (file, line, class)) in rows {
            let objects = number.format(objects);
            text.push_str(&"       "[objects.len().min(7)..]);
            text.push_str(objects);
            text.push(' ');
            printable::push(&mut text, file);
            text.push(':');
            text.push_str(number.format(line));
            text.push(':');
            printable::push(&mut text, class);
            text.push('\n');
        }
        text
    }

    /// Names are long and much alike: files and classes are ranked once, and rows compared by ranks.
    fn ranked(&self, session: SessionId, limit: usize) -> Vec<(u64, (&str, u32, &str))> {
        let (mut files, mut classes) = (Ranks::default(), Ranks::default());
        let mut file_of: FxHashMap<FrameId, u32> = FxHashMap::default();
        let mut class_of: FxHashMap<ClassId, u32> = FxHashMap::default();
        let mut counts: FxHashMap<(u32, u32, u32), u64> = FxHashMap::default();
        let segments = self.sessions.segments_of(session);
        let cells = segments.filter_map(|segment| self.by_site.get(segment.0 as usize));
        counts.reserve(cells.map(FxHashMap::len).sum());
        for (_, cell, scale) in (self.cells_of(session)).filter(|(_, cell, _)| cell.live() > 0) {
            let Some(site) = self.sites.get(cell.site) else {
                continue;
            };
            let Some(node) = self.sites.node(site.place) else {
                continue;
            };
            let file = *file_of.entry(node.frame).or_insert_with(|| {
                let key = self.sites.frame_key(node.frame);
                let file = key.map_or("", |key| key.file.as_str());
                files.number(if file.is_empty() { NO_NAME } else { file })
            });
            let class = *(class_of.entry(site.class))
                .or_insert_with(|| classes.number(self.sites.class_name(site.class)));
            *counts.entry((file, node.line, class)).or_default() += cell.live() * scale;
        }
        let ((file_ranks, files), (class_ranks, classes)) = (files.ranks(), classes.ranks());
        let counts = counts.into_iter().map(|((file, line, class), objects)| {
            let (file, class) = (file_ranks[file as usize], class_ranks[class as usize]);
            (Reverse(objects), file, line, class)
        });
        let mut rows: Vec<(Reverse<u64>, u32, u32, u32)> = counts.collect();
        if limit < rows.len() {
            rows.select_nth_unstable(limit);
            rows.truncate(limit);
        }
        rows.sort_unstable();
        let names = |(Reverse(objects), file, line, class): (Reverse<u64>, u32, u32, u32)| {
            let place = (files[file as usize], line, classes[class as usize]);
            (objects, place)
        };
        rows.into_iter().map(names).collect()
    }

    /// What a session saw, as plain data.
    pub fn profile(&self, session: SessionId, survivors: &Survivors, meta: Meta) -> Profile {
        let mut builder = ProfileBuilder::new(&self.sites);
        // Frames of two eras may read the same, so rows are distinguished by their text.
        let mut rows: FxHashMap<(u32, u32, u32), (SiteId, SiteRow)> = FxHashMap::default();
        let mut peak = self
            .peak(session)
            .map(|peak| peak.sites.clone())
            .unwrap_or_default();
        for (id, cell, scale) in self.cells_of(session) {
            let Some(site) = self.sites.get(cell.site) else {
                continue;
            };
            let empty = builder.row(site);
            let (first, row) =
                (rows.entry((empty.site, empty.stack, empty.class))).or_insert((cell.site, empty));
            *first = cell.site.min(*first);
            let scaled = |amount: Amount| Amount::new(amount.objects * scale, amount.bytes * scale);
            let retained = scaled(
                survivors
                    .amounts
                    .get(id.0 as usize)
                    .copied()
                    .unwrap_or_default(),
            );
            let freed = scaled(cell.freed);
            row.retained.add(retained);
            row.freed.add(freed);
            row.allocated.add(Amount::new(
                cell.allocated * scale,
                freed.bytes + retained.bytes,
            ));
            row.ages.sum += cell.ages.sum * scale;
            row.ages.max = row.ages.max.max(cell.ages.max);
            row.peak.add(peak.remove(&cell.site).unwrap_or_default());
        }
        let mut rows: Vec<(SiteId, SiteRow)> = rows.into_values().collect();
        rows.sort_unstable_by_key(|(site, _)| *site);
        let (allocated, retained) = self.string_rows(session, survivors, &mut builder);
        Profile {
            meta,
            rows: rows.into_iter().map(|(_, row)| row).collect(),
            strings_allocated: allocated,
            strings_retained: retained,
            ..builder.finish()
        }
    }

    fn string_rows(
        &self,
        session: SessionId,
        survivors: &Survivors,
        builder: &mut ProfileBuilder,
    ) -> (Vec<StringRow>, Vec<StringRow>) {
        let (mut allocated, mut retained, mut scale) =
            (StringCounts::default(), StringCounts::default(), 1);
        for segment in self.sessions.segments_of(session) {
            scale = self
                .sessions
                .get(segment)
                .map_or(scale, |segment| u64::from(segment.interval));
            if let Some(freed) = self.strings.get(segment.0 as usize) {
                allocated.merge(freed);
            }
            if let Some(alive) = survivors.strings.get(&segment) {
                allocated.merge(alive);
                retained.merge(alive);
            }
        }
        let mut location = |site| builder.location(site);
        (
            allocated.rows(scale, &mut location),
            retained.rows(scale, &mut location),
        )
    }
}
