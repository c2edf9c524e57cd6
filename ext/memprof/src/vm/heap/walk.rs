//! The walk: each object on the heap becomes a record for the writer.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

use memprof_heap::dump::format::Dump;
use memprof_heap::dump::record::{
    Allocation, Edge, Flags as Bits, Kind, Label, NameId, NoteKind, Object, Value,
};
use memprof_heap::dump::{Writer, record::Field};
use memprof_profile::sessions::SessionId;
use rb_sys::{VALUE, ruby_fl_type, ruby_value_type};
use rustc_hash::FxHashMap;

use super::class::Constants;
use super::known::Known;
use super::left::Left;
use super::names::Names;
use super::roots::Globals;
use super::{ahead, collector, contents, details, shapes, values};
use crate::vm::object::Flags;
use crate::vm::symbols::symbols;
use crate::vm::tracker;

/// Edges that are kept until they are handed to the writer.
const BATCH: usize = 4096;

/// What to walk over.
pub struct Scope {
    /// Only what this session recorded: no roots, no shapes.
    pub session: Option<SessionId>,
    /// Labels are wanted; without them references come in the order that the VM marks them in.
    pub labels: bool,
    /// Shapes are wanted.
    pub shapes: bool,
}

/// A walk in progress.
pub struct Walk<'w> {
    pub names: Names,
    pub scope: Scope,
    pub known: Known,
    pub globals: Globals,
    /// Something is or was tracked, so that objects may have a site.
    tracking: bool,
    writer: &'w mut Dump,
    edges: Vec<Edge<'static>>,
    /// Facts about the object that is being described.
    pub fields: Vec<Field>,
    /// What the VM says the object refers to.
    pub references: Vec<VALUE>,
    /// Labels of the object that is being described.
    pub labels: Vec<(Label, VALUE)>,
    /// References of that object that have no label yet.
    pub left: Left,
    /// For the constants of the class that is being described.
    pub constants: Constants,
    /// Digits of the Integer that is being described.
    pub digits: Vec<u8>,
    members: FxHashMap<VALUE, Rc<[NameId]>>,
    finalizers: Vec<u64>,
    collector: collector::Last,
    error: Option<io::Error>,
}

impl<'w> Walk<'w> {
    pub fn new(
        names: Names,
        scope: Scope,
        known: Known,
        globals: Globals,
        writer: &'w mut Dump,
    ) -> Self {
        Walk {
            names,
            scope,
            known,
            globals,
            tracking: tracker::with(|tracker| tracker.recorder.live_objects() > 0).unwrap_or(false),
            writer,
            edges: Vec::with_capacity(BATCH + 2),
            fields: Vec::new(),
            references: Vec::new(),
            labels: Vec::new(),
            left: Left::default(),
            constants: Constants::default(),
            digits: Vec::new(),
            members: FxHashMap::default(),
            finalizers: Vec::new(),
            collector: collector::Last::default(),
            error: None,
        }
    }

    /// Notes before, roots, shapes, objects, notes after. The collector must not run meanwhile.
    pub fn run(
        &mut self,
        before: &[(NoteKind, String)],
        after: &[(NoteKind, String)],
    ) -> io::Result<()> {
        for (kind, json) in before {
            self.writer.note(&self.names.tables, *kind, json)?;
        }
        if self.scope.session.is_none() {
            super::roots::walk(self)?;
            if self.scope.shapes {
                shapes::walk(self)?;
            }
        }
        self.objects()?;
        if self.scope.session.is_none() {
            let finalizers = super::roots::finalizers(&self.finalizers);
            self.writer
                .note(&self.names.tables, NoteKind::Finalizers, &finalizers)?;
        }
        for (kind, json) in after {
            self.writer.note(&self.names.tables, *kind, json)?;
        }
        Ok(())
    }

    fn objects(&mut self) -> io::Result<()> {
        if let Some(each_objects) = symbols().each_objects {
            let walk: *mut Self = self;
            // SAFETY: called with the GVL, outside a collection; `page` is given the walk, which outlives the call.
            unsafe { each_objects(page, walk.cast()) };
        }
        self.error.take().map_or(Ok(()), Err)
    }

