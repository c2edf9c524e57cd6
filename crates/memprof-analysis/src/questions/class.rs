//! `class`: a class or module: its ancestors, its contents, its instances.

#[cfg(test)]
mod tests;

use std::cmp::Reverse;

use rustc_hash::{FxHashMap, FxHashSet};
use serde::{Deserialize, Serialize};

use super::describe::{Described, Describer, Named};
use super::list::{List, Measure, Measured};
use super::object::Reference;
use super::tally::{Groups, Tally};
use super::{Error, Limit};
use crate::order;
use memprof_dump::record::{Flags, Kind};
use memprof_heap::graph::filled;
use memprof_heap::{ClassObject, Heap, Label, NONE, Packed};

/// `class`: all about a class or module.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Question {
    /// Name, such as `Shop::Order`, or address, such as `0x7f12a0`.
    pub of: String,
    /// Maximum number of subclasses, constants, methods and variables, of each.
    #[serde(default)]
    pub limit: Limit<50>,
}

/// A class with its instances.
#[derive(Clone, Debug, Serialize)]
pub struct Subclass {
    /// The class.
    #[serde(flatten)]
    pub object: Described,
    /// Instances, without those of its own subclasses.
    pub instances: u64,
    /// Sum of their memsizes.
    pub instances_size: u64,
}

/// Instances of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Instances {
    /// Objects.
    pub count: u64,
    /// Sum of their memsizes.
    pub size: u64,
    /// Retained size; null if the dump has no roots.
    pub retained: Option<u64>,
}

/// Some of a class's references.
#[derive(Clone, Debug, Serialize)]
pub struct Part {
    /// The first rows, those that retain most.
    pub rows: Vec<Reference>,
    /// Total number.
    pub count: usize,
    /// Sum of their retained sizes.
    pub retained: u64,
}

/// The answer.
#[derive(Clone, Debug, Serialize)]
pub struct Answer {
    /// The class or module itself.
    #[serde(flatten)]
    pub object: Described,
    /// Its name; null if it has none.
    pub name: Option<String>,
    /// Others with this name: old versions remain when code is reloaded and something references them.
    pub versions: Vec<Described>,
    /// Its superclass.
    pub superclass: Option<Described>,
    /// Prepended modules, superclasses and included modules in method lookup order. The class itself is included only
    /// after its prepended modules.
    pub ancestors: Vec<Described>,
    /// Direct instances, without those of subclasses.
    pub instances: Instances,
    /// The filter that chooses them; null if there is none.
    pub r#where: Option<String>,
    /// Classes whose superclass it is, the ones with most instances first.
    pub subclasses: Vec<Subclass>,
    /// Total number.
    pub subclasses_count: usize,
    /// Constants in it.
    pub constants: Part,
    /// Methods of its instances.
    pub methods: Part,
    /// Its singleton methods.
    pub singleton_methods: Part,
    /// Its class variables, and instance variables.
    pub variables: Part,
}

/// Maximum length of a superclass chain: a broken dump may contain cycles.
const STEPS: usize = 1000;

impl Question {
    /// The answer.
    ///
    /// # Errors
    /// If the class does not exist, or the index cannot be read.
    pub fn answer(&self, heap: &Heap) -> Result<Answer, Error> {
        let (node, versions) = self.find(heap)?;
        let describer = Describer::new(heap)?;
        let asked = Asked { heap, describer: &describer, limit: self.limit };
        let ancestors = asked.ancestors(node);
        let tallies = asked.instances()?;
        let facts = heap.class_object(node);
        let of_class = |class: u32| {
            let tally = tallies.get(&class).copied().unwrap_or_default();
            (tally.count, tally.size)
        };
        let (subclasses, subclasses_count) = asked.subclasses(node, of_class)?;
        let singleton = describer.words.class_of(node);
        let singleton = singleton.filter(|&class| asked.singleton(class));
        let instances = tallies.get(&node).copied().unwrap_or_default();
        Ok(Answer {
            object: describer.describe(node),
            name: facts.and_then(|facts| facts.name).map(|name| heap.name(name).to_owned()),
            versions: versions.into_iter().map(|other| describer.describe(other)).collect(),
            superclass: superclass(heap, node).map(|node| describer.describe(node)),
            ancestors: ancestors.iter().map(|&node| describer.describe(node)).collect(),
            instances: Instances {
                count: instances.count,
                size: instances.size,
                retained: (!heap.categories().is_empty()).then_some(instances.retained),
            },
            r#where: asked.filter(node),
            subclasses,
            subclasses_count,
            constants: asked.part(&[node], |label| matches!(label, Label::Constant(_))),
            methods: asked.methods(Some(node)),
            singleton_methods: asked.methods(singleton),
            variables: asked
                .part(&[node], |label| matches!(label, Label::Ivar(_) | Label::ClassVariable(_))),
        })
    }

