//! Allocation sites: frames, call stacks and sites, each stored once under a small number.

use std::hash::{BuildHasher, Hash};
use std::num::NonZeroU32;
use std::sync::Arc;

use hashbrown::HashTable;
use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};

use crate::lean::push;

/// Values stored once, numbered from 0 in order of first occurrence.
#[derive(Debug)]
pub struct Interner<T> {
    /// Numbers, by the hash of their value.
    ids: HashTable<u32>,
    values: Vec<T>,
}

impl<T> Default for Interner<T> {
    fn default() -> Self {
        Interner { ids: HashTable::new(), values: Vec::new() }
    }
}

impl<T: Hash + Eq> Interner<T> {
    /// The number of `value`; adds it if it is new.
    pub fn intern(&mut self, value: T) -> u32 {
        let (ids, values) = (&mut self.ids, &mut self.values);
        let hash = FxBuildHasher.hash_one(&value);
        if let Some(id) = ids.find(hash, |id| values[*id as usize] == value) {
            return *id;
        }
        let id = values.len() as u32;
        push(values, value);
        ids.insert_unique(hash, id, |id| FxBuildHasher.hash_one(&values[*id as usize]));
        id
    }

    /// The value with this number.
    pub fn get(&self, id: u32) -> Option<&T> {
        self.values.get(id as usize)
    }

    /// Number of values.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// True if there is no value.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// The values, in order of their numbers.
    pub fn into_values(self) -> Vec<T> {
        self.values
    }

    /// Memory size of the tables in bytes, without memory that the values point to.
    pub fn memsize(&self) -> usize {
        self.values.capacity() * size_of::<T>() + self.ids.allocation_size()
    }
}

/// A method, block, class body or script, with the data available in an allocation hook.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FrameKey {
    /// Path of the file, as the host spells it; empty for a method written in C.
    pub file: Arc<str>,
    /// Name without its class.
    pub label: String,
    /// First line of the definition; 0 if it has none.
    pub first_line: u32,
    /// Distinguishes methods written in C with the same name in different classes, since they have no line.
    pub native: Option<u64>,
}

/// Id of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FrameId(pub u32);

/// Id of a call stack: the node of its innermost frame. Stored as the number plus one, so that an `Option` of it has the same
/// size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StackId(NonZeroU32);

impl StackId {
    fn new(number: u32) -> Self {
        StackId(NonZeroU32::MIN.saturating_add(number))
    }

    /// Its number, from 0.
    pub fn number(self) -> u32 {
        self.0.get() - 1
    }
}

/// Id of a class, or of a kind of internal object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClassId(pub u32);

/// Id of a site: class, place and call stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SiteId(pub u32);

/// One frame of a stack with its current line and its caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Node {
    /// The caller.
    pub parent: Option<StackId>,
    /// The frame.
    pub frame: FrameId,
    /// Line being executed; 0 in a method written in C.
    pub line: u32,
}

/// An allocation site. Library code has a separate site for each line of the application that called it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Site {
    /// Class of the object.
    pub class: ClassId,
    /// The frame whose file and line are the site's.
    pub place: StackId,
    /// Innermost frame recorded; often the same as `place`.
    pub stack: StackId,
    /// The innermost frame of the application, alone, if `place` is not in the application.
    pub caller: Option<StackId>,
}

/// All frames, stacks, classes and sites seen.
#[derive(Debug, Default)]
pub struct Sites {
    /// Frames, each with the epoch of its first appearance.
    frames: Interner<(FrameKey, u32)>,
    /// Paths of their files, which many frames share.
    files: FxHashSet<Arc<str>>,
    epoch: u32,
    /// Bytes of the names.
    text: usize,
    /// Qualified names of methods, where known; index is the frame's number.
    methods: Vec<Option<String>>,
    stacks: Interner<Node>,
    /// Names of classes, each with a number that distinguishes anonymous classes of the same name, or 0.
    classes: Interner<(String, u32)>,
    sites: Interner<Site>,
}

impl Sites {
    /// The frame's id, and whether it is new and so has no qualified name yet.
    pub fn frame(&mut self, mut key: FrameKey) -> (FrameId, bool) {
        key.file = self.file(key.file);
        let text = key.label.len();
        let id = self.frames.intern((key, self.epoch));
        let new = id as usize == self.methods.len();
        if new {
            push(&mut self.methods, None);
            self.text += text;
        }
        (FrameId(id), new)
    }

    fn file(&mut self, path: Arc<str>) -> Arc<str> {
        if let Some(known) = self.files.get(&path) {
            return Arc::clone(known);
        }
        /// An `Arc` has two reference counts before the text.
        const COUNTS: usize = 2 * size_of::<usize>();
        self.text += COUNTS + path.len();
        self.files.insert(Arc::clone(&path));
        path
    }

