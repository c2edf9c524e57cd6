//! Links the records into a heap: references become object numbers.

use std::io;
use std::mem;

use super::columns::{Columns, Dangling};
use super::groups::{ClassFacts, Naming};
use super::label::{Label, Packed};
use super::object_facts::Facts;
use super::pages::{Addresses, Numbers};
use super::sizes::Sizes;
use super::{Builder, Category, Heap, NONE, Source};
use crate::graph::{Stop, Stopped};
use memprof_dump::read::invalid;

/// Numbers objects in order of address, resolves references, and finds classes, unless it is stopped.
pub(super) fn link(
    mut builder: Builder,
    source: Source,
    stop: Stop<'_>,
) -> io::Result<(Heap, std::fs::File)> {
    stop.check()?;
    let codes = mem::take(&mut builder.codes);
    let numbers = mem::take(&mut builder.pages).number(&codes);
    let ascending = codes.iter().enumerate().all(|(index, &code)| numbers.id(code) == index as u32);
    if !(ascending && numbers.count() as usize == codes.len()) {
        reorder(&mut builder, &codes, &numbers, stop)?;
    }
    drop(codes);
    let addresses = numbers.addresses();
    let mut dangling = Vec::new();
    let missing = resolve(&mut builder, &numbers, &mut dangling, stop)?;
    let categories = roots(&mut builder, &numbers, &mut dangling)?;
    let mut classes: Vec<ClassFacts> = mem::take(&mut builder.classes);
    for facts in &mut classes {
        facts.superclass = resolved(&numbers, facts.superclass);
    }
    let mut naming = Naming {
        names: &mut builder.names,
        addresses: &addresses,
        group: &builder.group,
        flags: &builder.flags,
        facts: &classes,
        raw: &builder.groups,
        classes: Vec::new(),
        by_object: Default::default(),
        by_name: Default::default(),
    };
    stop.check()?;
    let groups = naming.groups(&numbers);
    let class_objects = naming.class_objects();
    let classes = mem::take(&mut naming.classes);
    let slot_sizes = slot_sizes(&addresses, &builder.slot_size);
    let (file, texts) = builder.texts.finish()?;
    let mut times: Vec<(u32, u64)> = builder.times.into_iter().collect();
    times.sort_unstable();
    let columns = Columns {
        group: builder.group.into(),
        flags: builder.flags.into(),
        memsize: builder.memsize.into(),
        length: builder.length.0.into(),
        shape: builder.shape.0.into(),
        site: builder.site.0.into(),
        generation: builder.generation.0.into(),
        text: builder.text.0.into(),
        offsets: builder.rows.offsets.into(),
        targets: builder.rows.targets.into(),
        labels: builder.rows.labels.into_iter().map(|label| label.0).collect::<Vec<u32>>().into(),
        dangling: Dangling {
            from: dangling.iter().map(|&(from, _)| from).collect::<Vec<u32>>().into(),
            to: dangling.iter().map(|&(_, to)| to).collect::<Vec<u64>>().into(),
        },
    };
    let heap = Heap {
        source: Source { missing, ..source },
        objects: numbers.count(),
        addresses,
        slot_sizes,
        categories,
        names: builder.names,
        groups,
        classes,
        class_objects,
        sites: builder.sites,
        shapes: builder.shapes,
        times,
        notes: builder.notes,
        facts: Facts::new(builder.facts),
        object_ids: builder.object_ids,
        texts,
        columns,
        derived: Default::default(),
        cache: Default::default(),
        silent: Vec::new(),
        capturing_thread: None,
    };
    Ok((heap, file))
}

fn resolved(numbers: &Numbers, code: u32) -> u32 {
    if code == NONE { NONE } else { numbers.id(code) }
}

