//! Text shared between lines. Most objects of a class have the same flags and sizes: their text is built once.

/// The values that a text is built from.
pub(super) type Key = [u64; 4];

const TABLE_BITS: u32 = 10;

/// Texts by the values that they are built from. Evicted ones are rebuilt.
pub(super) struct Chunks {
    table: Vec<(Key, Vec<u8>)>,
}

impl Default for Chunks {
    fn default() -> Chunks {
        Chunks { table: vec![([0; 4], Vec::new()); 1 << TABLE_BITS] }
    }
}

impl Chunks {
    /// The text of a key; `make` writes it. An empty one is rebuilt each time.
    #[inline]
    pub fn get(&mut self, key: Key, make: impl FnOnce(&mut Vec<u8>)) -> &[u8] {
        let entry = &mut self.table[place(key)];
        // Word by word: the key was just written, and reading it in one piece would stall the processor.
        let known = (entry.0.iter().zip(key)).fold(0, |other, (one, two)| other | (one ^ two)) == 0;
        if !known || entry.1.is_empty() {
            entry.0 = key;
            entry.1.clear();
            make(&mut entry.1);
        }
        &entry.1
    }
}

#[inline]
fn place(key: Key) -> usize {
    let [a, b, c, d] = key;
    let mixed = a.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ b.wrapping_mul(0xd6e8_feb8_6659_fd93);
    let mixed = (mixed ^ c.rotate_left(20) ^ d.rotate_left(40)).wrapping_mul(0x9fb2_1c65_1e98_df25);
    (mixed >> (64 - TABLE_BITS)) as usize
}