    /// Starts an epoch: sessions begin after a time without any. The host may have discarded a frame since, and another one may
    /// have the same file, label and line (two evaluated methods). So frames seen from now on differ from those before.
    pub fn begin_epoch(&mut self) {
        self.epoch = self.epoch.wrapping_add(1);
    }

    /// Sets the qualified name of a frame, such as `Cache#fetch`.
    pub fn name_method(&mut self, frame: FrameId, method: String) {
        if let Some(name) = self.methods.get_mut(frame.0 as usize) {
            self.text += method.len();
            *name = Some(method);
        }
    }

    /// The stack of `frame` at `line`, called from `parent`.
    pub fn stack(&mut self, parent: Option<StackId>, frame: FrameId, line: u32) -> StackId {
        StackId::new(self.stacks.intern(Node { parent, frame, line }))
    }

    /// The class with this name.
    pub fn class(&mut self, name: &str) -> ClassId {
        self.anonymous_class(name, 0)
    }

    /// The anonymous class displayed with this name: `identity` distinguishes it from others, or is 0.
    pub fn anonymous_class(&mut self, name: &str, identity: u32) -> ClassId {
        let before = self.classes.len();
        let id = self.classes.intern((name.to_owned(), identity));
        if self.classes.len() > before {
            self.text += name.len();
        }
        ClassId(id)
    }

    /// The site.
    pub fn site(&mut self, site: Site) -> SiteId {
        SiteId(self.sites.intern(site))
    }

    /// The site with this id.
    pub fn get(&self, id: SiteId) -> Option<Site> {
        self.sites.get(id.0).copied()
    }

    /// The innermost frame of a stack.
    pub fn node(&self, id: StackId) -> Option<Node> {
        self.stacks.get(id.number()).copied()
    }

    /// The frame with this id.
    pub fn frame_key(&self, id: FrameId) -> Option<&FrameKey> {
        self.frames.get(id.0).map(|(key, _)| key)
    }

    /// Best known name of a method: qualified if available.
    pub fn method(&self, id: FrameId) -> &str {
        let qualified = self.methods.get(id.0 as usize).and_then(Option::as_deref);
        qualified.or_else(|| self.frame_key(id).map(|key| key.label.as_str())).unwrap_or("")
    }

    /// True if the site's objects have no class.
    pub fn is_internal(&self, id: SiteId) -> bool {
        let class = self.get(id).map_or("", |site| self.class_name(site.class));
        class.starts_with('<')
    }

    /// Name of a class.
    pub fn class_name(&self, id: ClassId) -> &str {
        self.classes.get(id.0).map_or("", |(name, _)| name)
    }

    /// Distinguishes an anonymous class from others of its name, or 0.
    pub fn class_identity(&self, id: ClassId) -> u32 {
        self.classes.get(id.0).map_or(0, |(_, identity)| *identity)
    }

    /// File and line of a stack's innermost frame.
    pub fn location(&self, id: StackId) -> (&str, u32) {
        let Some(node) = self.node(id) else {
            return ("", 0);
        };
        (self.frame_key(node.frame).map_or("", |key| &*key.file), node.line)
    }

    /// Without unused sites: copies `used`, everything they refer to, and `frames`.
    pub fn keep(
        &self,
        used: impl Iterator<Item = SiteId>,
        frames: impl Iterator<Item = FrameId>,
    ) -> Kept {
        let mut kept = Kept {
            sites: Sites { epoch: self.epoch, ..Sites::default() },
            by_site: FxHashMap::default(),
            by_frame: FxHashMap::default(),
        };
        frames.for_each(|frame| {
            kept.frame(self, frame);
        });
        let used: Vec<(SiteId, Site)> = used.filter_map(|id| Some((id, self.get(id)?))).collect();
        let stacks = kept.stacks(self, used.iter().map(|(_, site)| site));
        for (id, site) in used {
            let moved = Site {
                class: kept.class(self, site.class),
                place: stacks[site.place.number() as usize],
                stack: stacks[site.stack.number() as usize],
                caller: site.caller.map(|caller| stacks[caller.number() as usize]),
            };
            let moved = kept.sites.site(moved);
            kept.by_site.insert(id, moved);
        }
        kept
    }

    /// Memory size of the tables in bytes.
    pub fn memsize(&self) -> usize {
        self.text
            + self.frames.memsize()
            + self.stacks.memsize()
            + self.classes.memsize()
            + self.sites.memsize()
            + self.files.capacity() * size_of::<Arc<str>>()
            + self.methods.capacity() * size_of::<Option<String>>()
    }
}

