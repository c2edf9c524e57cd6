//! Objects, references and paths in words, as people would write them: `$cache -> Hash["user:42"] -> Session@user`.

use std::io;

use rustc_hash::FxHashMap;

use super::Phrase;
use super::path::{ENDS, omitted};
use memprof_dump::record::{Flags, Kind, NameId, Value};
use memprof_heap::graph::Graph;
use memprof_heap::{Group, Heap, Label, NONE, Packed};

/// Separator of the steps of a path.
pub(super) const ARROW: &str = " -> ";

/// The label of all elements and entries, which differ only in index or key.
pub(super) const ANY: &str = "[*]";

/// Maximum length of a shown text, in characters.
const SHOWN: usize = 60;

/// The class whose constants are visible everywhere.
const GLOBAL_SCOPE: &str = "Object";

/// If more equal steps than this follow each other, as in a linked list, only the first is shown.
const RUN: usize = 4;

/// Describes a heap in words.
pub struct Words<'h> {
    heap: &'h Heap,
    classes: Vec<u32>,
    offsets: &'h [u32],
    targets: &'h [u32],
    labels: &'h [u32],
    groups: &'h [u32],
    lengths: &'h [u32],
    places: &'h [u32],
    flags: &'h [u32],
    known: Known,
    /// The attached objects of singleton classes, if these are classes or modules.
    attached: FxHashMap<u32, u32>,
}

/// Names of facts.
struct Known {
    name: Option<NameId>,
    owner: Option<NameId>,
    source_file: Option<NameId>,
    source_line: Option<NameId>,
    path: Option<NameId>,
}

impl<'h> Words<'h> {
    /// Loads the required columns.
    ///
    /// # Errors
    /// If the index cannot be read.
    pub fn new(heap: &'h Heap) -> io::Result<Words<'h>> {
        let Graph { offsets, targets, .. } = heap.graph(&[])?;
        let find = |name| heap.names().find(name);
        let classes = heap.group_classes();
        let groups = heap.group_numbers()?;
        let class_of = |node: u32| classes.get(*groups.get(node as usize)? as usize).copied();
        let class_objects = heap.class_objects().iter().filter(|class| class.name.is_some());
        let attached =
            class_objects.filter_map(|class| Some((class_of(class.object)?, class.object)));
        let attached = attached.collect();
        Ok(Words {
            heap,
            classes,
            attached,
            offsets,
            targets,
            labels: heap.labels()?,
            groups,
            lengths: heap.lengths()?,
            places: heap.text_places()?,
            flags: heap.flag_words()?,
            known: Known {
                name: find("name"),
                owner: find("owner"),
                source_file: find("source_file"),
                source_line: find("source_line"),
                path: find("path"),
            },
        })
    }

    fn group(&self, node: u32) -> Option<&'h Group> {
        let group = *self.groups.get(node as usize)?;
        self.heap.groups().get(group as usize)
    }

