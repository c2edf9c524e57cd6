//! memprof's own data, classes, code and threads. A program only has them because it is being profiled, so they are excluded from
//! all totals: they have references, but no size.

use std::io;

use rustc_hash::FxHashSet;
use serde::{Deserialize, Serialize};

use super::{FOLDED, Heap, Sizes};
use crate::graph::{BitSet, Graph, Stop, reachable_without};
use memprof_dump::record::{Flags, Kind, NameId, NoteKind, Value};

/// memprof's namespace.
const NAMESPACE: &str = "Memprof";

/// The number of memprof's own objects, and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Own {
    /// Objects.
    pub count: u64,
    /// Sum of their memsizes.
    pub size: u64,
    /// The bytes outside of slots.
    pub outside: u64,
}

/// Excludes memprof's own objects from all totals, unless it is stopped.
pub(super) fn leave_out(heap: &mut Heap, stop: Stop<'_>) -> io::Result<()> {
    stop.check()?;
    let own = Search::new(heap)?.own()?;
    if own.iter().next().is_none() {
        return Ok(());
    }
    stop.check()?;
    let mut flags = heap.columns.flags.get()?.to_vec();
    let sizes = heap.columns.memsize.get()?;
    let slots = heap.slots();
    let mut left_out = Own::default();
    for id in own.iter().filter(|&id| flags[id as usize] & FOLDED.0 == 0) {
        let (size, slot) = (sizes.get(id), slots.get(id as usize).copied().unwrap_or(0));
        left_out.count += 1;
        left_out.size = left_out.size.saturating_add(size);
        left_out.outside = left_out.outside.saturating_add(size.saturating_sub(u64::from(slot)));
    }
    let kept = |id| if own.contains(id) { 0 } else { sizes.get(id) };
    let sizes: Sizes = (0..heap.objects).map(kept).collect();
    own.iter().for_each(|id| flags[id as usize] |= FOLDED.0);
    heap.columns.flags = flags.into();
    heap.columns.memsize = sizes.into();
    heap.source.own = left_out;
    Ok(())
}

/// The fields read from it.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Header {
    own_objects: Vec<String>,
}

struct Search<'h> {
    heap: &'h Heap,
    groups: &'h [u32],
    flags: &'h [u32],
    graph: Graph<'h>,
}

impl<'h> Search<'h> {
    fn new(heap: &'h Heap) -> io::Result<Search<'h>> {
        Ok(Search {
            heap,
            groups: heap.group_numbers()?,
            flags: heap.flag_words()?,
            graph: heap.graph(&[])?,
        })
    }

    fn own(&self) -> io::Result<BitSet> {
        let mut own = self.named();
        for id in self.listed() {
            own.insert(id);
        }
        if own.iter().next().is_none() {
            return Ok(own);
        }
        self.add_singleton_classes(&mut own);
        for id in self.blocks(&own) {
            own.insert(id);
        }
        if !self.heap.categories().is_empty() {
            self.add_parts(&mut own);
        }
        for id in self.threads() {
            own.insert(id);
        }
        Ok(own)
    }

    /// Objects by their class or data type, and classes and modules by their name.
    fn named(&self) -> BitSet {
        let is_own: Vec<bool> = self
            .heap
            .groups()
            .iter()
            .map(|group| {
                let class = self.heap.classes().get(group.shown as usize);
                let data = group.name.filter(|_| group.kind == Kind::DATA);
                let names = [class.map(|class| class.name), data];
                let mut names = names.into_iter().flatten().map(|name| self.heap.name(name));
                names.any(is_in_namespace)
            })
            .collect();
        let is_own = |group: u32| is_own.get(group as usize) == Some(&true);
        let objects = self.groups.iter().zip(0..);
        let objects = objects.filter(|&(&group, _)| is_own(group));
        let classes = self.heap.class_objects().iter().filter(|class| {
            let name = class.name.map(|name| self.heap.name(name));
            name.is_some_and(is_in_namespace)
        });
        let objects = objects.map(|(_, id)| id);
        BitSet::of(self.graph.len(), objects.chain(classes.map(|class| class.object)))
    }

    /// The objects listed in the header: memprof allocated them in a copy of a process that has not loaded it.
    fn listed(&self) -> Vec<u32> {
        let header = |(kind, _): &&(NoteKind, String)| *kind == NoteKind::Header;
        let header = (self.heap.notes().iter()).find(header);
        let header = header.and_then(|(_, json)| serde_json::from_str(json).ok());
        let Header { own_objects } = header.unwrap_or_default();
        let address = |text: &String| u64::from_str_radix(text.strip_prefix("0x")?, 16).ok();
        let addresses = own_objects.iter().filter_map(address);
        addresses.filter_map(|address| self.heap.at(address)).collect()
    }

    fn group(&self, id: u32) -> Option<&'h super::Group> {
        let group = *self.groups.get(id as usize)?;
        self.heap.groups().get(group as usize)
    }

    fn kind(&self, id: u32) -> Option<Kind> {
        self.group(id).map(|group| group.kind)
    }

