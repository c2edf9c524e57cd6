//! Reads an index: its directory and small tables at once, columns on demand.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;

use bytemuck::Pod;
use rustc_hash::FxHashMap;
use rustix::fs::OFlags;

use super::{Directory, Fingerprint, HEAD, MAGIC, VERSION};
use crate::columns::{Column, Columns, Dangling, Part, SizeColumn};
use crate::derived::{Derived, Tree};
use crate::groups::{Class, ClassObject, Group};
use crate::names::Names;
use crate::object_facts::Facts;
use crate::pages::Addresses;
use crate::site::Site;
use crate::texts::Texts;
use crate::{Category, Heap, NONE, note_kind};
use memprof_dump::record::{Kind, NameId, Shape};

/// Bytes behind the directory that contain its place.
const TRAILER: u64 = 32;

/// Whether an index may be used: it must belong to this user or the superuser.
fn trusted(metadata: &Metadata, own: u32) -> bool {
    metadata.is_file() && (metadata.uid() == own || metadata.uid() == 0)
}

/// The heap from an index; `None` without a valid index for this dump.
pub(in super::super) fn read(path: &Path, fingerprint: &Fingerprint, own: u32) -> Option<Heap> {
    // Nonblocking: the path may be a pipe.
    let mut options = OpenOptions::new();
    let flags = OFlags::NONBLOCK.bits() as i32;
    let file = options.read(true).custom_flags(flags).open(path).ok()?;
    if !trusted(&file.metadata().ok()?, own) {
        return None;
    }
    let (directory, file) = directory(file).ok()?;
    if directory.fingerprint != *fingerprint {
        return None;
    }
    heap(directory, file).ok()
}

fn directory(mut file: File) -> io::Result<(Directory, Arc<File>)> {
    let broken = || io::Error::from(io::ErrorKind::InvalidData);
    let mut head = [0; HEAD as usize];
    file.read_exact(&mut head)?;
    let end = file.seek(SeekFrom::End(0))?;
    let mut trailer = [0; TRAILER as usize];
    file.read_exact_at(&mut trailer, end.checked_sub(TRAILER).ok_or_else(broken)?)?;
    let words = |at: usize| u64::from_le_bytes(trailer[at..at + 8].try_into().unwrap_or_default());
    let number = |at: usize| u32::from_le_bytes(trailer[at..at + 4].try_into().unwrap_or_default());
    if head[..8] != MAGIC || trailer[24..] != MAGIC || number(20) != VERSION || words(8) > end {
        return Err(broken());
    }
    let file = Arc::new(file);
    let part =
        Part { file: file.clone(), offset: words(0), length: words(8), checksum: number(16) };
    Ok((serde_json::from_slice(&part.read::<u8>()?)?, file))
}

/// The parts of an index by name.
struct Parts {
    places: FxHashMap<String, Part>,
}

impl Parts {
    fn part(&mut self, name: &str) -> io::Result<Part> {
        let part = self.places.remove(name);
        part.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))
    }

    fn column<T: Pod>(&mut self, name: &str) -> io::Result<Column<T>> {
        Ok(Column::stored(self.part(name)?))
    }

    fn sizes(&mut self, name: &str) -> io::Result<SizeColumn> {
        Ok(SizeColumn::stored(self.part(name)?, self.part(&format!("{name}.large"))?))
    }

    fn table<T: Pod, U>(&mut self, name: &str, row: impl Fn(&T) -> U) -> io::Result<Vec<U>> {
        Ok(self.part(name)?.read::<T>()?.iter().map(row).collect())
    }
}

fn heap(directory: Directory, file: Arc<File>) -> io::Result<Heap> {
    let places = directory.places.into_iter().map(|place| {
        let part = Part {
            file: file.clone(),
            offset: place.offset,
            length: place.length,
            checksum: place.checksum,
        };
        (place.name, part)
    });
    let mut parts = Parts { places: places.collect() };
    let name = |number: u32| (number != NONE).then_some(NameId(number));
    let lengths = parts.part("names")?.read::<u32>()?;
    let text = parts.part("names.text")?.read::<u8>()?;
    Ok(Heap {
        source: directory.source,
        objects: directory.objects,
        addresses: Addresses {
            keys: parts.part("pages")?.read()?,
            starts: parts.part("starts")?.read()?,
            places: parts.part("places")?.read()?,
        },
        slot_sizes: parts.part("slot_sizes")?.read()?,
        categories: directory.categories.into_iter().map(|name| Category { name }).collect(),
        names: names(&lengths, &text)?,
        groups: parts.table("groups", |row: &[u32; 4]| Group {
            kind: Kind(row[0] as u8),
            class: row[1],
            shown: row[2],
            name: name(row[3]),
        })?,
        classes: parts
            .table("classes", |row: &[u32; 2]| Class { name: NameId(row[0]), object: row[1] })?,
        class_objects: parts.table("class_objects", |row: &[u32; 4]| ClassObject {
            object: row[0],
            name: name(row[1]),
            superclass: row[2],
            real: row[3],
        })?,
        sites: parts.table("sites", |row: &[u32; 4]| Site {
            file: NameId(row[0]),
            line: row[1],
            method: name(row[2]),
            caller: (row[3] != NONE).then_some(row[3]),
        })?,
        shapes: parts.table("shapes", |row: &[u64; 8]| Shape {
            address: row[0],
            id: row[1],
            parent_id: (row[2] != u64::MAX).then_some(row[2]),
            depth: row[3],
            shape_type: NameId(row[4] as u32),
            edge_name: name(row[5] as u32),
            edges: row[6],
            memsize: row[7],
        })?,
        times: parts.table("times", |row: &[u64; 2]| (row[0] as u32, row[1]))?,
        notes: directory
            .notes
            .into_iter()
            .filter_map(|(kind, json)| Some((note_kind(kind)?, json)))
            .collect(),
        facts: Facts {
            keys: parts.part("facts")?.read()?,
            values: parts.part("facts.values")?.read()?,
        },
        object_ids: parts.table("object_ids", |row: &[u64; 2]| (row[0] as u32, row[1]))?,
        texts: Texts::new(file, directory.texts.0, directory.texts.1),
        columns: Columns {
            group: parts.column("group")?,
            flags: parts.column("flags")?,
            memsize: parts.sizes("memsize")?,
            length: parts.column("length")?,
            shape: parts.column("shape")?,
            site: parts.column("site")?,
            generation: parts.column("generation")?,
            text: parts.column("text")?,
            offsets: parts.column("offsets")?,
            targets: parts.column("targets")?,
            labels: parts.column("labels")?,
            dangling: Dangling {
                from: parts.column("dangling.from")?,
                to: parts.column("dangling.to")?,
            },
        },
        derived: Derived {
            dominators: Tree::stored(parts.part("dominators")?, parts.part("dominators.order")?),
            steps: parts.column("steps")?,
            retained: parts.sizes("retained")?,
            ..Derived::default()
        },
        cache: Default::default(),
        silent: Vec::new(),
        capturing_thread: None,
    })
}

fn names(lengths: &[u32], text: &[u8]) -> io::Result<Names> {
    let text = std::str::from_utf8(text).map_err(io::Error::other)?;
    let mut at = 0;
    let mut all = Vec::with_capacity(lengths.len());
    for &length in lengths {
        let end = at + length as usize;
        all.push(text.get(at..end).ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))?);
        at = end;
    }
    Ok(all.into_iter().collect())
}
