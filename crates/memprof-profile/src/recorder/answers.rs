//! What the recorder is asked: live objects by place, and profiles.

use rustc_hash::FxHashMap;

use super::Recorder;
use super::builder::ProfileBuilder;
use crate::cells::{Cell, CellId};
use crate::group::NO_NAME;
use crate::profile::{Amount, Meta, Profile, SiteRow, StringRow};
use crate::sessions::{SegmentId, SessionId};
use crate::sites::SiteId;
use crate::strings::StringCounts;

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

impl Recorder {
    fn cells_of(&self, session: SessionId) -> impl Iterator<Item = (CellId, &Cell, u64)> + '_ {
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
        let mut counts: FxHashMap<(&str, u32, &str), u64> = FxHashMap::default();
        for (_, cell, scale) in self
            .cells_of(session)
            .filter(|(_, cell, _)| cell.live() > 0)
        {
            let Some(site) = self.sites.get(cell.site) else {
                continue;
            };
            let (file, line) = self.sites.location(site.place);
            let file = if file.is_empty() { NO_NAME } else { file };
            *counts
                .entry((file, line, self.sites.class_name(site.class)))
                .or_default() += cell.live() * scale;
        }
        let mut rows: Vec<StatsRow> = (counts.into_iter())
            .map(|((file, line, class), objects)| StatsRow {
                objects,
                file: file.into(),
                line,
                class: class.into(),
            })
            .collect();
        rows.sort_unstable_by(|a, b| {
            b.objects
                .cmp(&a.objects)
                .then_with(|| (&a.file, a.line, &a.class).cmp(&(&b.file, b.line, &b.class)))
        });
        rows
    }

    /// What a session saw, as plain data.
    pub fn profile(&self, session: SessionId, survivors: &Survivors, meta: Meta) -> Profile {
        let mut builder = ProfileBuilder::new(&self.sites);
        let mut rows: FxHashMap<SiteId, SiteRow> = FxHashMap::default();
        for (id, cell, scale) in self.cells_of(session) {
            let Some(site) = self.sites.get(cell.site) else {
                continue;
            };
            let row = rows.entry(cell.site).or_insert_with(|| builder.row(site));
            let scaled = |amount: Amount| Amount::new(amount.objects * scale, amount.bytes * scale);
            let retained = scaled(
                survivors
                    .amounts
                    .get(id.0 as usize)
                    .copied()
                    .unwrap_or_default(),
            );
            let freed = scaled(cell.died);
            row.retained.add(retained);
            row.freed.add(freed);
            row.allocated.add(Amount::new(
                cell.born.objects * scale,
                freed.bytes + retained.bytes,
            ));
            row.ages.sum += cell.ages.sum * scale;
            row.ages.max = row.ages.max.max(cell.ages.max);
        }
        let mut rows: Vec<(SiteId, SiteRow)> = rows.into_iter().collect();
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
            if let Some(died) = self.strings.get(segment.0 as usize) {
                allocated.merge(died);
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
