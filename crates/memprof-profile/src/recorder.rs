//! The recorder: receives allocations and frees, and returns profiles. One per process.

mod counts;
mod forgetting;
mod generations;
mod live_sites;
mod marks;
mod peak;
mod profile_builder;
mod stats;

use rustc_hash::FxHashMap;

use crate::cells::{Cell, CellId, Cells};
use crate::live::{LiveTable, Record};
use crate::profile::{Amount, Meta, Profile, SiteRow, StringRow};
use crate::sampler::Sampler;
use crate::sessions::{Change, Options, SegmentId, SessionId, Sessions};
use crate::sites::{ClassId, Site, SiteId, Sites};
use crate::string_values::StringCounts;
pub use counts::CountRow;
pub use forgetting::{FORGOTTEN, KEPT_CELLS};
use generations::Generations;
pub use live_sites::{LiveAges, LiveSite, LiveSites};
pub use marks::MarkRow;
use peak::Watch;
pub use peak::{Moment, Peak};
pub(crate) use profile_builder::ProfileBuilder;
use stats::Rows;
pub use stats::StatsRow;

/// All recorded data.
#[derive(Debug)]
pub struct Recorder {
    /// Sessions and their threads.
    pub sessions: Sessions,
    /// Allocation sites.
    pub sites: Sites,
    live: LiveTable,
    /// Cached lines of stats per site.
    rows: Rows,
    cells: Cells,
    /// Cells of each segment by site; index is the segment's number.
    by_site: Vec<FxHashMap<SiteId, CellId>>,
    /// Values of freed strings; index is the segment's number.
    strings: Vec<StringCounts>,
    sampler: Sampler,
    generation: u32,
    /// When generations began, in microseconds since the epoch.
    begun: Generations,
    watches: FxHashMap<SessionId, Watch>,
    /// Number of counters above which dead sites are removed, if more than [`KEPT_CELLS`].
    most_cells: usize,
}

/// Live objects of each cell and their memsizes, as found on the heap.
#[derive(Debug, Default)]
pub struct Survivors {
    /// Index is the cell's number.
    amounts: Vec<Amount>,
    strings: FxHashMap<SegmentId, StringCounts>,
    /// The time of the ages, in microseconds since the epoch, if they are wanted.
    aged_at: Option<u64>,
    /// Index is the cell's number.
    ages: Vec<LiveAges>,
}

impl Default for Recorder {
    fn default() -> Self {
        Recorder::new(1)
    }
}

impl Recorder {
    /// An empty recorder. `seed` chooses the objects to sample.
    pub fn new(seed: u64) -> Self {
        Recorder {
            sessions: Sessions::default(),
            sites: Sites::default(),
            live: LiveTable::new(),
            rows: Rows::default(),
            cells: Cells::default(),
            by_site: Vec::new(),
            strings: Vec::new(),
            sampler: Sampler::new(seed),
            generation: 0,
            begun: Generations::default(),
            watches: FxHashMap::default(),
            most_cells: 0,
        }
    }

    /// Opens a session.
    pub fn open(&mut self, options: Options) -> SessionId {
        let id = self.sessions.open(options);
        self.resample();
        id
    }

    /// Stops recording for a session; it still sees frees.
    pub fn finish(&mut self, id: SessionId) -> bool {
        let finished = self.sessions.finish(id);
        self.resample();
        finished
    }

    /// Closes a session. Data that no other session sees is dropped; with the last session, everything but sites.
    pub fn close(&mut self, id: SessionId) {
        self.watches.remove(&id);
        for change in self.sessions.close(id) {
            match change {
                Change::Joined(segment, target) => self.join(segment, target),
                Change::Retired(segment) => {
                    if let Some(cells) = self.by_site.get_mut(segment.0 as usize) {
                        cells.drain().for_each(|(_, cell)| self.cells.retire(cell));
                    }
                    self.take_strings(segment);
                }
            }
        }
        if self.sessions.is_empty() {
            self.live.clear();
            self.cells.clear();
            self.strings = Vec::new();
            self.begun = Generations::default();
            self.most_cells = 0;
        }
        self.resample();
    }

    /// Drops sites, too, and frees the memory. Only without a session.
    pub fn forget(&mut self) {
        self.sites = Sites::default();
        self.rows = Rows::default();
        self.live = LiveTable::new();
        self.cells = Cells::default();
        self.by_site = Vec::new();
    }

    /// All sessions share one sequence: restarting it with each would choose the same objects in each.
    fn resample(&mut self) {
        self.sampler.set_interval(self.sessions.interval());
    }

    /// Restarts sampling with another sequence: forked processes must not sample the same objects.
    pub fn reseed(&mut self, seed: u64) {
        self.sampler.reseed(seed);
    }

    fn join(&mut self, segment: SegmentId, target: SegmentId) {
        for (site, cell) in self.take_cells(segment) {
            let target = self.cell(target, site);
            self.cells.join(cell, target);
        }
        let strings = self.take_strings(segment);
        self.strings_of(target).merge(&strings);
    }

