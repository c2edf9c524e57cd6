//! One pass over the heap: each object becomes a record for the writer.
//!
//! Monomorphized for its writer, so that the work for each object and each edge is compiled into one piece of code.

use std::ffi::{c_int, c_void};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};

use memprof_dump::record::{Edge, Flags as Bits, Kind, Label, NoteKind, Object, PREVIEW, Value};
use memprof_dump::values::beginning;
use memprof_dump::writer::LiveWriter;
use rb_sys::{VALUE, ruby_fl_type, ruby_value_type};

use super::walk::{BATCH, Walk};
use super::{collector, contents, details, plain, prefetch, ruby_value, shapes, text};
use crate::vm::ruby_object::Flags;
use crate::vm::symbols::symbols;
use crate::vm::tracker;

/// The walk and the writer of its records.
pub struct Pass<'w, W> {
    pub walk: Walk,
    pub writer: &'w mut W,
}

impl<W: LiveWriter> Pass<'_, W> {
    /// Writes the notes before, roots, shapes, objects, and notes after. The GC must not run meanwhile.
    pub fn run(
        &mut self,
        before: &[(NoteKind, String)],
        after: &[(NoteKind, String)],
    ) -> io::Result<()> {
        for (kind, json) in before {
            self.writer.note(&self.walk.names.tables, *kind, json)?;
        }
        if self.walk.scope.session.is_none() {
            super::roots::walk(self)?;
            if self.walk.scope.shapes {
                shapes::walk(self)?;
            }
        }
        self.objects()?;
        if self.walk.scope.session.is_none() {
            let finalizers =
                super::roots::finalizers(&self.walk.finalizers, &self.walk.finalizer_arrays);
            self.writer.note(&self.walk.names.tables, NoteKind::Finalizers, &finalizers)?;
        }
        for (kind, json) in after {
            self.writer.note(&self.walk.names.tables, *kind, json)?;
        }
        Ok(())
    }

    fn objects(&mut self) -> io::Result<()> {
        if let Some(each_objects) = symbols().each_objects {
            let pass: *mut Self = self;
            // SAFETY: called with the GVL, outside a GC; `page` is given the pass, which outlives the call.
            unsafe { each_objects(page::<W>, pass.cast()) };
        }
        self.walk.take_error().map_or(Ok(()), Err)
    }

    fn object(&mut self, address: VALUE, slot_size: u32) -> io::Result<()> {
        // SAFETY: a slot of the heap page that the walk visits.
        let flags = unsafe { Flags::of(address) };
        if flags.is(ruby_value_type::RUBY_T_NONE) || flags.is(ruby_value_type::RUBY_T_MOVED) {
            return Ok(());
        }
        let seen = self.walk.scope.session.is_none_or(|session| {
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
            self.walk.finalizers.push(address);
        }
        // SAFETY: a slot that holds an object (not free, moved or dead); GC does not run.
        if unsafe { plain::describe(self, address, flags, slot_size)? } {
            return Ok(());
        }
        self.describe(address, flags, slot_size)
    }

    #[inline(never)]
    fn describe(&mut self, address: VALUE, flags: Flags, slot_size: u32) -> io::Result<()> {
        let kind = Kind(flags.value_type() as u8);
        self.walk.fields.clear();
        self.walk.edges.clear();
        if kind == Kind::ZOMBIE || kind == Kind::NODE {
            let object = details::bare(address, kind, slot_size);
            self.writer.object(&self.walk.names.tables, &object)?;
            return self.writer.end(&self.walk.names.tables);
        }
        // SAFETY: a slot that holds an object (not free, moved or dead); GC does not run.
        let (collector, memsize, class) = unsafe {
            (
                collector::of(&mut self.walk.collector, address),
                details::memsize(address, flags, slot_size),
                details::class(address, flags, !self.walk.scope.labels),
            )
        };
        // SAFETY: as above.
        unsafe { contents::references(&mut self.walk, address, flags) };
        // SAFETY: as above.
        let (detail, mut bits) = unsafe { details::detail(&mut self.walk, address, flags) };
        bits.0 |= collector.flags.0;
        bits.set(Bits::FROZEN, flags.0 & ruby_fl_type::RUBY_FL_FREEZE as usize != 0);
        bits.set(Bits::FINALIZE, flags.has_finalizer());
        let allocation =
            if self.walk.tracking { self.walk.names.allocation(address) } else { None };
        let object = Object {
            address,
            kind,
            class,
            // objspace's lines, which have no labels, have no field for it.
            class_name: if kind == Kind::IMEMO || !self.walk.scope.labels {
                None
            } else {
                self.walk.names.class(class)
            },
            slot_size,
            memsize,
            shape_id: shapes::of(address, flags),
            flags: bits,
            age: collector.age,
            object_id: collector.object_id,
            detail,
            fields: &self.walk.fields,
            allocation,
        };
        self.writer.object(&self.walk.names.tables, &object)?;
        // SAFETY: as above.
        unsafe { contents::edges(self, address, flags, class)? };
        self.end()
    }

    /// Appends an edge field by field: built as a whole and then copied, it would take several times as long.
    #[inline(always)]
    fn push(&mut self, label: Label, value: Value, preview: Option<&'static [u8]>) {
        let length = self.walk.edges.len();
        if length >= self.walk.edges.capacity() {
            self.walk.edges.reserve(1);
        }
        // SAFETY: there is room for one more, all fields of which are written before it is counted.
        unsafe {
            let edge = self.walk.edges.as_mut_ptr().add(length);
            (&raw mut (*edge).label).write(label);
            (&raw mut (*edge).value).write(value);
            (&raw mut (*edge).preview).write(preview);
            self.walk.edges.set_len(length + 1);
        }
    }

    /// A key of a hash and its value.
    #[inline(always)]
    pub fn entry(&mut self, key: VALUE, value: VALUE) -> io::Result<()> {
        if !W::LABELS {
            self.edge(Label::Key, key)?;
            return self.edge(Label::Entry, value);
        }
        let walk = &mut self.walk;
        // SAFETY: the key of a hash is an immediate or an object.
        let preview = unsafe {
            (walk.scope.labels && walk.names.values.previews() && text::is_string(key))
                .then(|| beginning(text::bytes(key), PREVIEW))
        };
        let key = ruby_value::decode(&mut walk.names, key);
        let value = ruby_value::decode(&mut walk.names, value);
        let edge = |label, value, preview| Edge { label, value, preview };
        if W::ONE_BY_ONE {
            let tables = &self.walk.names.tables;
            self.writer.edge(tables, edge(Label::Key, key, preview))?;
            return self.writer.edge(tables, edge(Label::Entry, value, None));
        }
        self.push(Label::Key, key, preview);
        self.push(Label::Entry, value, None);
        self.passed()
    }

    /// An edge with the value of a VM word.
    #[inline(always)]
    pub fn edge(&mut self, label: Label, word: VALUE) -> io::Result<()> {
        if !W::LABELS && !ruby_value::is_address(word) {
            return Ok(());
        }
        if !W::ONE_BY_ONE {
            return self.queue(label, word);
        }
        let value = ruby_value::decode(&mut self.walk.names, word);
        let edge = Edge { label, value, preview: None };
        self.writer.edge(&self.walk.names.tables, edge)
    }

    /// The elements of an array.
    #[inline(always)]
    pub fn elements(&mut self, elements: &[VALUE]) -> io::Result<()> {
        let mut at = 0;
        while at < elements.len() {
            if W::ONE_BY_ONE {
                let most = elements.len().min(at + BATCH);
                let mut end = at;
                while end < most && ruby_value::is_address(elements[end]) {
                    end += 1;
                }
                if end > at + 1 {
                    let run = &elements[at..end];
                    self.writer.run(&self.walk.names.tables, at as u32, run)?;
                    at = end;
                    continue;
                }
            }
            self.edge(Label::Index(at as u32), elements[at])?;
            at += 1;
        }
        Ok(())
    }

    /// As [`Pass::edge`], for one that is passed to the writer together with those that follow it.
    #[inline(always)]
    pub fn queue(&mut self, label: Label, word: VALUE) -> io::Result<()> {
        let value = ruby_value::decode(&mut self.walk.names, word);
        self.push(label, value, None);
        self.passed()
    }

    #[inline(always)]
    fn passed(&mut self) -> io::Result<()> {
        if self.walk.edges.len() >= BATCH {
            self.flush()?;
        }
        Ok(())
    }

    /// Ends the object's record.
    #[inline(always)]
    pub fn end(&mut self) -> io::Result<()> {
        self.flush()?;
        self.writer.end(&self.walk.names.tables)
    }

    #[inline(always)]
    fn flush(&mut self) -> io::Result<()> {
        if !self.walk.edges.is_empty() {
            self.writer.edges(&self.walk.names.tables, &self.walk.edges)?;
            self.walk.edges.clear();
        }
        Ok(())
    }
}

unsafe extern "C" fn page<W: LiveWriter>(
    start: *mut c_void,
    end: *mut c_void,
    stride: usize,
    pass: *mut c_void,
) -> c_int {
    // SAFETY: `objects` passed itself, and goes on only when the walk over the heap is done.
    let pass = unsafe { &mut *pass.cast::<Pass<'_, W>>() };
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        let slots = (start as VALUE..end as VALUE).step_by(stride.max(8));
        for slot in slots {
            prefetch::look(slot, stride, end as VALUE);
            pass.object(slot, stride as u32)?;
        }
        Ok(())
    }));
    c_int::from(!pass.walk.keep(outcome))
}
