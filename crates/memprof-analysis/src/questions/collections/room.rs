//! What a collection has room for, from its memsize.

/// Bytes of a reference.
const WORD: u64 = 8;

/// Bytes of the small table that a hash has for at most eight entries: hints and pairs.
const SMALL_TABLE: u64 = 8 + 8 * 16;

/// Bytes of the head of a large table (`struct st_table`).
const TABLE: u64 = 56;

/// Bytes of an entry of a large table: hash, key, value.
const ENTRY: u64 = 24;

/// Room of a collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Room {
    /// Elements that it has room for.
    pub capacity: u64,
    /// Bytes of the room without elements.
    pub unused: u64,
}

impl Room {
    /// Of an array or struct with so many bytes outside of its slot. One in its slot has no room to speak of.
    pub fn of_array(length: u64, outside: u64) -> Option<Room> {
        let capacity = outside / WORD;
        (capacity >= length && capacity > 0).then(|| Room {
            capacity,
            unused: (capacity - length) * WORD,
        })
    }

    /// Of a hash. A large table has a power of two of entries, and an array of bins twice as long, of one byte to eight each.
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
        // The head is in the slot since Ruby 3.3.
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
    // Tables of at most sixteen entries are searched one by one.
    let bins = match power {
        ..=4 => 0,
        5..=7 => 2 * capacity,
        8..=15 => 4 * capacity,
        16..=31 => 8 * capacity,
        _ => 16 * capacity,
    };
    capacity * ENTRY + bins
}
