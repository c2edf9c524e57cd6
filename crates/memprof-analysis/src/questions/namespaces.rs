//! `namespaces`: classes and modules as the tree of their names, with their instances.
//!
//! The histogram by namespace counts instances; this question lists classes and modules, even those without instances.

use std::cmp::Ordering;

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use super::list::{BY_KEY, List, Measure, Order, Rows};
use super::tally::{Groups, Tally, percent};
use super::{Error, Limit, Selection};
use memprof_heap::{Heap, NONE};

/// Sort order of the constants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sort {
    /// Retained size of the classes and modules.
    #[default]
    Retained,
    /// Sum of the memsizes of instances.
    Size,
    /// Instances.
    Count,
    /// Classes and modules.
    Classes,
    /// Name.
    Name,
}

impl Sort {
    fn order(self) -> Order {
        match self {
            Sort::Retained => &[Measure::Retained, Measure::Size],
            Sort::Size => &[Measure::Size, Measure::Count],
            Sort::Count => &[Measure::Count, Measure::Size],
            Sort::Classes => &[Measure::Classes, Measure::Retained],
            Sort::Name => BY_KEY,
        }
    }
}

/// `namespaces`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Question {
    /// The constant whose contents are shown (default: all).
    pub under: Option<String>,
    /// Sort order of the constants (default: retained size).
    pub sort: Sort,
    /// Maximum depth.
    pub depth: Limit<2>,
    /// Maximum number of constants per level.
    pub limit: Limit<20>,
}

/// A constant with its contents.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// Name.
    pub name: String,
    /// `class`, `module`; null if the dump only has constants within it.
    pub r#type: Option<&'static str>,
    /// Number of the class or module.
    pub id: Option<u32>,
    /// Its address.
    pub address: Option<String>,
    /// Classes and modules with exactly this name: several if old versions remain when code is reloaded.
    pub versions: u64,
    /// Classes and modules in it, including itself.
    pub classes: u64,
    /// Bytes of these and of their singleton classes.
    pub class_size: u64,
    /// Retained size; null if the dump has no roots.
    pub retained: Option<u64>,
    /// Retained size as a percentage of the whole heap's memsize.
    pub percent: f64,
    /// Instances of the classes in it.
    pub count: u64,
    /// Sum of their memsizes.
    pub size: u64,
    /// Constants in it.
    pub rows: Vec<Row>,
    /// Constants in it that are not shown.
    pub more: usize,
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Answer {
    /// Sort order of the constants.
    pub sort: Sort,
    /// Constants.
    pub rows: Vec<Row>,
    /// Constants that are not shown.
    pub more: usize,
    /// Named classes and modules of the heap.
    pub classes: u64,
    /// Anonymous classes and modules.
    pub anonymous: u64,
}

/// Maximum depth: the answer is nested as deeply.
const DEEPEST: usize = 40;

/// Constants by number.
#[derive(Default)]
struct Constants<'h> {
    names: Vec<&'h str>,
    numbers: FxHashMap<&'h str, u32>,
    parents: Vec<u32>,
}

impl<'h> Constants<'h> {
    fn number(&mut self, name: &'h str) -> u32 {
        if let Some(&known) = self.numbers.get(name) {
            return known;
        }
        let number = self.names.len() as u32;
        self.names.push(name);
        self.parents.push(NONE);
        self.numbers.insert(name, number);
        if let Some(end) = name.rfind("::").filter(|&end| end > 0) {
            self.parents[number as usize] = self.number_of_part(&name[..end]);
        }
        number
    }

    /// Very deeply nested names are not split completely.
    fn number_of_part(&mut self, name: &'h str) -> u32 {
        if name.matches("::").count() > DEEPEST { NONE } else { self.number(name) }
    }
}

struct Tree<'h> {
    heap: &'h Heap,
    constants: Constants<'h>,
    children: Vec<Vec<u32>>,
    objects: Vec<u32>,
    versions: Vec<u64>,
    /// Number of classes and modules, including those within.
    classes: Vec<u64>,
    own: Vec<Tally>,
    instances: Vec<Tally>,
    whole: u64,
}