/// Sorts objects by address. Of several at one address the first is used.
fn reorder(
    builder: &mut Builder,
    codes: &[u32],
    numbers: &Numbers,
    stop: Stop<'_>,
) -> Result<(), Stopped> {
    let mut from = vec![NONE; numbers.count() as usize];
    let mut to = vec![NONE; codes.len()];
    for (index, &code) in codes.iter().enumerate() {
        stop.at(index as u32)?;
        let id = numbers.id(code);
        if from[id as usize] == NONE {
            from[id as usize] = index as u32;
            to[index] = id;
        }
    }
    let gather = |column: &mut Vec<u32>| {
        stop.check()?;
        if !column.is_empty() {
            *column = from.iter().map(|&index| column[index as usize]).collect();
        }
        Ok(())
    };
    gather(&mut builder.group)?;
    gather(&mut builder.flags)?;
    for column in [
        &mut builder.length,
        &mut builder.shape,
        &mut builder.site,
        &mut builder.generation,
        &mut builder.text,
    ] {
        gather(&mut column.0)?;
    }
    builder.slot_size = from.iter().map(|&index| builder.slot_size[index as usize]).collect();
    builder.memsize = from.iter().map(|&index| builder.memsize.get(index)).collect::<Sizes>();
    let renumber = |object: u32| to[object as usize];
    builder.object_ids = mem::take(&mut builder.object_ids)
        .into_iter()
        .map(|(object, id)| (renumber(object), id))
        .filter(|&(object, _)| object != NONE)
        .collect();
    builder.object_ids.sort_unstable();
    builder.classes.iter_mut().for_each(|facts| facts.object = renumber(facts.object));
    builder.classes.retain(|facts| facts.object != NONE);
    builder.classes.sort_unstable_by_key(|facts| facts.object);
    builder.facts.iter_mut().for_each(|fact| fact.object = renumber(fact.object));
    builder.facts.retain(|fact| fact.object != NONE);
    builder.facts.sort_by_key(|fact| fact.object);
    let rows = mem::take(&mut builder.rows);
    let mut ordered = super::builder::Rows::default();
    ordered.targets.reserve(rows.targets.len());
    ordered.labels.reserve(rows.labels.len());
    for (&index, id) in from.iter().zip(0..) {
        stop.at(id)?;
        ordered.offsets.push(ordered.targets.len() as u32);
        let begin = rows.offsets[index as usize] as usize;
        let end =
            rows.offsets.get(index as usize + 1).map_or(rows.targets.len(), |&end| end as usize);
        ordered.targets.extend_from_slice(&rows.targets[begin..end]);
        if !rows.labels.is_empty() {
            ordered.labels.extend_from_slice(&rows.labels[begin..end]);
        }
    }
    builder.rows = ordered;
    Ok(())
}

/// Turns codes into numbers, in place. Removes references to addresses without an object and records them as dangling; returns
/// their number.
fn resolve(
    builder: &mut Builder,
    numbers: &Numbers,
    dangling: &mut Vec<(u32, u64)>,
    stop: Stop<'_>,
) -> Result<u64, Stopped> {
    let rows = &mut builder.rows;
    let count = rows.offsets.len();
    let end = rows.targets.len() as u32;
    rows.offsets.push(end);
    let mut kept = 0;
    for source in 0..count {
        stop.at(source as u32)?;
        let range = rows.offsets[source] as usize..rows.offsets[source + 1] as usize;
        rows.offsets[source] = kept as u32;
        for index in range {
            let id = numbers.id(rows.targets[index]);
            if id == NONE {
                dangling.push((source as u32, numbers.address(rows.targets[index])));
                // The value of a missing key has no name.
                if let Some(next) =
                    rows.labels.get(index + 1).filter(|label| label.label() == Label::Entry)
                {
                    debug_assert_eq!(next.label(), Label::Entry);
                    rows.labels[index + 1] = Packed::NONE;
                }
                continue;
            }
            rows.targets[kept] = id;
            if !rows.labels.is_empty() {
                rows.labels[kept] = rows.labels[index];
            }
            kept += 1;
        }
    }
    rows.offsets[count] = kept as u32;
    rows.targets.truncate(kept);
    rows.labels.truncate(kept);
    Ok(u64::from(end) - kept as u64)
}

/// Appends the rows of root categories and of the super root.
fn roots(
    builder: &mut Builder,
    numbers: &Numbers,
    dangling: &mut Vec<(u32, u64)>,
) -> io::Result<Vec<Category>> {
    let rows = &mut builder.rows;
    let mut categories = Vec::new();
    let labelled =
        !rows.labels.is_empty() || builder.roots.iter().any(|(_, rows)| !rows.labels.is_empty());
    if labelled {
        rows.labels.resize(rows.targets.len(), Packed::NONE);
    }
    for (name, edges) in mem::take(&mut builder.roots) {
        for (index, &code) in edges.targets.iter().enumerate() {
            let id = numbers.id(code);
            if id == NONE {
                let node = numbers.count() + categories.len() as u32;
                dangling.push((node, numbers.address(code)));
                continue;
            }
            rows.targets.push(id);
            if labelled {
                rows.labels.push(edges.labels.get(index).copied().unwrap_or(Packed::NONE));
            }
        }
        rows.offsets.push(rows.targets.len() as u32);
        categories.push(Category { name });
    }
    let objects = numbers.count();
    for category in 0..categories.len() as u32 {
        rows.targets.push(objects + category);
        if labelled {
            rows.labels.push(Packed::NONE);
        }
    }
    rows.offsets.push(rows.targets.len() as u32);
    if rows.targets.len() >= NONE as usize {
        return Err(invalid("more than 4 billion references"));
    }
    Ok(categories)
}

/// The slot size of each page: all slots of a page have the same size. A block of malloc may be beside them, and has none.
fn slot_sizes(addresses: &Addresses, sizes: &[u16]) -> Vec<u16> {
    let ends = addresses.starts.windows(2).map(|ends| ends[0] as usize..ends[1] as usize);
    let known = |objects: std::ops::Range<usize>| {
        let sizes = sizes.get(objects).unwrap_or_default();
        sizes.iter().copied().find(|size| *size > 0).unwrap_or(0)
    };
    ends.map(known).collect()
}