    fn take_cells(&mut self, segment: SegmentId) -> FxHashMap<SiteId, CellId> {
        self.by_site.get_mut(segment.0 as usize).map(std::mem::take).unwrap_or_default()
    }

    fn take_strings(&mut self, segment: SegmentId) -> StringCounts {
        self.strings.get_mut(segment.0 as usize).map(std::mem::take).unwrap_or_default()
    }

    fn strings_of(&mut self, segment: SegmentId) -> &mut StringCounts {
        let index = segment.0 as usize;
        if self.strings.len() <= index {
            self.strings.resize_with(index + 1, StringCounts::default);
        }
        &mut self.strings[index]
    }

    /// Allocations to skip before the next one to record.
    #[inline]
    pub fn sample_gap(&mut self) -> u32 {
        self.sampler.gap()
    }

    /// The counters of a site in a segment.
    pub fn cell(&mut self, segment: SegmentId, site: SiteId) -> CellId {
        let index = segment.0 as usize;
        if self.by_site.len() <= index {
            self.by_site.resize_with(index + 1, FxHashMap::default);
        }
        let (cells, sites) = (&mut self.cells, &self.sites);
        *self.by_site[index]
            .entry(site)
            .or_insert_with(|| cells.add(segment, site, sites.is_internal(site)))
    }

    /// Records an allocation. `slot_size` is called only if the size does not follow from neighboring objects.
    #[inline(always)]
    pub fn allocated(&mut self, address: u64, cell: CellId, slot_size: impl FnOnce() -> u32) {
        let previous = self.live.insert(address, cell, self.generation, slot_size);
        if let Some(record) = previous {
            (self.cells).freed(record, u64::from(record.slot_size()), self.generation);
        }
        self.cells.allocated(cell);
    }

    /// An unrecorded object was allocated: any object previously at its address was freed.
    #[inline]
    pub fn allocated_unrecorded(&mut self, address: u64) {
        self.freed(address);
    }

    /// Records the free of an object of which only the slot is known. Returns its record if it was recorded.
    #[inline(always)]
    pub fn freed(&mut self, address: u64) -> Option<Record> {
        let record = self.take(address)?;
        self.count_free(record, u64::from(record.slot_size()));
        Some(record)
    }

    /// Removes a freed object from the live table without counting it.
    #[inline(always)]
    pub fn take(&mut self, address: u64) -> Option<Record> {
        self.live.remove(address)
    }

    /// Counts the free of a removed object with this many bytes.
    #[inline(always)]
    pub fn count_free(&mut self, record: Record, bytes: u64) {
        self.cells.freed(record, bytes, self.generation);
    }

    /// True if the object with this record was allocated without a class.
    #[inline]
    pub fn is_hidden(&self, record: Record) -> bool {
        self.cells.is_hidden(record.cell())
    }

    /// An object allocated without a class got one: it counts as if it had been allocated with it. Returns its new record.
    pub fn reveal(&mut self, record: Record, class: ClassId) -> Record {
        let counting = self.counting(record).map(|(_, cell)| (cell.segment, cell.site));
        let Some((segment, site)) = counting else {
            return record;
        };
        let Some(site) = self.sites.get(site) else {
            return record;
        };
        let site = self.sites.site(Site { class, ..site });
        let target = self.cell(segment, site);
        self.cells.moved(record.cell(), target);
        record.of(target)
    }

    /// Replaces the record of the object at `address`.
    pub fn replace(&mut self, address: u64, record: Record) {
        self.live.replace(address, record);
    }

    /// True if some session wants the string values for this record.
    pub fn wants_string(&self, record: Record) -> bool {
        self.string_target(record).is_some()
    }

    fn string_target(&self, record: Record) -> Option<&Cell> {
        let cell = self.cells.get(self.cells.resolve(record.cell())?)?;
        self.sessions.get(cell.segment).filter(|segment| segment.strings).map(|_| cell)
    }

    /// A string with this value was freed.
    pub fn string_freed(&mut self, record: Record, value: &[u8]) {
        if let Some((segment, site)) =
            self.string_target(record).map(|cell| (cell.segment, cell.site))
        {
            self.strings_of(segment).add(value, site, 1);
        }
    }

    /// Sets the current GC generation, which began `time` microseconds since the epoch.
    pub fn set_generation(&mut self, generation: u32, time: u64) {
        self.generation = generation;
        self.begun.push(generation, time);
    }

    /// Allocation site of the object at `address`, its generation, and when that began (microseconds since the epoch).
    pub fn allocation(&self, address: u64) -> Option<(SiteId, u64, u64)> {
        let record = self.live.get(address)?;
        let (_, cell) = self.counting(record)?;
        let generation = self.generation.wrapping_sub(record.age(self.generation));
        Some((cell.site, u64::from(generation), self.begun.time(generation)))
    }

    /// Objects in the live table.
    pub fn live_objects(&self) -> u64 {
        self.live.len()
    }

    /// True if a recorded object may lie in `start..end`.
    pub fn touches(&self, start: u64, end: u64) -> bool {
        self.live.touches(start, end)
    }

