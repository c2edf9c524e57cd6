/// Lists of nodes, one for each number, in one array.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rows {
    offsets: Vec<u32>,
    members: Vec<u32>,
}

impl Rows {
    /// Sorts pairs (row, member) into rows.
    ///
    /// Expects the pairs in reverse order: the members of each row then end up in order, and the offsets serve as write positions
    /// that count down to the beginning of each row. Pairs with a row out of range are skipped.
    pub(super) fn sort(rows: usize, pairs: impl Iterator<Item = (u32, u32)> + Clone) -> Rows {
        let mut offsets = vec![0u32; rows + 1];
        pairs.clone().for_each(|(row, _)| {
            if (row as usize) < rows {
                let count = &mut offsets[row as usize];
                *count = count.saturating_add(1);
            }
        });
        let mut total = 0u32;
        for offset in &mut offsets {
            total = total.saturating_add(*offset);
            *offset = total;
        }
        let mut members = vec![0; total as usize];
        pairs.for_each(|(row, member)| {
            if (row as usize) < rows {
                let place = &mut offsets[row as usize];
                *place = place.saturating_sub(1);
                if let Some(slot) = members.get_mut(*place as usize) {
                    *slot = member;
                }
            }
        });
        Rows { offsets, members }
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.offsets.len().saturating_sub(1)
    }

    /// Whether it has no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A row, in ascending order; empty if out of range.
    #[inline]
    pub fn row(&self, row: u32) -> &[u32] {
        let row = row as usize;
        match self.offsets.get(row..row.saturating_add(2)) {
            Some(&[start, end]) => self.members.get(start as usize..end as usize),
            _ => None,
        }
        .unwrap_or_default()
    }
}