    /// The class, and others with its name.
    fn find(&self, heap: &Heap) -> Result<(u32, Vec<u32>), Error> {
        let missing = || Error::Question(format!("no class or module is called {:?}", self.of));
        let real = || {
            let classes = heap.class_objects().iter();
            classes.filter(|class| class.real == class.object)
        };
        let named = |name| {
            let same = real().filter(move |class: &&ClassObject| class.name == Some(name));
            same.map(|class| class.object)
        };
        if self.of.starts_with("0x") {
            let node = Named::Address(self.of.clone()).find(heap)?;
            let facts = heap.class_object(node).ok_or_else(|| {
                Error::Question(format!("the object at {} is not a class or module", self.of))
            })?;
            let others = facts
                .name
                .map_or_else(Vec::new, |name| named(name).filter(|&other| other != node).collect());
            return Ok((node, others));
        }
        let name = heap.names().find(&self.of).ok_or_else(missing)?;
        let retained = heap.retained()?;
        let mut found: Vec<u32> = named(name).collect();
        order::sort_by_key(&mut found, |&class| Reverse(retained.get(class)));
        let node = *found.first().ok_or_else(missing)?;
        Ok((node, found.split_off(1)))
    }
}

/// The superclass, as Ruby's `superclass` returns it: without included modules.
pub fn superclass(heap: &Heap, class: u32) -> Option<u32> {
    let mut node = class;
    for _ in 0..STEPS {
        node = heap.class_object(node)?.superclass;
        if heap.kind(node).ok().flatten() == Some(Kind::CLASS) {
            return Some(node);
        }
    }
    None
}

struct Asked<'h, 'd> {
    heap: &'h Heap,
    describer: &'d Describer<'h>,
    limit: Limit<50>,
}

impl Asked<'_, '_> {
    fn kind(&self, node: u32) -> Option<Kind> {
        self.heap.kind(node).ok().flatten()
    }

    fn singleton(&self, node: u32) -> bool {
        let flags = self.heap.flag_words().ok();
        let flags = flags.and_then(|flags| flags.get(node as usize));
        flags.is_some_and(|flags| flags & Flags::SINGLETON.0 != 0)
    }

    /// The class and everything above it in the dump.
    fn chain(&self, node: u32) -> impl Iterator<Item = u32> {
        let above = |node: &u32| {
            let facts = self.heap.class_object(*node)?;
            Some(facts.superclass).filter(|&superclass| superclass != NONE)
        };
        std::iter::successors(Some(node), above).take(STEPS)
    }

    /// The class or module that a link of a chain represents: for an iclass, the included module.
    fn stands_for(&self, node: u32) -> u32 {
        match self.kind(node) {
            Some(Kind::ICLASS) => self.describer.words.class_of(node).unwrap_or(node),
            _ => node,
        }
    }

    /// The origin with the methods of a class or module that has prepended modules: the iclass after these that
    /// represents it. `None` if it has no prepended modules.
    fn origin(&self, node: u32) -> Option<u32> {
        let mut chain = self.chain(node).skip(1);
        let included = |&node: &u32| self.kind(node) == Some(Kind::ICLASS);
        chain.by_ref().take_while(included).find(|&above| self.stands_for(above) == node)
    }

    /// The method lookup order, as Ruby's `ancestors` returns it, without the class itself if that comes first.
    fn ancestors(&self, node: u32) -> Vec<u32> {
        let mut found = Vec::new();
        // Modules with prepended ones appear twice each time, and count where their methods are.
        let mut begun: FxHashMap<u32, bool> = FxHashMap::default();
        for place in self.chain(node) {
            let shown = self.stands_for(place);
            let begun = begun.entry(shown).or_insert(false);
            *begun = !*begun && self.origin(shown).is_some();
            if !*begun {
                found.push(shown);
            }
        }
        if found.first() == Some(&node) {
            found.remove(0);
        }
        found
    }