    /// The record of the object at `address`.
    pub fn record(&self, address: u64) -> Option<Record> {
        self.live.get(address)
    }

    /// True if the object with this record belongs to the session.
    pub fn sees(&self, session: SessionId, record: Record) -> bool {
        let cell = self.cells.resolve(record.cell()).and_then(|id| self.cells.get(id));
        cell.and_then(|cell| self.sessions.get(cell.segment))
            .is_some_and(|segment| segment.contains(session))
    }

    /// Compaction: see [`LiveTable::relocate`].
    pub fn relocate(&mut self, moved: impl Fn(u64) -> Option<u64>, slot_size: impl Fn(u64) -> u32) {
        let (cells, generation) = (&mut self.cells, self.generation);
        self.live.relocate(moved, slot_size, |record| {
            cells.freed(record, u64::from(record.slot_size()), generation)
        });
    }

    /// Drops records for which `alive` is false: objects freed without an event.
    pub fn retain(&mut self, alive: impl Fn(u64) -> bool) {
        let gone: Vec<u64> = self
            .live
            .iter()
            .map(|(address, _)| address)
            .filter(|address| !alive(*address))
            .collect();
        for address in gone {
            self.freed(address);
        }
    }

    /// Adds a live object, found on the heap, to `survivors`. `value` is called if some session wants its string value.
    #[inline]
    pub fn survives<'a>(
        &self,
        survivors: &mut Survivors,
        record: Record,
        memsize: u64,
        value: impl FnOnce() -> Option<&'a [u8]>,
    ) {
        let Some((id, cell)) = self.counting(record) else {
            return;
        };
        let index = id.0 as usize;
        if survivors.amounts.len() <= index {
            survivors.amounts.resize(index + 1, Amount::default());
        }
        survivors.amounts[index].add(Amount::new(1, memsize));
        if let Some(now) = survivors.aged_at {
            survivors.age(index, self.begun(record), now);
        }
        let segment = self.sessions.get(cell.segment);
        if segment.is_some_and(|segment| segment.strings) {
            if let Some(value) = value() {
                let strings = survivors.strings.entry(cell.segment).or_default();
                strings.add(value, cell.site, 1);
            }
        }
    }

    /// The cell that counts the object with this record.
    fn counting(&self, record: Record) -> Option<(CellId, &Cell)> {
        let id = self.cells.resolve(record.cell())?;
        Some((id, self.cells.get(id)?))
    }

    /// The cells of a session with their numbers, and how many objects each of their objects stands for.
    fn cells_of(&self, session: SessionId) -> impl Iterator<Item = (CellId, &Cell, u64)> + '_ {
        self.sessions.segments_of(session).flat_map(move |segment| {
            let scale = u64::from(self.sessions.get(segment).map_or(1, |segment| segment.interval));
            let cells =
                self.by_site.get(segment.0 as usize).into_iter().flat_map(|cells| cells.values());
            cells.filter_map(move |id| Some((*id, self.cells.get(*id)?, scale)))
        })
    }

    /// The results of a session, as plain data.
    pub fn profile(&self, session: SessionId, survivors: &Survivors, meta: Meta) -> Profile {
        let mut builder = ProfileBuilder::new(&self.sites);
        // Frames of two epochs may have the same text, so rows are distinguished by text.
        let mut rows: FxHashMap<(u32, u32, u32), (SiteId, SiteRow)> = FxHashMap::default();
        let mut peak = self.peak(session).map(|peak| peak.sites.clone()).unwrap_or_default();
        for (id, cell, scale) in self.cells_of(session) {
            let Some(site) = self.sites.get(cell.site) else {
                continue;
            };
            let empty = builder.row(site);
            let (first, row) =
                (rows.entry((empty.site, empty.stack, empty.class))).or_insert((cell.site, empty));
            *first = cell.site.min(*first);
            let scaled = |amount: Amount| Amount::new(amount.objects * scale, amount.bytes * scale);
            let retained =
                scaled(survivors.amounts.get(id.0 as usize).copied().unwrap_or_default());
            let freed = scaled(cell.freed);
            row.retained.add(retained);
            row.freed.add(freed);
            row.allocated.add(Amount::new(cell.allocated * scale, freed.bytes + retained.bytes));
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
            scale = self.sessions.get(segment).map_or(scale, |segment| u64::from(segment.interval));
            if let Some(freed) = self.strings.get(segment.0 as usize) {
                allocated.merge(freed);
            }
            if let Some(alive) = survivors.strings.get(&segment) {
                allocated.merge(alive);
                retained.merge(alive);
            }
        }
        let mut location = |site| builder.location(site);
        (allocated.rows(scale, &mut location), retained.rows(scale, &mut location))
    }

    /// Memory size of the recorder in bytes.
    pub fn memsize(&self) -> usize {
        let maps: usize = self.by_site.iter().map(|map| map.capacity() * 9).sum();
        let tables = self.cells.memsize() + self.sites.memsize() + self.rows.memsize();
        self.live.memsize() + tables + maps
    }
}

#[cfg(test)]
mod peak_tests;
#[cfg(test)]
mod tests;