/// The remaining entries, and their new numbers.
#[derive(Debug)]
pub struct Kept {
    /// Frames, stacks, classes and sites.
    pub sites: Sites,
    /// Old number -> new number.
    pub by_site: FxHashMap<SiteId, SiteId>,
    /// Old number -> new number.
    pub by_frame: FxHashMap<FrameId, FrameId>,
}

impl Kept {
    /// The new numbers of the stacks of `sites`; index is the old number. A caller has a smaller number than its callees.
    fn stacks<'a>(&mut self, old: &Sites, sites: impl Iterator<Item = &'a Site>) -> Vec<StackId> {
        let mut wanted = vec![false; old.stacks.len()];
        for site in sites {
            wanted[site.place.number() as usize] = true;
            wanted[site.stack.number() as usize] = true;
            if let Some(caller) = site.caller {
                wanted[caller.number() as usize] = true;
            }
        }
        for id in (0..wanted.len()).rev().filter(|id| wanted[*id]).collect::<Vec<_>>() {
            let mut caller = old.node(StackId::new(id as u32)).and_then(|node| node.parent);
            while let Some(id) = caller.filter(|caller| !wanted[caller.number() as usize]) {
                wanted[id.number() as usize] = true;
                caller = old.node(id).and_then(|node| node.parent);
            }
        }
        let mut moved = vec![StackId::new(0); wanted.len()];
        for (id, _) in wanted.iter().enumerate().filter(|(_, wanted)| **wanted) {
            let Some(Node { parent, frame, line }) = old.node(StackId::new(id as u32)) else {
                continue;
            };
            let parent = parent.map(|parent| moved[parent.number() as usize]);
            let frame = self.frame(old, frame);
            moved[id] = self.sites.stack(parent, frame, line);
        }
        moved
    }

    fn frame(&mut self, old: &Sites, id: FrameId) -> FrameId {
        if let Some(moved) = self.by_frame.get(&id) {
            return *moved;
        }
        let Some((key, epoch)) = old.frames.get(id.0).cloned() else {
            return id;
        };
        let now = std::mem::replace(&mut self.sites.epoch, epoch);
        let (moved, _) = self.sites.frame(key);
        self.sites.epoch = now;
        if let Some(Some(method)) = old.methods.get(id.0 as usize) {
            self.sites.name_method(moved, method.clone());
        }
        self.by_frame.insert(id, moved);
        moved
    }

    fn class(&mut self, old: &Sites, id: ClassId) -> ClassId {
        let (name, identity) = (old.class_name(id), old.class_identity(id));
        self.sites.anonymous_class(name, identity)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(file: &str) -> FrameKey {
        FrameKey { file: file.into(), label: "work".into(), first_line: 1, native: None }
    }

    #[test]
    fn what_is_used_reads_the_same_and_the_rest_is_gone() {
        let mut sites = Sites::default();
        let mut all = Vec::new();
        for file in ["a.rb", "b.rb", "c.rb"] {
            let (caller, _) = sites.frame(key("caller.rb"));
            let (frame, _) = sites.frame(key(file));
            sites.name_method(frame, format!("{file}#work"));
            sites.begin_epoch();
            let outer = sites.stack(None, caller, 3);
            let place = sites.stack(Some(outer), frame, 7);
            let class = sites.anonymous_class(&format!("Class of {file}"), 2);
            all.push(sites.site(Site { class, place, stack: place, caller: Some(outer) }));
        }
        let (unnamed, _) = sites.frame(key("unnamed.rb"));
        let kept = sites.keep([all[2]].into_iter(), [unnamed].into_iter());
        let site = kept.sites.get(kept.by_site[&all[2]]).unwrap();
        assert_eq!(kept.sites.location(site.place), ("c.rb", 7));
        assert_eq!(kept.sites.class_name(site.class), "Class of c.rb");
        assert_eq!(kept.sites.class_identity(site.class), 2);
        let node = kept.sites.node(site.stack).unwrap();
        assert_eq!(kept.sites.method(node.frame), "c.rb#work");
        assert_eq!(kept.sites.location(node.parent.unwrap()), ("caller.rb", 3));
        assert_eq!(site.caller, node.parent);
        let frame = kept.by_frame[&unnamed];
        assert_eq!(kept.sites.frame_key(frame).unwrap().file.as_ref(), "unnamed.rb");
        assert_eq!((kept.sites.sites.len(), kept.sites.frames.len()), (1, 3));
        assert!(kept.sites.memsize() < sites.memsize());
    }
}
