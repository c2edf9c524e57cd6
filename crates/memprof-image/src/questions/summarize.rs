//! The blocks of a set by signature or pattern; blocks with neither by size. With a recording, also by the line that allocated
//! them.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::allocated::Allocated;
use super::signature::Signature;
use super::{Selection, Total};
use crate::analysis::Analysis;
use crate::blocks::{Block, Kind};
use crate::recorded::Recorded;

/// The set.
#[derive(Deserialize)]
#[serde(transparent)]
pub struct Question(Selection);

/// Groups of blocks, most bytes first.
#[derive(Serialize)]
pub struct Answer {
    total: Total,
    rows: Vec<Row>,
    /// Blocks distinguished only by their sizes.
    unrecognized: Total,
    sizes: Vec<Size>,
    /// Blocks owned by Ruby objects, by the class of the object.
    owners: Vec<OwnerRow>,
    #[serde(flatten)]
    by_place: Option<ByPlace>,
}

/// The same blocks by their recorded allocation sites.
#[derive(Serialize)]
struct ByPlace {
    places: Vec<PlaceRow>,
    /// Used blocks missing in the recording.
    unknown: Total,
}

#[derive(Serialize)]
struct PlaceRow {
    #[serde(flatten)]
    allocated: Allocated,
    #[serde(flatten)]
    total: Total,
}

#[derive(Serialize)]
struct Row {
    /// `signature` or `pattern`.
    kind: &'static str,
    name: String,
    /// The place that the signature points to.
    place: Option<String>,
    /// The C++ class whose objects have it.
    #[serde(skip_serializing_if = "Option::is_none")]
    class: Option<String>,
    #[serde(flatten)]
    total: Total,
}

/// Blocks owned by the objects of a class.
#[derive(Serialize)]
struct OwnerRow {
    class: String,
    #[serde(flatten)]
    total: Total,
    sizes: Vec<Size>,
}

#[derive(Serialize)]
struct Size {
    size: u64,
    #[serde(flatten)]
    total: Total,
}

impl Question {
    /// Sums up the blocks.
    pub fn answer(&self, analysis: &Analysis) -> Result<Answer, String> {
        let mut groups: HashMap<Signature, Total> = HashMap::new();
        let mut sizes: HashMap<u64, Total> = HashMap::new();
        let (mut total, mut unrecognized) = (Total::default(), Total::default());
        let mut by_place = analysis.recorded().map(Places::new);
        let mut owned: HashMap<&str, HashMap<u64, Total>> = HashMap::new();
        self.0.each(analysis, |number, block| {
            total.add(block.size);
            if let Some(class) = class_of_owner(analysis, number, block) {
                let sizes = owned.entry(class).or_default();
                sizes.entry(block.size).or_default().add(block.size);
            }
            if let Some(places) = &mut by_place {
                places.add(number, block);
            }
            match Signature::of(analysis, number, block) {
                Signature::Unknown => {
                    unrecognized.add(block.size);
                    sizes.entry(block.size).or_default().add(block.size);
                }
                signature => groups.entry(signature).or_default().add(block.size),
            }
        })?;
        let mut rows: Vec<Row> = groups
            .into_iter()
            .filter_map(|(signature, total)| {
                let (kind, place) = match signature {
                    Signature::Word(word) => ("signature", analysis.in_file(word)),
                    _ => ("pattern", None),
                };
                let class = signature.class(analysis);
                Some(Row { kind, name: signature.text()?, place, class, total })
            })
            .collect();
        rows.sort_unstable_by(|a, b| (b.total.bytes, &a.name).cmp(&(a.total.bytes, &b.name)));
        let owners = owned.into_iter().map(|(class, sizes)| OwnerRow {
            class: class.to_owned(),
            total: sizes.values().copied().fold(Total::default(), Total::and),
            sizes: by_size(sizes),
        });
        let mut owners: Vec<OwnerRow> = owners.collect();
        owners.sort_unstable_by(|a, b| (b.total.bytes, &a.class).cmp(&(a.total.bytes, &b.class)));
        Ok(Answer {
            total,
            rows,
            unrecognized,
            sizes: by_size(sizes),
            owners,
            by_place: by_place.map(Places::finish),
        })
    }
}

/// The class of the Ruby object that owns a used block, or its type if it is VM-internal.
fn class_of_owner(analysis: &Analysis, number: u32, block: Block) -> Option<&str> {
    if block.kind != Kind::Used || analysis.ruby.pages.is_empty() {
        return None;
    }
    let (owner, _) = analysis.owner(number)?;
    let class = analysis.class_of(owner);
    class.or_else(|| Some(analysis.object_type(owner)?.name()))
}

/// Most bytes first.
fn by_size(sizes: HashMap<u64, Total>) -> Vec<Size> {
    let sizes = sizes.into_iter();
    let mut sizes: Vec<Size> = sizes.map(|(size, total)| Size { size, total }).collect();
    sizes.sort_unstable_by_key(|row| (std::cmp::Reverse(row.total.bytes), row.size));
    sizes
}

/// Sums by place.
struct Places<'a> {
    recorded: &'a Recorded,
    totals: Vec<Total>,
    unknown: Total,
}

impl Places<'_> {
    fn new(recorded: &Recorded) -> Places<'_> {
        Places {
            recorded,
            totals: vec![Total::default(); recorded.places().len()],
            unknown: Total::default(),
        }
    }

    fn add(&mut self, number: u32, block: Block) {
        match self.recorded.index(number) {
            Some(place) => self.totals[place].add(block.size),
            None if block.kind == Kind::Used => self.unknown.add(block.size),
            None => {}
        }
    }

    fn finish(self) -> ByPlace {
        let places = self.recorded.places().iter().zip(self.totals);
        let mut places: Vec<_> = places.filter(|(_, total)| total.count > 0).collect();
        places.sort_unstable_by(|(a, one), (b, other)| {
            (other.bytes, &a.location, &a.method).cmp(&(one.bytes, &b.location, &b.method))
        });
        let rows = places
            .into_iter()
            .map(|(place, total)| PlaceRow { allocated: Allocated::at(place), total });
        ByPlace { places: rows.collect(), unknown: self.unknown }
    }
}
