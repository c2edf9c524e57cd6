//! Writes an index.

use std::fs::File;
use std::io::{self, Seek, Write};

use bytemuck::Pod;

use super::{Directory, Fingerprint, MAGIC, Place, VERSION};
use crate::graph::Stop;
use crate::sizes::Sizes;
use crate::{Heap, NONE};
use memprof_dump::record::NameId;

/// The alignment of parts.
const ALIGNMENT: u64 = 64;

/// Writes parts one after another.
struct PartWriter<'s> {
    stop: Stop<'s>,
    file: File,
    position: u64,
    places: Vec<Place>,
}

impl PartWriter<'_> {
    fn part<T: Pod>(&mut self, name: &str, values: &[T]) -> io::Result<()> {
        self.stop.check()?;
        let padding = (ALIGNMENT - self.position % ALIGNMENT) % ALIGNMENT;
        self.file.write_all(&[0; ALIGNMENT as usize][..padding as usize])?;
        let bytes: &[u8] = bytemuck::cast_slice(values);
        self.file.write_all(bytes)?;
        let place = Place {
            name: name.to_owned(),
            offset: self.position + padding,
            length: bytes.len() as u64,
            checksum: crc32fast::hash(bytes),
        };
        self.position = place.offset + place.length;
        self.places.push(place);
        Ok(())
    }

    fn sizes(&mut self, name: &str, sizes: &Sizes) -> io::Result<()> {
        self.part(name, &sizes.small)?;
        self.part(&format!("{name}.large"), &sizes.large_words())
    }
}

/// The head of an index, before its texts.
pub(in super::super) fn begin(file: &mut File) -> io::Result<()> {
    file.write_all(&MAGIC)?;
    file.write_all(&VERSION.to_le_bytes())?;
    file.write_all(&[0; 4])
}

/// Writes all parts behind the texts, at the current position of the file, unless it is stopped.
pub(in super::super) fn write(
    heap: &Heap,
    mut file: File,
    fingerprint: Fingerprint,
    stop: Stop<'_>,
) -> io::Result<()> {
    let position = file.stream_position()?;
    let mut out = PartWriter { stop, file, position, places: Vec::new() };
    let columns = &heap.columns;
    let named = [
        ("group", &columns.group),
        ("flags", &columns.flags),
        ("length", &columns.length),
        ("shape", &columns.shape),
        ("site", &columns.site),
        ("generation", &columns.generation),
        ("text", &columns.text),
        ("offsets", &columns.offsets),
        ("targets", &columns.targets),
        ("labels", &columns.labels),
        ("steps", &heap.derived.steps),
    ];
    for (name, column) in named {
        out.part(name, column.get()?)?;
    }
    out.part("dangling.from", columns.dangling.from.get()?)?;
    out.part("dangling.to", columns.dangling.to.get()?)?;
    let tree = heap.dominators()?;
    out.part("dominators", &tree.parent)?;
    out.part("dominators.order", &tree.order)?;
    out.sizes("memsize", columns.memsize.get()?)?;
    out.sizes("retained", heap.derived.retained.get()?)?;
    out.part("pages", &heap.addresses.keys)?;
    out.part("starts", &heap.addresses.starts)?;
    out.part("places", &heap.addresses.places)?;
    out.part("slot_sizes", &heap.slot_sizes)?;
    let names: Vec<&str> = heap.names.iter().collect();
    let lengths: Vec<u32> = names.iter().map(|name| name.len() as u32).collect();
    out.part("names", &lengths)?;
    out.part("names.text", names.concat().as_bytes())?;
    let name = |name: Option<NameId>| name.map_or(NONE, |name| name.0);
    let groups: Vec<[u32; 4]> = heap
        .groups
        .iter()
        .map(|group| [u32::from(group.kind.0), group.class, group.shown, name(group.name)])
        .collect();
    out.part("groups", &groups)?;
    let classes: Vec<[u32; 2]> =
        heap.classes.iter().map(|class| [class.name.0, class.object]).collect();
    out.part("classes", &classes)?;
    let objects: Vec<[u32; 4]> = heap
        .class_objects
        .iter()
        .map(|class| [class.object, name(class.name), class.superclass, class.real])
        .collect();
    out.part("class_objects", &objects)?;
    let sites: Vec<[u32; 4]> = heap
        .sites
        .iter()
        .map(|site| {
            let caller = site.caller.unwrap_or(NONE);
            [site.file.0, site.line, name(site.method), caller]
        })
        .collect();
    out.part("sites", &sites)?;
    let shapes: Vec<[u64; 8]> = heap
        .shapes
        .iter()
        .map(|shape| {
            [
                shape.address,
                shape.id,
                shape.parent_id.unwrap_or(u64::MAX),
                shape.depth,
                u64::from(shape.shape_type.0),
                u64::from(name(shape.edge_name)),
                shape.edges,
                shape.memsize,
            ]
        })
        .collect();
    out.part("shapes", &shapes)?;
    let times: Vec<[u64; 2]> =
        heap.times.iter().map(|&(generation, time)| [u64::from(generation), time]).collect();
    out.part("times", &times)?;
    out.part("facts", &heap.facts.keys)?;
    out.part("facts.values", &heap.facts.values)?;
    let ids: Vec<[u64; 2]> =
        heap.object_ids.iter().map(|&(object, id)| [u64::from(object), id]).collect();
    out.part("object_ids", &ids)?;
    let directory = Directory {
        fingerprint,
        source: heap.source.clone(),
        objects: heap.objects,
        categories: heap.categories.iter().map(|category| category.name.clone()).collect(),
        notes: heap.notes.iter().map(|(kind, json)| (*kind as u8, json.clone())).collect(),
        texts: (heap.texts.begin, heap.texts.length),
        places: std::mem::take(&mut out.places),
    };
    let json = serde_json::to_vec(&directory)?;
    out.part("directory", &json)?;
    let place = &out.places[0];
    let mut trailer = Vec::new();
    trailer.extend_from_slice(&place.offset.to_le_bytes());
    trailer.extend_from_slice(&place.length.to_le_bytes());
    trailer.extend_from_slice(&place.checksum.to_le_bytes());
    trailer.extend_from_slice(&VERSION.to_le_bytes());
    trailer.extend_from_slice(&MAGIC);
    out.file.write_all(&trailer)
}
