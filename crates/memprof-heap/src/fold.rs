//! Since Ruby 4.0 an object's instance variables may be in a separate internal object (`fields`). It adds nothing to its owner,
//! so its references and its size are attributed to the owner.

use std::io;

use super::label::{Label, Packed};
use super::{FOLDED, Heap, NONE};
use crate::graph::{BitSet, Stop};
use memprof_dump::record::Kind;

const FIELDS: &str = "fields";

/// Folds these objects, unless it is stopped: into the referrer that says it is theirs, or else the first. A cache of the VM may
/// refer to one, too.
pub(super) fn fold(heap: &mut Heap, stop: Stop<'_>) -> io::Result<()> {
    stop.check()?;
    let is_fields: Vec<bool> = heap
        .groups
        .iter()
        .map(|group| {
            let name = group.name.map(|name| heap.names.name(name));
            group.kind == Kind::IMEMO && name == Some(FIELDS)
        })
        .collect();
    if !is_fields.contains(&true) {
        return Ok(());
    }
    let groups = heap.columns.group.get()?;
    let offsets = heap.columns.offsets.get()?;
    let targets = heap.columns.targets.get()?;
    let labels = heap.columns.labels.get()?;
    let folds =
        |node: u32| groups.get(node as usize).is_some_and(|&group| is_fields[group as usize]);
    let row = |node: u32| offsets[node as usize] as usize..offsets[node as usize + 1] as usize;
    let mut flags = heap.columns.flags.get()?.to_vec();
    let sizes = heap.columns.memsize.get()?;
    let mut memsize: Vec<u64> = (0..heap.objects).map(|id| sizes.get(id)).collect();
    let mut owner = vec![NONE; groups.len()];
    let is_named = |edge: usize| {
        let label = labels.get(edge).map(|&label| Packed(label).label());
        matches!(label, Some(Label::Role(name)) if heap.names.name(name) == FIELDS)
    };
    let mut named = BitSet::new(groups.len());
    for node in (0..heap.objects).filter(|&node| !folds(node)) {
        stop.at(node)?;
        for edge in row(node).filter(|&edge| folds(targets[edge])) {
            let target = targets[edge];
            if is_named(edge) && named.insert(target) || owner[target as usize] == NONE {
                owner[target as usize] = node;
            }
        }
    }
    for fields in (0..heap.objects as usize).filter(|&node| owner[node] != NONE) {
        memsize[owner[fields] as usize] += std::mem::take(&mut memsize[fields]);
        flags[fields] |= FOLDED.0;
    }
    let mut rows = Unfolded::default();
    for node in 0..=heap.root() {
        stop.at(node)?;
        rows.offsets.push(rows.targets.len() as u32);
        let object = owner.get(node as usize);
        if object.is_some_and(|&owner| owner != NONE) {
            continue;
        }
        let begin = rows.targets.len();
        let mut inside = Vec::new();
        for index in row(node) {
            let target = targets[index];
            if owner.get(target as usize) == Some(&node) {
                inside.push(target);
            } else {
                rows.targets.push(target);
                rows.labels.extend(labels.get(index));
            }
        }
        for fields in inside {
            for index in row(fields) {
                // The owner itself already lists this reference.
                if rows.targets[begin..].contains(&targets[index]) {
                    continue;
                }
                rows.targets.push(targets[index]);
                rows.labels.extend(labels.get(index));
            }
        }
    }
    rows.offsets.push(rows.targets.len() as u32);
    if !rows.labels.is_empty() {
        rows.labels.resize(rows.targets.len(), Packed::NONE.0);
    }
    heap.columns.offsets = rows.offsets.into();
    heap.columns.targets = rows.targets.into();
    heap.columns.labels = rows.labels.into();
    heap.columns.flags = flags.into();
    heap.columns.memsize = memsize.into_iter().collect::<super::Sizes>().into();
    Ok(())
}

#[derive(Default)]
struct Unfolded {
    offsets: Vec<u32>,
    targets: Vec<u32>,
    labels: Vec<u32>,
}