    fn object(&mut self, address: VALUE, slot_size: u32) -> io::Result<()> {
        // SAFETY: a slot of the heap page that the walk visits.
        let flags = unsafe { Flags::of(address) };
        if flags.is(ruby_value_type::RUBY_T_NONE) || flags.is(ruby_value_type::RUBY_T_MOVED) {
            return Ok(());
        }
        let seen = self.scope.session.is_none_or(|session| {
            tracker::with(|tracker| {
                let recorder = &tracker.recorder;
                let record = recorder.record(address);
                record.is_some_and(|record| recorder.sees(session, record))
            }) == Some(true)
        });
        if !seen {
            return Ok(());
        }
        if flags.has_finalizer() && !flags.is(ruby_value_type::RUBY_T_ZOMBIE) {
            self.finalizers.push(address);
        }
        self.describe(address, flags, slot_size)
    }

    fn describe(&mut self, address: VALUE, flags: Flags, slot_size: u32) -> io::Result<()> {
        let kind = Kind(flags.value_type() as u8);
        self.fields.clear();
        self.edges.clear();
        if kind == Kind::ZOMBIE || kind == Kind::NODE {
            let object = details::bare(address, kind, slot_size);
            self.writer.object(&self.names.tables, &object)?;
            return self.writer.end(&self.names.tables);
        }
        // SAFETY: a slot that holds an object (not free, moved or dead); the collector does not run.
        let (collector, memsize, class) = unsafe {
            (
                collector::of(&mut self.collector, address),
                details::memsize(address, flags, slot_size),
                details::class(address, flags, !self.scope.labels),
            )
        };
        // SAFETY: as above.
        unsafe { contents::references(self, address, flags) };
        // SAFETY: as above.
        let (detail, mut bits) = unsafe { details::detail(self, address, flags) };
        bits.0 |= collector.flags.0;
        bits.set(
            Bits::FROZEN,
            flags.0 & ruby_fl_type::RUBY_FL_FREEZE as usize != 0,
        );
        bits.set(Bits::FINALIZE, flags.has_finalizer());
        let allocation = if self.tracking {
            self.names.allocation(address)
        } else {
            None
        };
        let object = Object {
            address,
            kind,
            class,
            // Objspace's lines, the ones without labels, have no place for it.
            class_name: if kind == Kind::IMEMO || !self.scope.labels {
                None
            } else {
                self.names.class(class)
            },
            slot_size,
            memsize,
            shape_id: shapes::of(address, flags),
            flags: bits,
            age: collector.age,
            object_id: collector.object_id,
            detail,
            fields: &self.fields,
            allocation: allocation.map(|(site, generation, time)| Allocation {
                site,
                generation,
                time,
            }),
        };
        self.writer.object(&self.names.tables, &object)?;
        // SAFETY: as above.
        unsafe { contents::edges(self, address, flags, class)? };
        self.flush()?;
        self.writer.end(&self.names.tables)
    }

    /// Puts an edge behind the others, field by field: made as a whole and then copied, it takes the processor several
    /// times as long.
    #[inline(always)]
    fn push(&mut self, label: Label, value: Value, preview: Option<&'static [u8]>) {
        let length = self.edges.len();
        if length >= self.edges.capacity() {
            self.edges.reserve(1);
        }
        // SAFETY: there is room for one more, all fields of which are written before it is counted.
        unsafe {
            let edge = self.edges.as_mut_ptr().add(length);
            (&raw mut (*edge).label).write(label);
            (&raw mut (*edge).value).write(value);
            (&raw mut (*edge).preview).write(preview);
            self.edges.set_len(length + 1);
        }
    }