    /// Type of data, or kind of imemo.
    pub fn internal_name(&self, node: u32) -> Option<&'h str> {
        let name = self.group(node).and_then(|group| group.name);
        name.map(|name| self.heap.name(name))
    }

    /// Type of an object; `root` for a root.
    pub fn type_name(&self, node: u32) -> &'static str {
        self.group(node).map_or("root", |group| group.kind.name())
    }

    /// Name of an object's class or a substitute; for a root, its category.
    pub fn class(&self, node: u32) -> &'h str {
        match self.group(node) {
            Some(group) => {
                let class = self.heap.classes().get(group.shown as usize);
                class.map_or("", |class| self.heap.name(class.name))
            }
            None => self.heap.category(node).map_or("root", |category| &category.name),
        }
    }

    fn fact(&self, node: u32, name: Option<NameId>) -> Option<String> {
        match self.heap.facts().get(node, name?)? {
            Value::Name(text) | Value::Json(text) | Value::Symbol(text) => {
                Some(self.heap.name(text).to_owned())
            }
            Value::Int(number) => Some(number.to_string()),
            _ => None,
        }
    }

    /// Source location of an object's code: of a proc or iseq.
    pub fn source(&self, node: u32) -> Option<(String, u32)> {
        let file = self.fact(node, self.known.source_file)?;
        let line = self.fact(node, self.known.source_line).and_then(|line| line.parse().ok());
        Some((file, line.unwrap_or(0)))
    }

    /// The text of a string, symbol or regexp, shortened.
    pub fn text(&self, node: u32) -> Option<String> {
        let place = *self.places.get(node as usize)?;
        if place == NONE {
            return None;
        }
        let stored = self.heap.texts().get(place).ok()?;
        let bytes = stored.bytes()?;
        Some(shortened(&String::from_utf8_lossy(bytes), bytes.len() < stored.length as usize))
    }

    fn length(&self, node: u32) -> Option<u32> {
        self.lengths.get(node as usize).copied().filter(|&length| length != NONE)
    }

    /// A class or module: its name, or the object that it belongs to.
    fn class_words(&self, node: u32, kind: Kind) -> String {
        let facts = self.heap.class_object(node);
        if let Some(name) = facts.and_then(|facts| facts.name) {
            return self.heap.name(name).to_owned();
        }
        if kind == Kind::ICLASS {
            // It references its module as objects reference their class. The origin of a class has its methods, behind
            // the modules that are prepended to it.
            let stands_for = self.class_of(node);
            let is_class = (stands_for.and_then(|id| self.group(id)))
                .is_some_and(|group| group.kind == Kind::CLASS);
            let role = if is_class { "origin of" } else { "included" };
            let facts = stands_for.and_then(|id| self.heap.class_object(id));
            if let Some(name) = facts.and_then(|facts| facts.name) {
                return format!("#<{role} {}>", self.heap.name(name));
            }
        }
        let singleton =
            self.flags.get(node as usize).is_some_and(|flags| flags & Flags::SINGLETON.0 != 0);
        let real = facts.map_or(NONE, |facts| facts.real);
        let of = self.heap.class_object(real).and_then(|facts| facts.name);
        match of {
            _ if singleton && self.attached.contains_key(&node) => {
                let of = self.heap.class_object(self.attached[&node]).and_then(|class| class.name);
                format!("#<Class:{}>", of.map_or("", |name| self.heap.name(name)))
            }
            Some(name) if singleton => format!("#<singleton of {}>", self.heap.name(name)),
            _ => format!(
                "#<{}:{:#x}>",
                if kind == Kind::MODULE { "Module" } else { "Class" },
                self.heap.addresses().of(node)
            ),
        }
    }

    /// A short name: `Session`, `Hash`, `Cache` (the class itself), `<iseq>`.
    pub fn short(&self, node: u32) -> String {
        match self.group(node).map(|group| group.kind) {
            Some(kind @ (Kind::CLASS | Kind::MODULE | Kind::ICLASS)) => {
                self.class_words(node, kind)
            }
            Some(_) => self.class(node).to_owned(),
            None => self.root(node),
        }
    }

    fn root(&self, node: u32) -> String {
        match self.heap.category(node) {
            Some(category) => format!("root {}", category.name),
            None => "roots".to_owned(),
        }
    }

    /// An object in words: `String "user:42"`, `Array (3)`, `class Cache`, `<iseq> fetch app/cache.rb:3`.
    pub fn object(&self, node: u32) -> String {
        self.object_phrase(node).to_string()
    }

    /// The same, with the source location as a separate part.
    pub fn object_phrase(&self, node: u32) -> Phrase {
        let Some(group) = self.group(node) else {
            return self.root(node).into();
        };
        let class = self.class(node);
        let text = match group.kind {
            Kind::STRING | Kind::REGEXP | Kind::BIGNUM => {
                match (self.text(node), self.length(node)) {
                    (Some(text), _) => format!("{class} {text}"),
                    (None, Some(length)) => format!("{class} ({length} bytes)"),
                    (None, None) => class.to_owned(),
                }
            }
            Kind::SYMBOL => match self.text(node) {
                Some(text) => format!("Symbol :{}", text.trim_matches('"')),
                None => class.to_owned(),
            },
            Kind::ARRAY | Kind::HASH => match self.length(node) {
                Some(length) => format!("{class} ({length})"),
                None => class.to_owned(),
            },
            Kind::CLASS => format!("class {}", self.class_words(node, group.kind)),
            Kind::MODULE => format!("module {}", self.class_words(node, group.kind)),
            Kind::ICLASS => self.class_words(node, group.kind),
            _ => return self.named(node, class),
        };
        text.into()
    }

    /// Objects with a name, a source location or an owner.
    fn named(&self, node: u32, class: &str) -> Phrase {
        let mut words = class.to_owned();
        let owner = self.fact(node, self.known.owner);
        match (self.fact(node, self.known.name), owner) {
            (Some(name), Some(owner)) => words.push_str(&format!(" {owner}#{name}")),
            (Some(name), None) => words.push_str(&format!(" {name}")),
            _ => {}
        }
        if let Some((file, line)) = self.source(node) {
            return Phrase::from(words).text(" ").place(&file, line);
        }
        if let Some(path) = self.fact(node, self.known.path) {
            words.push_str(&format!(" {path}"));
        }
        words.into()
    }

    /// The most informative reference from one object to another: its place among the graph's targets.
    pub fn edge(&self, from: u32, to: u32) -> Option<usize> {
        let row = self.row(from)?;
        let mut edges = row.filter(|&index| self.targets[index] == to);
        let first = edges.next()?;
        if self.labels.is_empty() || self.labels[first] != Packed::NONE.0 {
            return Some(first);
        }
        Some(edges.find(|&index| self.labels[index] != Packed::NONE.0).unwrap_or(first))
    }

    /// Places of an object's references among the graph's targets.
    pub fn row(&self, node: u32) -> Option<std::ops::Range<usize>> {
        let begin = *self.offsets.get(node as usize)? as usize;
        let end = *self.offsets.get(node as usize + 1)? as usize;
        (begin <= end && end <= self.targets.len()).then_some(begin..end)
    }

    /// The target of a reference.
    pub fn target(&self, edge: usize) -> u32 {
        self.targets.get(edge).copied().unwrap_or(NONE)
    }

    /// The label of a reference: `@user`, `["user:42"]`, `[3]`, `STORE`, `$cache`; `None` if it has none.
    pub fn label_of(&self, edge: usize) -> Option<String> {
        let name = |name: NameId| self.heap.name(name).to_owned();
        Some(match Packed(*self.labels.get(edge)?).label() {
            Label::None => return None,
            Label::Index(index) => format!("[{index}]"),
            Label::Key => "key".to_owned(),
            Label::Entry => {
                let key = self.targets.get(edge.checked_sub(1)?)?;
                match self.group(*key).map(|group| group.kind) {
                    Some(Kind::STRING | Kind::SYMBOL | Kind::CLASS | Kind::MODULE) => {
                        let words = self.text(*key).unwrap_or_else(|| self.short(*key));
                        format!("[{words}]")
                    }
                    _ => format!("[{}]", self.short(*key)),
                }
            }
            Label::Under(key) => format!("[{}]", self.heap.name(key)),
            Label::Ivar(text)
            | Label::ClassVariable(text)
            | Label::Global(text)
            | Label::Constant(text) => name(text),
            Label::Member(text) => format!(".{}", self.heap.name(text)),
            Label::Local(text) => format!("local {}", self.heap.name(text)),
            Label::Method(text) => format!("#{}", self.heap.name(text)),
            Label::Role(text) => name(text),
        })
    }

    /// The label of the reference from one object to another; `class` for the object's class, `finalizer` for its finalizers.
    pub fn label(&self, from: u32, to: u32) -> Option<String> {
        match self.edge(from, to) {
            Some(edge) => self.label_of(edge),
            None if self.heap.is_finalizer(from, to) => Some("finalizer".to_owned()),
            None => self.class_of(from).filter(|&class| class == to).map(|_| "class".to_owned()),
        }
    }

    /// The class object that an object references.
    pub fn class_of(&self, node: u32) -> Option<u32> {
        let group = *self.groups.get(node as usize)?;
        self.classes.get(group as usize).copied().filter(|&class| class != NONE)
    }

    /// A step of a path, an object with its reference to the next one: `Hash["user:42"]`, `Session@user`.
    pub fn step(&self, from: u32, to: u32) -> Phrase {
        let holder = self.holding(from);
        let kind = self
            .edge(from, to)
            .and_then(|edge| self.labels.get(edge))
            .map(|&label| Packed(label).label());
        let Some(label) = self.label(from, to) else {
            return holder;
        };
        match kind {
            // The singleton class and the copies of a module have its constants, too.
            Some(Label::Constant(_)) if self.is_global_scope(from) => label.into(),
            Some(Label::Constant(_)) => holder.text("::").text(label),
            Some(Label::Global(_)) => label.into(),
            Some(
                Label::Ivar(_)
                | Label::ClassVariable(_)
                | Label::Index(_)
                | Label::Entry
                | Label::Under(_)
                | Label::Member(_)
                | Label::Method(_),
            ) => holder.text(label),
            _ => holder.text(format!("({label})")),
        }
    }

    /// The referrer in a step. Blocks are identified by their line.
    fn holding(&self, node: u32) -> Phrase {
        let name = self.short(node);
        let is_proc = self.internal_name(node) == Some("proc");
        match self.source(node).filter(|_| is_proc) {
            Some((file, line)) => Phrase::from(name).text(" ").place(&file, line),
            None => name.into(),
        }
    }

    fn is_global_scope(&self, node: u32) -> bool {
        let name = self.short(node);
        name == GLOBAL_SCOPE || name.starts_with('#')
    }

    /// Whether an object is well known by its name: a class or module.
    fn is_known(&self, node: u32) -> bool {
        let is_class =
            self.group(node).is_some_and(|group| matches!(group.kind, Kind::CLASS | Kind::MODULE));
        is_class && self.heap.class_object(node).is_some_and(|facts| facts.name.is_some())
    }

    /// Where a path begins for people: at the last class or module on it, or at a global variable, as these need no
    /// explanation.
    fn beginning(&self, nodes: &[u32]) -> usize {
        let before = &nodes[..nodes.len().saturating_sub(1)];
        before.iter().rposition(|&node| self.is_known(node)).unwrap_or(0)
    }

    /// A path in words, from its last well-known step on.
    pub fn path(&self, nodes: &[u32]) -> Phrase {
        let holder = self.holder(nodes);
        let Some(&last) = nodes.last() else {
            return holder;
        };
        let arrow = if holder.is_empty() { "" } else { ARROW };
        holder.text(arrow).phrase(self.object_phrase(last))
    }

    /// The same without the object at its end.
    pub fn holder(&self, nodes: &[u32]) -> Phrase {
        let nodes = &nodes[self.beginning(nodes)..];
        // The super root is not worth mentioning.
        let nodes = match nodes.split_first() {
            Some((&first, rest)) if first == self.heap.root() => rest,
            _ => nodes,
        };
        let omitted = omitted(nodes);
        let (start, end) = match omitted {
            0 => (nodes, &[][..]),
            _ => (&nodes[..=ENDS], &nodes[nodes.len() - ENDS..]),
        };
        let mut steps = Steps::default();
        for pair in start.windows(2) {
            steps.add(self.step(pair[0], pair[1]));
        }
        steps.omit(omitted);
        for pair in end.windows(2) {
            steps.add(self.step(pair[0], pair[1]));
        }
        steps.finish()
    }
}