    /// Instances of all classes, by their numbers.
    fn instances(&self) -> Result<FxHashMap<u32, Tally>, Error> {
        let heap = self.heap;
        let mut numbers: FxHashMap<u32, u32> = FxHashMap::default();
        let mut classes = Vec::new();
        let table: Vec<u32> = heap
            .groups()
            .iter()
            .map(|group| {
                let class = heap.classes().get(group.shown as usize);
                let class = class.map_or(NONE, |class| class.object);
                if class == NONE {
                    return NONE;
                }
                *numbers.entry(class).or_insert_with(|| {
                    classes.push(class);
                    classes.len() as u32 - 1
                })
            })
            .collect();
        let numbers = heap.group_numbers()?;
        let of = |id: u32| table.get(numbers[id as usize] as usize).copied();
        let groups = Groups {
            of: filled(numbers.len(), |id| of(id).unwrap_or(NONE)),
            count: classes.len(),
            parents: Vec::new(),
        };
        Ok(classes.into_iter().zip(groups.tally(heap)?).collect())
    }

    fn subclasses(
        &self,
        node: u32,
        instances: impl Fn(u32) -> (u64, u64),
    ) -> Result<(Vec<Subclass>, usize), Error> {
        let classes = self.heap.class_objects().iter();
        let classes = classes.filter(|class| class.real == class.object);
        let below: Vec<u32> = classes
            .map(|class| class.object)
            .filter(|&class| {
                self.kind(class) == Some(Kind::CLASS) && superclass(self.heap, class) == Some(node)
            })
            .collect();
        let sums = Measured(|class, measure| {
            let (count, size) = instances(class);
            Some(if measure == Measure::Count { count } else { size })
        });
        let count = below.len();
        let list = List::new(&sums, &[Measure::Count, Measure::Size]);
        let rows = list.page(below, self.limit, 0).shown.into_iter().map(|class| {
            let (instances, instances_size) = instances(class);
            Subclass { object: self.describer.describe(class), instances, instances_size }
        });
        Ok((rows.collect(), count))
    }

    /// The filter that chooses the instances: filters know classes by name.
    fn filter(&self, node: u32) -> Option<String> {
        let mut classes = self.heap.classes().iter();
        let class = classes.find(|class| class.object == node)?;
        Some(format!("class = {:?}", self.heap.name(class.name)))
    }

    /// The methods of a class.
    fn methods(&self, node: Option<u32>) -> Part {
        let nodes: Vec<u32> =
            node.into_iter().flat_map(|node| [Some(node), self.origin(node)]).flatten().collect();
        self.part(&nodes, |label| matches!(label, Label::Method(_)))
    }

    /// The references of these nodes with such a label, the first one of each label: in dumps of earlier versions,
    /// entries of a class's caches follow its methods.
    fn part(&self, nodes: &[u32], wanted: impl Fn(Label) -> bool) -> Part {
        let words = &self.describer.words;
        let edges = nodes.iter().filter_map(|&node| words.row(node)).flatten();
        let labels = self.heap.labels().unwrap_or(&[]);
        let label = |edge: usize| Packed(labels.get(edge).copied().unwrap_or(0)).label();
        let mut seen = FxHashSet::default();
        let mut rows: Vec<Reference> = edges
            .filter(|&edge| wanted(label(edge)))
            .map(|edge| (words.label_of(edge), words.target(edge)))
            .filter(|(label, _)| seen.insert(label.clone()))
            .map(|(label, object)| Reference { label, object: self.describer.describe(object) })
            .collect();
        order::sort_by(&mut rows, |one, other| {
            let size = |row: &Reference| Reverse(row.object.retained);
            size(one).cmp(&size(other)).then_with(|| one.label.cmp(&other.label))
        });
        let (count, retained) = (rows.len(), rows.iter().map(|row| row.object.retained));
        let retained = retained.sum();
        rows.truncate(self.limit.0);
        Part { rows, count, retained }
    }
}