    /// A key of a hash and its value.
    #[inline]
    pub fn entry(
        &mut self,
        key: Value,
        preview: Option<&'static [u8]>,
        value: Value,
    ) -> io::Result<()> {
        self.push(Label::Key, key, preview);
        self.push(Label::Entry, value, None);
        if self.edges.len() >= BATCH {
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        if !self.edges.is_empty() {
            self.writer.edges(&self.names.tables, &self.edges)?;
            self.edges.clear();
        }
        Ok(())
    }

    /// An edge with the value that a word of the VM is.
    #[inline(always)]
    pub fn value_edge(&mut self, label: Label, word: VALUE) -> io::Result<()> {
        let value = values::decode(&mut self.names, word);
        self.push(label, value, None);
        if self.edges.len() >= BATCH {
            self.flush()
        } else {
            Ok(())
        }
    }

    /// References from roots of a category.
    pub fn root_edges(&mut self, category: &str, edges: &[Edge<'_>]) -> io::Result<()> {
        self.writer.roots(&self.names.tables, category, edges)
    }

    /// A shape.
    pub fn shape(&mut self, shape: &memprof_heap::dump::record::Shape) -> io::Result<()> {
        self.writer.shape(&self.names.tables, shape)
    }

    /// Adds a fact about the object that is being described.
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

    /// Keeps an error of a callback, through which none can be returned.
    pub fn keep(&mut self, outcome: std::thread::Result<io::Result<()>>) -> bool {
        let error = match outcome {
            Ok(Ok(())) => return true,
            Ok(Err(error)) => error,
            Err(_) => io::Error::other("a bug in memprof's heap walk"),
        };
        self.error.get_or_insert(error);
        false
    }

    /// An error that was kept.
    pub fn take_error(&mut self) -> Option<io::Error> {
        self.error.take()
    }
}

unsafe extern "C" fn page(
    start: *mut c_void,
    end: *mut c_void,
    stride: usize,
    walk: *mut c_void,
) -> c_int {
    // SAFETY: `objects` passed the walk, and uses it again only when the walk over the heap is done.
    let walk = unsafe { &mut *walk.cast::<Walk<'_>>() };
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        let slots = (start as VALUE..end as VALUE).step_by(stride.max(8));
        for slot in slots {
            ahead::look(slot, stride, end as VALUE);
            walk.object(slot, stride as u32)?;
        }
        Ok(())
    }));
    c_int::from(!walk.keep(outcome))
}

/// What the VM says `object` refers to, in the order that it marks in.
///
/// # Safety
/// `object` is a slot that holds an object, and no collection runs.
pub unsafe fn reachable(object: VALUE, references: &mut Vec<VALUE>) {
    unsafe extern "C" fn collect(reference: VALUE, references: *mut c_void) {
        // SAFETY: the vector outlives the call that this is a callback of. Room was made for the push by Rust's own
        // allocator, which calls nothing of Ruby's; it ends the process where it has no memory left.
        unsafe { &mut *references.cast::<Vec<VALUE>>() }.push(reference);
        // Its flags are looked at for a label.
        ahead::touch(reference);
    }
    references.clear();
    if let Some(reachable_from) = symbols().reachable_from {
        let references: *mut Vec<VALUE> = references;
        // SAFETY: the caller vouches for the object.
        unsafe { reachable_from(object, collect, references.cast()) };
    }
}

/// Calls `visit` for each root with its category.
pub fn reachable_from_roots(mut visit: impl FnMut(&str, VALUE)) {
    unsafe extern "C" fn collect(category: *const c_char, reference: VALUE, visit: *mut c_void) {
        // SAFETY: the closure outlives the call that this is a callback of; categories are static strings.
        unsafe {
            let visit = &mut *visit.cast::<&mut dyn FnMut(&str, VALUE)>();
            visit(&CStr::from_ptr(category).to_string_lossy(), reference);
        }
    }
    if let Some(reachable_from_root) = symbols().reachable_from_root {
        let mut visit: &mut dyn FnMut(&str, VALUE) = &mut visit;
        // SAFETY: called with the GVL, outside a collection.
        unsafe { reachable_from_root(collect, (&raw mut visit).cast()) };
    }
}
