//! `procs`: blocks, lambdas and callbacks by the place that defines them: leaked callbacks are many from the same
//! place.

use rustc_hash::{FxHashMap, FxHashSet};
use serde::{Deserialize, Serialize};

use super::describe::{Described, Describer};
use super::holders::{Holder, holders};
use super::list::{List, Measure, Order, Page};
use super::numbering::numbered;
use super::tally::{Groups, Tally, percent};
use super::{Error, Limit, Phrase, Selection, path};
use crate::order;
use memprof_dump::record::{Kind, NameId, Value};
use memprof_heap::graph::BitSet;
use memprof_heap::{Heap, Label, NONE, Packed};

/// Sort order of the places.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sort {
    /// Retained size of the procs.
    #[default]
    Retained,
    /// Procs.
    Count,
    /// Sum of their memsizes.
    Size,
}

impl Sort {
    fn order(self) -> Order {
        match self {
            Sort::Retained => &[Measure::Retained, Measure::Count, Measure::Size],
            Sort::Count => &[Measure::Count, Measure::Retained, Measure::Size],
            Sort::Size => &[Measure::Size, Measure::Count, Measure::Retained],
        }
    }
}

/// `procs`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Question {
    /// Sort order of the places (default: retained size).
    pub sort: Sort,
    /// Filter for the procs (default: all).
    pub r#where: Option<String>,
    /// Maximum number of places.
    pub limit: Limit<20>,
    /// Places to skip (default: none).
    pub offset: usize,
}

/// An object captured by procs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Capture {
    /// `self`, or `local name`.
    pub label: String,
    /// Class of the captured object; classes and modules have their own name.
    pub class: String,
    /// Number of procs that captured it.
    pub count: u64,
}

/// Procs defined at the same place.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// File; null if unknown.
    pub file: Option<String>,
    /// Line.
    pub line: Option<u32>,
    /// Method or block that defines it.
    pub method: Option<String>,
    /// Whether the place is the definition; otherwise it is the allocation site.
    pub written: bool,
    /// Procs.
    pub count: u64,
    /// Sum of their memsizes.
    pub size: u64,
    /// Retained size; null if the dump has no roots.
    pub retained: Option<u64>,
    /// Retained size as a percentage of the whole heap's memsize.
    pub percent: f64,
    /// First generation in which one of them was allocated.
    pub first_generation: Option<u32>,
    /// Last such generation.
    pub last_generation: Option<u32>,
    /// Captured objects, the most common first.
    pub captures: Vec<Capture>,
    /// Their referrers.
    pub holders: Vec<Holder>,
    /// The one that retains most.
    pub example: Described,
    /// A path from a root to the example, in words; null if no root reaches it.
    pub path: Option<String>,
    /// Path without the example itself, with source locations as separate parts; null if no root reaches it.
    pub retained_by: Option<Phrase>,
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Answer {
    /// Sort order of the places.
    pub sort: Sort,
    /// Places.
    pub rows: Vec<Row>,
    /// Places after those that are shown.
    pub more: usize,
    /// Procs.
    pub count: u64,
    /// Sum of their memsizes.
    pub size: u64,
}

/// Maximum number of captured objects and of referrers per place.
const PARTS: usize = 5;

/// Names of the facts about a proc's definition: file, line, method.
pub(super) const WRITTEN: [&str; 3] = ["source_file", "source_line", "name"];

/// The definition of procs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Place {
    pub file: Option<NameId>,
    pub line: u32,
    pub method: Option<NameId>,
    written: bool,
}

struct Procs {
    groups: Groups,
    places: Vec<Place>,
}

impl Question {
    /// The answer.
    ///
    /// # Errors
    /// If the filter is invalid, or the index cannot be read.
    pub fn answer(&self, heap: &Heap) -> Result<Answer, Error> {
        let selection = Selection::new(heap, self.r#where.as_deref())?;
        let procs = Procs::of(heap, &selection)?;
        let tallies = procs.groups.tally(heap)?;
        let places = List::new(&tallies, self.sort.order());
        let Page { shown, more } = places.page(0..tallies.len() as u32, self.limit, self.offset);
        let sum = |part: fn(&Tally) -> u64| tallies.iter().map(part).sum();
        Ok(Answer {
            sort: self.sort,
            rows: procs.rows(heap, &tallies, &shown)?,
            more,
            count: sum(|tally| tally.count),
            size: sum(|tally| tally.size),
        })
    }
}

impl Procs {
    fn of(heap: &Heap, selection: &Selection<'_>) -> Result<Procs, Error> {
        let groups = heap.group_numbers()?;
        let proc = |group: &memprof_heap::Group| {
            group.kind == Kind::DATA && group.name.is_some_and(|name| heap.name(name) == "proc")
        };
        let is_proc: Vec<bool> = heap.groups().iter().map(proc).collect();
        let sites = heap.site_numbers()?;
        let names = WRITTEN.map(|name| heap.names().find(name));
        let made = |id: u32| {
            let site = sites.get(id as usize).and_then(|&site| heap.sites().get(site as usize));
            Place {
                file: site.map(|site| site.file),
                line: site.map_or(0, |site| site.line),
                method: site.and_then(|site| site.method),
                written: false,
            }
        };
        let place = |id: u32| {
            let is_proc = is_proc.get(groups[id as usize] as usize) == Some(&true);
            let chosen = is_proc && selection.contains(id);
            chosen.then(|| written(heap, id, names).unwrap_or_else(|| made(id)))
        };
        let (of, places) = numbered(groups.len(), place, |_| None);
        let places = places.keys;
        Ok(Procs { groups: Groups { of, count: places.len(), parents: Vec::new() }, places })
    }