/// Constants: what they retain is retained by the classes, the rest is about instances.
impl Rows for Tree<'_> {
    fn measure(&self, number: u32, measure: Measure) -> Option<u64> {
        let index = number as usize;
        match measure {
            Measure::Retained => Some(self.own[index].retained),
            Measure::Classes => Some(self.classes[index]),
            _ => self.instances[index].measure(measure),
        }
    }

    fn compare_keys(&self, one: u32, other: u32) -> Ordering {
        let name = |number: u32| self.constants.names[number as usize];
        name(one).cmp(name(other))
    }
}

impl Question {
    /// The answer.
    ///
    /// # Errors
    /// If the constant does not exist, or the index cannot be read.
    pub fn answer(&self, heap: &Heap) -> Result<Answer, Error> {
        let tree = Tree::of(heap)?;
        let top = match &self.under {
            Some(name) => match tree.constants.numbers.get(name.as_str()) {
                Some(&number) => number as usize,
                None => {
                    return Err(Error::Question(format!("no class or module is in {name:?}")));
                }
            },
            None => tree.constants.names.len(),
        };
        let constants = List::new(&tree, self.sort.order());
        let depth = self.depth.0.clamp(1, DEEPEST);
        let make = |number: u32, rows, more| tree.row(number as usize, rows, more);
        let (rows, more) = constants.nested(&tree.children, top, self.limit, depth, &make);
        let real = heap.class_objects().iter().filter(|class| class.real == class.object);
        Ok(Answer {
            sort: self.sort,
            rows,
            more,
            classes: real.clone().filter(|class| class.name.is_some()).count() as u64,
            anonymous: real.filter(|class| class.name.is_none()).count() as u64,
        })
    }
}

