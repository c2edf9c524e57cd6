//! The capacity of a collection, inferred from its memsize.

/// Bytes of a reference.
const WORD: u64 = 8;

/// Bytes of the small table of a hash with at most eight entries: hints and pairs.
const SMALL_TABLE: u64 = 8 + 8 * 16;

/// Bytes of the header of a large table (`struct st_table`).
const TABLE: u64 = 56;

/// Bytes of an entry of a large table: hash, key, value.
const ENTRY: u64 = 24;

/// Capacity of a collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Room {
    /// Capacity in elements.
    pub capacity: u64,
    /// Bytes of unused capacity.
    pub unused: u64,
}

impl Room {
    /// The capacity of an array or struct with so many bytes outside its slot. Embedded ones have hardly any spare
    /// capacity.
    pub fn of_array(length: u64, outside: u64) -> Option<Room> {
        let capacity = outside / WORD;
        (capacity >= length && capacity > 0).then(|| Room {
            capacity,
            unused: (capacity - length) * WORD,
        })
    }

    /// The capacity of a hash. A large table has a power of two of entries, and twice as many bins, of one to eight bytes
    /// each.
    pub fn of_hash(length: u64, outside: u64) -> Option<Room> {
        if outside == 0 {
            return None;
        }
        if length <= 8 && outside <= SMALL_TABLE {
            return Some(Room {
                capacity: 8,
                unused: (8 - length) * 16,
            });
        }
        // The header is in the slot since Ruby 3.3.
        let fits = |capacity: u64| bytes(capacity) == outside || bytes(capacity) + TABLE == outside;
        let capacity = (2..48)
            .map(|power| 1_u64 << power)
            .find(|&capacity| fits(capacity))?;
        (capacity >= length).then(|| Room {
            capacity,
            unused: (capacity - length) * ENTRY,
        })
    }
}

/// Bytes of the entries and bins of a large table (st.c: `features`).
fn bytes(capacity: u64) -> u64 {
    let power = capacity.trailing_zeros();
    // Tables of at most sixteen entries are searched linearly.
    let bins = match power {
        ..=4 => 0,
        5..=7 => 2 * capacity,
        8..=15 => 4 * capacity,
        16..=31 => 8 * capacity,
        _ => 16 * capacity,
    };
    capacity * ENTRY + bins
}