    /// Type of data, kind of imemo.
    fn name(&self, id: u32) -> &'h str {
        let name = self.group(id).and_then(|group| group.name);
        name.map_or("", |name| self.heap.name(name))
    }

    /// The singleton classes of memprof's classes and modules.
    fn add_singleton_classes(&self, own: &mut BitSet) {
        let classes: Vec<u32> = own.iter().filter_map(|id| self.singleton_of(id)).collect();
        for class in classes {
            own.insert(class);
        }
    }

    fn singleton_of(&self, id: u32) -> Option<u32> {
        let group = self.group(id)?;
        if !matches!(group.kind, Kind::CLASS | Kind::MODULE) {
            return None;
        }
        let flags = self.flags.get(group.class as usize)?;
        (flags & Flags::SINGLETON.0 != 0).then_some(group.class)
    }

    /// Procs defined in memprof's files, and environments of its frames, whatever references them. A block that a program passes
    /// to memprof is defined in a file of the program.
    fn blocks(&self, own: &BitSet) -> Vec<u32> {
        let Some(name) = self.heap.names().find("source_file") else {
            return Vec::new();
        };
        let file = |id| match self.heap.facts().get(id, name)? {
            Value::Name(file) => Some(file),
            _ => None,
        };
        let files = self.files(own, file);
        let is_written_there = |id| file(id).is_some_and(|file| files.contains(&file));
        let held = |id| self.graph.row(id).iter().copied();
        let is_own = |&id: &u32| {
            if self.is_data(id, &["proc"]) {
                return is_written_there(id);
            }
            self.is_imemo(id, "env")
                && held(id).any(|held| self.is_imemo(held, "iseq") && is_written_there(held))
        };
        (0..self.groups.len() as u32).filter(is_own).collect()
    }

    /// The files of the methods of memprof's classes.
    fn files(&self, own: &BitSet, file: impl Fn(u32) -> Option<NameId>) -> FxHashSet<NameId> {
        let held = |id, name| {
            let held = self.graph.row(id).iter().copied();
            held.filter(move |&held| self.is_imemo(held, name))
        };
        let is_class = |&id: &u32| matches!(self.kind(id), Some(Kind::CLASS | Kind::MODULE));
        own.iter()
            .filter(is_class)
            .flat_map(|class| held(class, "ment"))
            .flat_map(|method| held(method, "iseq"))
            .filter_map(file)
            // The standard library defines methods in classes that request them.
            .filter(|&file| self.heap.name(file).contains("memprof"))
            .collect()
    }

    /// memprof's threads, by their names, and their stacks. The objects on a stack may belong to anyone.
    fn threads(&self) -> Vec<u32> {
        let Some(name) = self.heap.names().find("name") else {
            return Vec::new();
        };
        let named = self.heap.facts().named(name);
        let threads = named.filter(|&(id, name)| self.is_thread(id) && self.is_own_name(name));
        let mut own = Vec::new();
        for (thread, _) in threads {
            own.push(thread);
            let held = self.graph.row(thread).iter().copied();
            own.extend(held.filter(|&id| self.is_data(id, &["fiber"])));
        }
        own
    }

    fn is_thread(&self, id: u32) -> bool {
        self.is_data(id, &["VM/thread", "thread"])
    }

    fn is_imemo(&self, id: u32, name: &str) -> bool {
        self.kind(id) == Some(Kind::IMEMO) && self.name(id) == name
    }

    fn is_data(&self, id: u32, names: &[&str]) -> bool {
        self.kind(id) == Some(Kind::DATA) && names.contains(&self.name(id))
    }

    /// Thread names are facts in JSON.
    fn is_own_name(&self, name: Value) -> bool {
        let name = match name {
            Value::Name(text) | Value::Json(text) => self.heap.name(text).trim_matches('"'),
            _ => return false,
        };
        let rest = name.strip_prefix("memprof");
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', ':']))
    }

    /// Code, texts, arrays and hashes retained only by memprof's objects. Objects that a program passed to memprof (the
    /// application behind the middleware, a block and its captured variables) belong to the program.
    fn add_parts(&self, own: &mut BitSet) {
        let classes = self.heap.group_classes();
        let graph = Graph {
            extra: crate::graph::Extra { class: &classes, ..self.graph.extra },
            ..self.graph
        };
        let others = reachable_without(&graph, &[self.heap.root()], own);
        let mut open: Vec<u32> = own.iter().collect();
        while let Some(node) = open.pop() {
            for &held in self.graph.row(node) {
                if self.is_part(held) && !others.contains(held) && own.insert(held) {
                    open.push(held);
                }
            }
        }
    }

    fn is_part(&self, id: u32) -> bool {
        match self.kind(id) {
            Some(Kind::IMEMO) => self.name(id) != "env",
            // The call caches of a class, since Ruby 4.0.
            Some(Kind::DATA) => self.name(id) == "VM/cc_table",
            Some(kind) => matches!(
                kind,
                Kind::STRING
                    | Kind::SYMBOL
                    | Kind::REGEXP
                    | Kind::ARRAY
                    | Kind::HASH
                    | Kind::BIGNUM
                    | Kind::FLOAT
                    | Kind::ICLASS
            ),
            None => false,
        }
    }
}

pub(super) fn is_in_namespace(name: &str) -> bool {
    let rest = name.strip_prefix(NAMESPACE);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}
