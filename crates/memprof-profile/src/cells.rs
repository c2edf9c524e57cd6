//! Counters of allocations: one cell per site and segment (see [`crate::sessions`]).

use crate::lean::push;
use crate::live::Record;
use crate::profile::{Ages, Amount};
use crate::sessions::SegmentId;
use crate::sites::SiteId;

/// Id of a cell. It is reused once the cell is retired and no live object refers to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CellId(pub u32);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Counts.
    Active,
    /// Its segment was joined to another one, whose cell took over its counts and counts its frees from now on.
    Joined(CellId),
    /// Its counts are no longer read.
    Retired,
    /// Free to be used again.
    Free,
}

/// The objects of one site that were allocated in one segment.
#[derive(Clone, Debug)]
pub struct Cell {
    /// The segment, and with it the sessions that see these objects.
    pub segment: SegmentId,
    /// The site.
    pub site: SiteId,
    /// The site's class is a placeholder for objects without a class, which may get one later.
    pub hidden: bool,
    /// Objects allocated.
    pub allocated: u64,
    /// Objects freed, with their bytes at that time.
    pub freed: Amount,
    /// Ages of the freed objects.
    pub ages: Ages,
    /// Records in the live table that refer to this cell.
    records: u32,
    state: State,
}

impl Cell {
    /// Live objects.
    pub fn live(&self) -> u64 {
        self.allocated.saturating_sub(self.freed.objects)
    }
}

/// All cells.
#[derive(Debug, Default)]
pub struct Cells {
    cells: Vec<Cell>,
    free: Vec<CellId>,
}

impl Cells {
    /// A new cell for the objects of `site` allocated in `segment`.
    pub fn add(&mut self, segment: SegmentId, site: SiteId, hidden: bool) -> CellId {
        let cell = Cell {
            segment,
            site,
            hidden,
            allocated: 0,
            freed: Amount::default(),
            ages: Ages::default(),
            records: 0,
            state: State::Active,
        };
        match self.free.pop() {
            Some(id) => {
                if let Some(slot) = self.cells.get_mut(id.0 as usize) {
                    *slot = cell;
                }
                id
            }
            None => {
                push(&mut self.cells, cell);
                CellId(self.cells.len() as u32 - 1)
            }
        }
    }

    /// The cell, if it exists and counts.
    pub fn get(&self, id: CellId) -> Option<&Cell> {
        self.cells.get(id.0 as usize).filter(|cell| cell.state == State::Active)
    }

    /// Counts an allocation.
    #[inline]
    pub fn allocated(&mut self, id: CellId) {
        if let Some(cell) = self.cells.get_mut(id.0 as usize) {
            cell.allocated += 1;
            cell.records += 1;
        }
    }

    /// Counts the free of the object with this record, which had `bytes` bytes, in GC generation `now`.
    #[inline]
    pub fn freed(&mut self, record: Record, bytes: u64, now: u32) {
        let Some(cell) = self.cells.get_mut(record.cell().0 as usize) else {
            return;
        };
        cell.records = cell.records.saturating_sub(1);
        if cell.state == State::Active {
            count_free(cell, record, bytes, now);
        } else {
            self.freed_elsewhere(record, bytes, now);
        }
    }

    #[cold]
    fn freed_elsewhere(&mut self, record: Record, bytes: u64, now: u32) {
        let id = record.cell();
        if let Some(target) =
            self.resolve(id).and_then(|target| self.cells.get_mut(target.0 as usize))
        {
            count_free(target, record, bytes, now);
        }
        self.free_if_unused(id);
    }

    /// True if the cell counts or counted objects without a class.
    #[inline]
    pub fn is_hidden(&self, id: CellId) -> bool {
        self.cells.get(id.0 as usize).is_some_and(|cell| cell.hidden)
    }

    /// Moves an object from the cell that its record refers to, `id`, to `target`.
    pub fn moved(&mut self, id: CellId, target: CellId) {
        let counting = self.resolve(id);
        if let Some(cell) = counting.and_then(|id| self.cells.get_mut(id.0 as usize)) {
            cell.allocated = cell.allocated.saturating_sub(1);
        }
        self.allocated(target);
        if let Some(cell) = self.cells.get_mut(id.0 as usize) {
            cell.records = cell.records.saturating_sub(1);
        }
        self.free_if_unused(id);
    }

    /// True if no record refers to the cell, so it won't count any more frees.
    pub fn is_dead(&self, id: CellId) -> bool {
        self.get(id).is_some_and(|cell| cell.records == 0)
    }

    /// Changes the number of the cell's site.
    pub fn set_site(&mut self, id: CellId, site: SiteId) {
        if let Some(cell) = self.cells.get_mut(id.0 as usize) {
            cell.site = site;
        }
    }

    /// The cell that now counts for `id`, if any.
    pub fn resolve(&self, mut id: CellId) -> Option<CellId> {
        loop {
            match self.cells.get(id.0 as usize)?.state {
                State::Active => return Some(id),
                State::Joined(target) => id = target,
                State::Retired | State::Free => return None,
            }
        }
    }

    /// Adds the counts of `id` to `target`, which counts for it from now on.
    pub fn join(&mut self, id: CellId, target: CellId) {
        let Some(cell) = self.cells.get_mut(id.0 as usize) else {
            return;
        };
        cell.state = State::Joined(target);
        let (allocated, freed, ages) = (cell.allocated, cell.freed, cell.ages);
        if let Some(target) = self.cells.get_mut(target.0 as usize) {
            target.allocated += allocated;
            target.freed.add(freed);
            target.ages.add(ages);
            // Prevents reuse of the target's id while a cell is joined to it.
            target.records += 1;
        }
        self.free_if_unused(id);
    }

    /// Stops counting for `id`.
    pub fn retire(&mut self, id: CellId) {
        if let Some(cell) = self.cells.get_mut(id.0 as usize) {
            cell.state = State::Retired;
        }
        self.free_if_unused(id);
    }

    fn free_if_unused(&mut self, mut id: CellId) {
        loop {
            let Some(cell) = self.cells.get_mut(id.0 as usize) else {
                return;
            };
            if cell.records > 0 || matches!(cell.state, State::Active | State::Free) {
                return;
            }
            let state = std::mem::replace(&mut cell.state, State::Free);
            self.free.push(id);
            let State::Joined(target) = state else { return };
            if let Some(target) = self.cells.get_mut(target.0 as usize) {
                target.records = target.records.saturating_sub(1);
            }
            id = target;
        }
    }

    /// Removes all cells, but keeps the memory for new ones.
    pub fn clear(&mut self) {
        self.cells.clear();
        self.free.clear();
    }

    /// Number of cells in use.
    pub fn len(&self) -> usize {
        self.cells.len() - self.free.len()
    }

    /// True if no cell is in use.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Memory size of the cells in bytes.
    pub fn memsize(&self) -> usize {
        self.cells.capacity() * size_of::<Cell>() + self.free.capacity() * size_of::<CellId>()
    }
}

#[inline]
fn count_free(cell: &mut Cell, record: Record, bytes: u64, now: u32) {
    let age = record.age(now);
    cell.freed.objects += 1;
    cell.freed.bytes += bytes;
    cell.ages.sum += u64::from(age);
    cell.ages.max = cell.ages.max.max(age);
}
