//! Profiles from the recorder's data.

use rustc_hash::FxHashMap;

use super::Recorder;
use super::profile_builder::ProfileBuilder;
use crate::cells::{Cell, CellId};
use crate::profile::{Amount, Meta, Profile, SiteRow, StringRow};
use crate::sessions::{SegmentId, SessionId};
use crate::sites::SiteId;
use crate::string_values::StringCounts;

/// Live objects of each cell and their memsizes, as found on the heap.
#[derive(Debug, Default)]
pub struct Survivors {
    /// Index is the cell's number.
    pub(super) amounts: Vec<Amount>,
    pub(super) strings: FxHashMap<SegmentId, StringCounts>,
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

    /// The results of a session, as plain data.
    pub fn profile(&self, session: SessionId, survivors: &Survivors, meta: Meta) -> Profile {
        let mut builder = ProfileBuilder::new(&self.sites);
        // Frames of two epochs may have the same text, so rows are distinguished by text.
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
