//! Allocation sites: frames, call stacks and sites, each stored once under a small number.

mod keep;

use std::hash::{BuildHasher, Hash};
use std::num::NonZeroU32;
use std::sync::Arc;

use hashbrown::HashTable;
use rustc_hash::{FxBuildHasher, FxHashSet};

use crate::lean::push;

pub use keep::Kept;

/// Values stored once, numbered from 0 in order of first occurrence.
#[derive(Debug)]
pub struct Interner<T> {
    /// Numbers, by the hash of their value.
    ids: HashTable<u32>,
    values: Vec<T>,
}

impl<T> Default for Interner<T> {
    fn default() -> Self {
        Interner {
            ids: HashTable::new(),
            values: Vec::new(),
        }
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
        StackId::new(self.stacks.intern(Node {
            parent,
            frame,
            line,
        }))
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
        qualified
            .or_else(|| self.frame_key(id).map(|key| key.label.as_str()))
            .unwrap_or("")
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
        (
            self.frame_key(node.frame).map_or("", |key| &*key.file),
            node.line,
        )
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