/// Steps of a path, with runs of equal ones folded.
#[derive(Default)]
struct Steps {
    shown: Vec<Phrase>,
    last: Phrase,
    /// Number of trailing steps that equal the last one, including omitted ones in between.
    run: usize,
    /// Whether some of them were omitted.
    is_cut: bool,
    /// Number of steps omitted after the last one.
    omitted: usize,
}

impl Steps {
    fn add(&mut self, step: Phrase) {
        if self.run > 0 && self.last == step {
            self.is_cut |= self.omitted > 0;
            self.run += 1 + std::mem::take(&mut self.omitted);
            return;
        }
        self.end_run();
        self.last = step;
        self.run = 1;
    }

    fn omit(&mut self, steps: usize) {
        self.omitted = steps;
    }

    fn end_run(&mut self) {
        let run = std::mem::take(&mut self.run);
        let is_cut = std::mem::take(&mut self.is_cut);
        let last = std::mem::take(&mut self.last);
        if run <= RUN && !is_cut {
            self.shown.extend(std::iter::repeat_n(last, run));
        } else {
            let more = Phrase::default().text(format!("… {} more ", run - 1));
            let more = if is_cut { more } else { more.phrase(last.clone()).text(" ") };
            self.shown.extend([last, more.text("…")]);
        }
        match std::mem::take(&mut self.omitted) {
            0 => {}
            omitted => self.shown.push(format!("… {omitted} more …").into()),
        }
    }

    fn finish(mut self) -> Phrase {
        self.end_run();
        Phrase::default().steps(self.shown)
    }
}

/// A quoted text, shortened, without characters that would break a line.
fn shortened(text: &str, cut: bool) -> String {
    let mut shown: String = text.chars().take(SHOWN).collect();
    if cut || shown.len() < text.len() {
        shown.push('…');
    }
    format!("{shown:?}")
}

/// A source location.
pub fn place(file: &str, line: u32) -> String {
    if line == 0 { file.to_owned() } else { format!("{file}:{line}") }
}