    fn rows(&self, heap: &Heap, tallies: &[Tally], order: &[u32]) -> Result<Vec<Row>, Error> {
        let describer = Describer::new(heap)?;
        let retained = heap.retained()?;
        let rooted = !heap.categories().is_empty();
        let whole = heap.size()?;
        let mut rank = vec![NONE; self.places.len()];
        order.iter().zip(0..).for_each(|(&place, row)| rank[place as usize] = row);
        let row = |id: u32| rank.get(self.groups.of[id as usize] as usize).copied();
        // Most objects are not procs, and the set is small enough for the CPU cache.
        let shown = |(): &mut (), id: u32| row(id).is_some_and(|row| row != NONE);
        let (shown, _) = BitSet::filled(self.groups.of.len(), || (), shown);
        let of = |id: u32| match shown.contains(id) {
            true => row(id).unwrap_or(NONE),
            false => NONE,
        };
        let holders = holders(heap, &describer.words, order.len(), of, PARTS)?;
        let mut examples = vec![NONE; order.len()];
        for id in shown.iter() {
            let example = &mut examples[of(id) as usize];
            if *example == NONE || retained.get(*example) < retained.get(id) {
                *example = id;
            }
        }
        let procs = shown.iter().map(|id| (id, of(id)));
        let captures = captures(heap, &describer, order.len(), procs)?;
        let name = |name| heap.name(name).to_owned();
        let mut rows = Vec::with_capacity(order.len());
        for (((&number, holders), captures), example) in
            order.iter().zip(holders).zip(captures).zip(examples)
        {
            let (place, tally) = (self.places[number as usize], &tallies[number as usize]);
            let (first_generation, last_generation) = tally.generations();
            let nodes = path::to(heap, example)?;
            rows.push(Row {
                file: place.file.map(name),
                line: (place.line != 0).then_some(place.line),
                method: place.method.map(name),
                written: place.written,
                count: tally.count,
                size: tally.size,
                retained: rooted.then_some(tally.retained),
                percent: percent(tally.retained, whole),
                first_generation,
                last_generation,
                captures,
                holders,
                example: describer.describe(example),
                path: (!nodes.is_empty()).then(|| describer.words.path(&nodes).to_string()),
                retained_by: (!nodes.is_empty()).then(|| describer.words.holder(&nodes)),
            });
        }
        Ok(rows)
    }
}

/// The definition of a proc, if the dump has it.
pub(super) fn written(
    heap: &Heap,
    id: u32,
    [file, line, method]: [Option<NameId>; 3],
) -> Option<Place> {
    let text = |name: Option<NameId>| match heap.facts().get(id, name?)? {
        Value::Name(text) | Value::Symbol(text) => Some(text),
        _ => None,
    };
    let line = match line.and_then(|line| heap.facts().get(id, line)) {
        Some(Value::Int(line)) => u32::try_from(line).unwrap_or(0),
        _ => 0,
    };
    Some(Place { file: Some(text(file)?), line, method: text(method), written: true })
}

/// The objects that the procs of each group captured, directly or in their environment.
fn captures(
    heap: &Heap,
    describer: &Describer<'_>,
    groups: usize,
    procs: impl Iterator<Item = (u32, u32)>,
) -> Result<Vec<Vec<Capture>>, Error> {
    let graph = heap.graph(&[])?;
    let labels = heap.labels()?;
    // Label and class, with the number of procs and an example reference.
    let mut counts: FxHashMap<(u32, u32, String), (u64, usize)> = FxHashMap::default();
    let mut seen: FxHashSet<(u32, u32)> = FxHashSet::default();
    let edges = |node: u32| describer.words.row(node).unwrap_or(0..0);
    let label = |edge: usize| Packed(labels.get(edge).copied().unwrap_or(0));
    let role = |edge: usize, role: &str| matches!(label(edge).label(), Label::Role(name) if heap.name(name) == role);
    for (id, group) in procs {
        seen.clear();
        let environments =
            edges(id).filter(|&edge| role(edge, "env")).map(|edge| graph.targets[edge]);
        let own = edges(id).filter(|&edge| role(edge, "self"));
        let locals = std::iter::once(id).chain(environments).flat_map(edges);
        let locals = locals.filter(|&edge| matches!(label(edge).label(), Label::Local(_)));
        for edge in own.chain(locals) {
            let target = graph.targets[edge];
            if seen.insert((label(edge).0, target)) {
                let key = (group, label(edge).0, describer.words.short(target));
                counts.entry(key).or_insert((0, edge)).0 += 1;
            }
        }
    }
    let mut all: Vec<Vec<Capture>> = vec![Vec::new(); groups];
    for ((group, _, class), (count, edge)) in counts {
        let label = describer.words.label_of(edge).unwrap_or_default();
        if let Some(list) = all.get_mut(group as usize) {
            list.push(Capture { label, class, count });
        }
    }
    for list in &mut all {
        order::sort_by(list, |one, other| {
            other
                .count
                .cmp(&one.count)
                .then_with(|| (&one.label, &one.class).cmp(&(&other.label, &other.class)))
        });
        list.truncate(PARTS);
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::{Answer, Limit, Question, Sort};
    use crate::tests::ask;
    use memprof_dump::record::Kind;
    use memprof_heap::Heap;
    use memprof_heap::testing::{Thing, class, heap, string, thing};

    fn callback(number: u64) -> [Thing; 3] {
        let at = 0x10_0000 + number * 0x1000;
        [
            thing(at, Kind::DATA, "Proc")
                .named("proc")
                .written("driver.rb", 7)
                .size(80)
                .to("self", 0x1100)
                .to("env", at + 0x100),
            thing(at + 0x100, Kind::IMEMO, "").named("env").to("local text", at + 0x200),
            string(at + 0x200, "payload").size(1000),
        ]
    }

    fn driver() -> Heap {
        let mut things = vec![
            class(0x1000, "Driver", 0),
            thing(0x1100, Kind::OBJECT, "Driver").to("@callbacks", 0x1200),
            thing(0x1200, Kind::ARRAY, "Array").length(10),
            thing(0x1300, Kind::DATA, "Proc").named("proc").at("app.rb", 3, "run", 2),
            thing(0x1400, Kind::DATA, "Proc").named("proc"),
        ];
        for number in 0..10 {
            things.extend(callback(number));
            let held = things[2].clone().to(&format!("[{number}]"), 0x10_0000 + number * 0x1000);
            things[2] = held;
        }
        heap(&[("vm", &[0x1100, 0x1300])], &things)
    }

    #[test]
    fn finds_callbacks_that_pile_up() {
        let heap = driver();
        let Answer { rows, more, count, size, .. } =
            Question::default().answer(&heap).expect("an answer");
        assert_eq!((rows.len(), more, count, size), (3, 0, 12, 880));
        let row = &rows[0];
        assert_eq!(
            (row.file.as_deref(), row.line, row.written),
            (Some("driver.rb"), Some(7), true)
        );
        assert_eq!((row.count, row.size, row.retained), (10, 800, Some(10 * 1120)));
        let captures: Vec<(&str, &str, u64)> = row
            .captures
            .iter()
            .map(|capture| (capture.label.as_str(), capture.class.as_str(), capture.count))
            .collect();
        assert_eq!(captures, [("local text", "String", 10), ("self", "Driver", 10)]);
        assert_eq!((row.holders[0].class.as_str(), row.holders[0].count), ("Array", 10));
        assert!(
            row.path.as_deref().is_some_and(|path| path.contains("@callbacks")),
            "{:?}",
            row.path
        );
        let made = &rows[1];
        assert_eq!(
            (made.file.as_deref(), made.written, made.first_generation),
            (Some("app.rb"), false, Some(2))
        );
        assert_eq!(
            (rows[2].file.as_deref(), rows[2].line, rows[2].path.as_deref()),
            (None, None, None)
        );
    }

    #[test]
    fn takes_a_filter_and_a_limit() {
        let heap = driver();
        let filtered = Question {
            r#where: Some("tracked".to_owned()),
            sort: Sort::Count,
            limit: Limit(5),
            ..Question::default()
        };
        assert_eq!(filtered.answer(&heap).expect("an answer").count, 1);
        let json = ask(&heap, "procs", serde_json::json!({ "sort": "count", "limit": 1 }))
            .expect("an answer");
        assert_eq!((json["more"].as_u64(), json["rows"][0]["count"].as_u64()), (Some(2), Some(10)));
        let whole = ask(&heap, "procs", serde_json::json!({})).expect("an answer");
        let rest = ask(&heap, "procs", serde_json::json!({ "offset": 1, "limit": 1 }));
        let rest = rest.expect("an answer");
        assert_eq!(rest["rows"][0], whole["rows"][1]);
        assert_eq!(rest["more"].as_u64(), Some(1));
    }
}
