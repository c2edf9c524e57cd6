//! The costs of all requests by kind, in a temporary file if there are many.

use std::io::{self, Read, Seek, SeekFrom, Write};

use tempfile::SpooledTempFile;

use crate::number::Number;

/// Bytes of one cost: the number of its group, the type of the number, and the number.
const WIDTH: usize = 16;
/// Number of costs written at once.
const BLOCK: usize = 512;
/// Maximum bytes in memory.
const IN_MEMORY: usize = 1 << 24;

/// The costs of a kind.
#[derive(Default)]
struct Column {
    /// Data not written yet.
    rest: Vec<u8>,
    /// Offsets of blocks.
    blocks: Vec<u64>,
}

/// Costs by kind.
pub struct Columns {
    file: SpooledTempFile,
    written: u64,
    columns: Vec<Column>,
}

impl Default for Columns {
    fn default() -> Self {
        Columns { file: SpooledTempFile::new(IN_MEMORY), written: 0, columns: Vec::new() }
    }
}

impl Columns {
    /// Adds a cost of a request in a group.
    pub fn push(&mut self, kind: u32, group: u32, cost: Number) -> io::Result<()> {
        let place = kind as usize;
        if self.columns.len() <= place {
            self.columns.resize_with(place + 1, Column::default);
        }
        let (tag, bits) = match cost {
            Number::Int(value) => (0u32, value as u64),
            Number::Float(value) => (1, value.to_bits()),
        };
        let column = &mut self.columns[place];
        column.rest.extend_from_slice(&group.to_le_bytes());
        column.rest.extend_from_slice(&tag.to_le_bytes());
        column.rest.extend_from_slice(&bits.to_le_bytes());
        if column.rest.len() == BLOCK * WIDTH {
            self.file.write_all(&column.rest)?;
            column.blocks.push(self.written);
            self.written += column.rest.len() as u64;
            column.rest.clear();
        }
        Ok(())
    }

    /// Yields all costs of a kind, with their groups, in order of insertion.
    pub fn each(&mut self, kind: u32, mut visit: impl FnMut(u32, Number)) -> io::Result<()> {
        let Some(column) = self.columns.get(kind as usize) else {
            return Ok(());
        };
        let mut block = vec![0; BLOCK * WIDTH];
        for &place in &column.blocks {
            self.file.seek(SeekFrom::Start(place))?;
            self.file.read_exact(&mut block)?;
            rows(&block, &mut visit);
        }
        rows(&column.rest, &mut visit);
        Ok(())
    }
}

fn rows(bytes: &[u8], visit: &mut impl FnMut(u32, Number)) {
    for row in bytes.chunks_exact(WIDTH) {
        let word = |at: usize| u32::from_le_bytes(row[at..at + 4].try_into().unwrap_or_default());
        let bits = u64::from_le_bytes(row[8..].try_into().unwrap_or_default());
        let number = match word(4) {
            0 => Number::Int(bits as i64),
            _ => Number::Float(f64::from_bits(bits)),
        };
        visit(word(0), number);
    }
}
