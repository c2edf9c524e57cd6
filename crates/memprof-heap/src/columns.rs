//! Columns: contiguous arrays with a value for each object. Columns of an index are read on demand, so that a query reads only
//! the ones it needs.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use bytemuck::{Pod, Zeroable};

use super::once::Once;
use super::sizes::Sizes;
use memprof_dump::read::invalid;

/// A part of an index file.
#[derive(Clone)]
pub(super) struct Part {
    pub file: Arc<File>,
    pub offset: u64,
    /// In bytes.
    pub length: u64,
    pub checksum: u32,
}

impl Part {
    /// Reads the whole part.
    pub fn read<T: Pod + Zeroable>(&self) -> io::Result<Vec<T>> {
        let size = size_of::<T>() as u64;
        let count = usize::try_from(self.length / size).map_err(io::Error::other)?;
        let mut values = vec![T::zeroed(); count];
        let bytes = bytemuck::cast_slice_mut(&mut values);
        self.file.read_exact_at(bytes, self.offset)?;
        if crc32fast::hash(bytes) != self.checksum || self.length % size != 0 {
            return Err(invalid("the index is damaged: remove it to have it rebuilt"));
        }
        Ok(values)
    }
}

/// A value for each object, or no values at all.
pub struct Column<T> {
    values: Once<Vec<T>>,
    part: Option<Part>,
}

impl<T> Default for Column<T> {
    fn default() -> Column<T> {
        Column::from(Vec::new())
    }
}

impl<T> From<Vec<T>> for Column<T> {
    fn from(values: Vec<T>) -> Column<T> {
        Column { values: Once::from(values), part: None }
    }
}

impl<T: Pod> Column<T> {
    pub(super) fn stored(part: Part) -> Column<T> {
        Column { values: Once::default(), part: Some(part) }
    }

    /// The values.
    ///
    /// # Errors
    /// If they cannot be read from the index.
    pub fn get(&self) -> io::Result<&[T]> {
        let read = || self.part.as_ref().map_or(Ok(Vec::new()), Part::read);
        self.values.get_or(read).map(Vec::as_slice)
    }

    /// Bytes in memory.
    pub(super) fn memsize(&self) -> usize {
        self.values.get().map_or(0, |values| size_of_val(values.as_slice()))
    }
}

/// A size for each object.
#[derive(Default)]
pub struct SizeColumn {
    sizes: Once<Sizes>,
    parts: Option<(Part, Part)>,
}

impl From<Sizes> for SizeColumn {
    fn from(sizes: Sizes) -> SizeColumn {
        SizeColumn { sizes: Once::from(sizes), parts: None }
    }
}

impl SizeColumn {
    pub(super) fn stored(small: Part, large: Part) -> SizeColumn {
        SizeColumn { sizes: Once::default(), parts: Some((small, large)) }
    }

    /// The sizes.
    ///
    /// # Errors
    /// If they cannot be read from the index.
    pub fn get(&self) -> io::Result<&Sizes> {
        self.sizes.get_or(|| {
            Ok(match &self.parts {
                Some((small, large)) => Sizes::new(small.read()?, &large.read::<u64>()?),
                None => Sizes::default(),
            })
        })
    }

    /// Bytes in memory.
    pub(super) fn memsize(&self) -> usize {
        self.sizes.get().map_or(0, |sizes| sizes.len() * size_of::<u32>())
    }
}

/// The facts about each object, and its references.
#[derive(Default)]
pub(super) struct Columns {
    pub group: Column<u32>,
    pub flags: Column<u32>,
    pub memsize: SizeColumn,
    pub length: Column<u32>,
    pub shape: Column<u32>,
    pub site: Column<u32>,
    pub generation: Column<u32>,
    pub text: Column<u32>,
    pub offsets: Column<u32>,
    pub targets: Column<u32>,
    pub labels: Column<u32>,
    pub dangling: Dangling,
}

/// References to addresses without an object in the dump.
#[derive(Default)]
pub(super) struct Dangling {
    /// The nodes that have them, in order.
    pub from: Column<u32>,
    /// The addresses to which they lead.
    pub to: Column<u64>,
}
