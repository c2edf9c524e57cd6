//! State of a heap walk.

use std::io;
use std::rc::Rc;

use memprof_dump::record::{Edge, Field, Label, NameId, Value};
use memprof_profile::sessions::SessionId;
use rb_sys::{ID, VALUE};
use rustc_hash::{FxHashMap, FxHashSet};

use super::class::Constants;
use super::collector;
use super::name_table::Names;
use super::roots::Globals;
use super::template_cache::TemplateCache;
use super::typed_data::DataTypes;
use super::unlabeled_refs::UnlabeledRefs;
use crate::vm::tracker;

/// Number of edges buffered before they are passed to the writer.
pub const BATCH: usize = 4096;

/// The scope of a walk.
pub struct Scope {
    /// Only objects recorded by this session: no roots, no shapes.
    pub session: Option<SessionId>,
    /// Whether to write labels; otherwise references are in marking order.
    pub labels: bool,
    /// Whether to write shapes.
    pub shapes: bool,
}

/// A walk in progress.
pub struct Walk {
    pub names: Names,
    pub scope: Scope,
    pub data_types: DataTypes,
    pub globals: Globals,
    /// Templates of objects.
    pub templates: TemplateCache,
    /// Whether anything is or was tracked, so that objects may have a site.
    pub tracking: bool,
    /// Edges of the current object.
    pub edges: Vec<Edge<'static>>,
    /// Facts about the current object.
    pub fields: Vec<Field>,
    /// Outgoing references of the current object, as reported by the VM.
    pub references: Vec<VALUE>,
    /// Labels of the current object.
    pub labels: Vec<(Label, VALUE)>,
    /// References of the current object that have no label yet.
    pub unlabeled: UnlabeledRefs,
    /// Methods of the current class.
    pub methods: FxHashSet<ID>,
    /// Table for the constants of the current class.
    pub constants: Constants,
    /// Digits of the current Integer.
    pub digits: Vec<u8>,
    members: FxHashMap<VALUE, Rc<[NameId]>>,
    /// Objects that have a finalizer.
    pub finalizers: Vec<u64>,
    /// The arrays of their finalizers, where found.
    pub finalizer_arrays: FxHashMap<u64, u64>,
    /// The GC's last answer.
    pub collector: collector::Last,
    error: Option<io::Error>,
}

impl Walk {
    pub fn new(names: Names, scope: Scope, data_types: DataTypes, globals: Globals) -> Self {
        Walk {
            names,
            scope,
            data_types,
            globals,
            templates: TemplateCache::default(),
            tracking: tracker::with(|tracker| tracker.recorder.live_objects() > 0).unwrap_or(false),
            edges: Vec::with_capacity(BATCH + 2),
            fields: Vec::new(),
            references: Vec::new(),
            labels: Vec::new(),
            unlabeled: UnlabeledRefs::default(),
            methods: FxHashSet::default(),
            constants: Constants::default(),
            digits: Vec::new(),
            members: FxHashMap::default(),
            finalizers: Vec::new(),
            finalizer_arrays: FxHashMap::default(),
            collector: collector::Last::default(),
            error: None,
        }
    }

    /// Adds a fact about the current object.
    pub fn field(&mut self, name: &'static str, value: Value) {
        let name = self.names.word(name);
        self.fields.push(Field { name, value });
    }

    /// Names of the members of a struct class.
    pub fn members_of(&mut self, class: VALUE) -> Rc<[NameId]> {
        if let Some(members) = self.members.get(&class) {
            return members.clone();
        }
        let members: Rc<[NameId]> = super::structs::members(&mut self.names, class).into();
        self.members.insert(class, members.clone());
        members
    }

    /// Stores an error from a callback, which cannot return it.
    pub fn keep(&mut self, outcome: std::thread::Result<io::Result<()>>) -> bool {
        let error = match outcome {
            Ok(Ok(())) => return true,
            Ok(Err(error)) => error,
            Err(_) => io::Error::other("internal error in memprof (please report it)"),
        };
        self.error.get_or_insert(error);
        false
    }

    /// The stored error.
    pub fn take_error(&mut self) -> Option<io::Error> {
        self.error.take()
    }
}