impl<'h> Tree<'h> {
    fn of(heap: &'h Heap) -> Result<Tree<'h>, Error> {
        let selection = Selection::new(heap, None)?;
        let mut constants = Constants::default();
        let mut own = vec![NONE; heap.len() as usize];
        let (mut objects, mut versions) = (Vec::new(), Vec::new());
        for class in heap.class_objects() {
            let real = heap.class_object(class.real);
            let Some(name) = real.and_then(|real| real.name) else {
                continue;
            };
            let number = constants.number(heap.name(name));
            if let Some(own) = own.get_mut(class.object as usize) {
                *own = number;
            }
            objects.resize(constants.names.len(), NONE);
            versions.resize(constants.names.len(), 0_u64);
            if class.real == class.object {
                objects[number as usize] = class.object;
                versions[number as usize] += 1;
            }
        }
        let named = |class: u32| heap.class_object(class).and_then(|class| class.name);
        let table: Vec<u32> = heap
            .groups()
            .iter()
            .map(|group| {
                let class = heap.classes().get(group.shown as usize);
                let name = class.and_then(|class| named(class.object));
                name.map_or(NONE, |name| {
                    constants.numbers.get(heap.name(name)).copied().unwrap_or(NONE)
                })
            })
            .collect();
        let numbers = heap.group_numbers()?.iter().zip(0..);
        let instances = numbers.map(|(&group, id)| match table.get(group as usize) {
            Some(&number) if selection.contains(id) => number,
            _ => NONE,
        });
        let count = constants.names.len();
        let groups = |of: Vec<u32>| Groups { of, count, parents: constants.parents.clone() };
        let (own, instances) = (groups(own), groups(instances.collect()));
        let mut classes = vec![0; count];
        for (&versions, number) in versions.iter().zip(0..) {
            own.chain(number).for_each(|above| classes[above as usize] += versions);
        }
        Ok(Tree {
            heap,
            children: own.children(),
            objects,
            versions,
            classes,
            own: own.tally(heap)?,
            instances: instances.sums(heap)?,
            constants,
            whole: heap.size()?,
        })
    }

    fn row(&self, number: usize, rows: Vec<Row>, more: usize) -> Row {
        let (own, instances) = (&self.own[number], &self.instances[number]);
        let object = self.objects.get(number).copied().filter(|&object| object != NONE);
        let kind = object.and_then(|object| self.heap.kind(object).ok().flatten());
        Row {
            name: self.constants.names[number].to_owned(),
            r#type: kind.map(|kind| kind.name()),
            id: object,
            address: object.map(|object| format!("{:#x}", self.heap.addresses().of(object))),
            versions: self.versions.get(number).copied().unwrap_or(0),
            classes: self.classes[number],
            class_size: own.size,
            retained: (!self.heap.categories().is_empty()).then_some(own.retained),
            percent: percent(own.retained, self.whole),
            count: instances.count,
            size: instances.size,
            rows,
            more,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Answer, Limit, Question, Row, Sort};
    use crate::tests::ask;
    use memprof_dump::record::Kind;
    use memprof_heap::Heap;
    use memprof_heap::testing::{class, heap, thing};

    fn shop() -> Heap {
        let things = [
            class(0x1000, "Shop::Order", 0).size(500).to("CACHE", 0x2000),
            class(0x1100, "Shop::Order::Line", 0x1000).size(300),
            thing(0x1200, Kind::MODULE, "Module").named("Shop").size(100),
            class(0x1300, "Session", 0),
            class(0x1400, "Session", 0),
            class(0x1500, "Hidden::Deep", 0),
            thing(0x1600, Kind::CLASS, "Class"),
            thing(0x2000, Kind::ARRAY, "Array").size(1000),
            thing(0x2100, Kind::OBJECT, "Shop::Order").size(60),
            thing(0x2200, Kind::OBJECT, "Shop::Order::Line").size(70),
            thing(0x2300, Kind::OBJECT, "Shop::Order::Line").size(70),
        ];
        heap(&[("vm", &[0x1000, 0x1100, 0x1200, 0x1300, 0x2100])], &things)
    }

    fn answer(question: &Question) -> Answer {
        question.answer(&shop()).expect("an answer")
    }

    #[test]
    fn is_a_tree_of_names() {
        let Answer { rows, more, classes, anonymous, .. } =
            answer(&Question { depth: Limit(5), ..Question::default() });
        let names: Vec<&str> = rows.iter().map(|row| row.name.as_str()).collect();
        assert_eq!((names, more, classes, anonymous), (vec!["Shop", "Session", "Hidden"], 0, 6, 1));
        let shop = &rows[0];
        assert_eq!((shop.r#type, shop.classes, shop.class_size), (Some("module"), 3, 900));
        assert_eq!((shop.retained, shop.count, shop.size), (Some(1900), 3, 200));
        let order = &shop.rows[0];
        assert_eq!(
            (order.name.as_str(), order.r#type, order.classes),
            ("Shop::Order", Some("class"), 2)
        );
        assert_eq!((order.retained, order.rows[0].count), (Some(1800), 2));
        assert_eq!((rows[1].versions, rows[1].classes), (2, 2));
        assert_eq!((rows[2].r#type, rows[2].id, rows[2].classes), (None, None, 1));
    }

    #[test]
    fn shows_a_part() {
        let under = Question {
            under: Some("Shop".to_owned()),
            sort: Sort::Name,
            depth: Limit(1),
            limit: Limit::default(),
        };
        let rows = answer(&under).rows;
        let names: Vec<(&str, usize)> =
            rows.iter().map(|row: &Row| (row.name.as_str(), row.more)).collect();
        assert_eq!(names, [("Shop::Order", 1)]);
        let none = Question { under: Some("Stop".to_owned()), ..Question::default() };
        assert!(none.answer(&shop()).is_err());
        let json = ask(&shop(), "namespaces", serde_json::json!({ "sort": "classes", "limit": 1 }))
            .expect("an answer");
        assert_eq!(
            (json["rows"][0]["name"].as_str(), json["more"].as_u64()),
            (Some("Shop"), Some(2))
        );
    }
}
