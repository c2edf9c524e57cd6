//! Shapes: the layout of objects' instance variables, since Ruby 3.2.

use std::ffi::c_void;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};

use memprof_dump::record::Shape;
use memprof_dump::writer::LiveWriter;
use rb_sys::{ID, VALUE, ruby_value_type};

use super::pass::Pass;
use crate::vm::ruby_object::Flags;
use crate::vm::symbols::symbols;

/// Bits of a shape id that are not flags (Ruby 4.0: SHAPE_ID_OFFSET_MASK in shape.h).
const OFFSET_MASK: u32 = if cfg!(ruby_gte_4_0) { INDEX as u32 } else { u32::MAX };

/// Flag bits of a shape id (Ruby 4.0: enum shape_id_fl_type in shape.h).
const HAS_OBJECT_ID: u64 = 1 << 26;
const TOO_COMPLEX: u64 = 1 << 27;
const INDEX: u64 = (1 << 19) - 1;

/// True if the object has instance variables, or an object id, which is stored like one (Ruby 4.0).
#[inline]
pub fn has_fields(flags: Flags) -> bool {
    flags.0 as u64 >> 32 & (INDEX | TOO_COMPLEX) != 0
}

/// True if the instance variables are in a hash table (Ruby 4.0).
pub fn is_too_complex(flags: Flags) -> bool {
    flags.0 as u64 >> 32 & TOO_COMPLEX != 0
}

/// True if the object has an object id (Ruby 4.0).
pub fn has_object_id(flags: Flags) -> bool {
    flags.0 as u64 >> 32 & HAS_OBJECT_ID != 0
}

/// Shape id of an object.
#[inline]
pub fn of(object: VALUE, flags: Flags) -> Option<u32> {
    if !cfg!(ruby_gte_3_2) {
        return None;
    }
    // Before 4.0 internal objects have a shape id, too. The ids of classes, and of objects whose instance variables are stored
    // elsewhere, are not in the flags, so the VM is asked.
    if cfg!(ruby_gte_4_0)
        && flags.is(ruby_value_type::RUBY_T_IMEMO)
        && !super::imemo::is_fields(flags)
    {
        return None;
    }
    symbols().object_shape_id.map(|shape_id| {
        // SAFETY: an object of the walk.
        let number = unsafe { shape_id(object) };
        number & OFFSET_MASK
    })
}

/// Writes all shapes.
pub fn walk<W: LiveWriter>(pass: &mut Pass<'_, W>) -> io::Result<()> {
    let data: *mut Pass<'_, W> = pass;
    // SAFETY: called with the GVL; the callbacks are given the pass, which outlives the call.
    unsafe {
        if let Some(each_shape) = symbols().each_shape {
            each_shape(shape::<W>, data.cast());
        } else if let Some(each_shape_id) = symbols().each_shape_id {
            each_shape_id(shape_of_id::<W>, data.cast());
        }
    }
    pass.walk.take_error().map_or(Ok(()), Err)
}

/// struct rb_shape in shape.h, as far as needed.
#[repr(C)]
struct RawShape {
    edges: usize,
    edge_name: ID,
    #[cfg(not(ruby_gte_4_0))]
    next_iv_index: u32,
    #[cfg(not(ruby_gte_4_0))]
    capacity: u32,
    #[cfg(not(ruby_gte_4_0))]
    kind: u8,
    #[cfg(not(ruby_gte_4_0))]
    size_pool: u8,
    #[cfg(ruby_gte_4_0)]
    ancestors: usize,
    parent_id: u32,
    #[cfg(ruby_gte_4_0)]
    next_field_index: u16,
    #[cfg(ruby_gte_4_0)]
    capacity: u16,
    #[cfg(ruby_gte_4_0)]
    kind: u8,
}

/// Names of shape types (enum shape_type in shape.h), which 3.3 and 4.0 changed.
const TYPES: &[&str] = if cfg!(ruby_gte_4_0) {
    &["ROOT", "IVAR", "OBJ_ID"]
} else if cfg!(ruby_gte_3_3) {
    &["ROOT", "IVAR", "FROZEN", "T_OBJECT", "OBJ_TOO_COMPLEX"]
} else {
    &[
        "ROOT",
        "IVAR",
        "FROZEN",
        "CAPACITY_CHANGE",
        "INITIAL_CAPACITY",
        "T_OBJECT",
        "OBJ_TOO_COMPLEX",
    ]
};

unsafe extern "C" fn shape<W: LiveWriter>(raw: *const c_void, pass: *mut c_void) {
    let Some(shape_id) = symbols().shape_id else {
        return;
    };
    // SAFETY: the VM passes one of its shapes.
    let id = unsafe { shape_id(raw) };
    // SAFETY: as above; `walk` passed the pass.
    unsafe { write::<W>(raw, id, raw as usize, pass) };
}

unsafe extern "C" fn shape_of_id<W: LiveWriter>(id: u32, pass: *mut c_void) {
    let Some(tree) = symbols().shape_tree else {
        return;
    };
    // SAFETY: the first word of the table of shapes is the address of their array; the VM passes a number in it.
    unsafe {
        let raw = (*tree).cast::<RawShape>().add(id as usize);
        write::<W>(raw.cast(), id, id as usize, pass);
    }
}

/// # Safety
/// `raw` is a shape, `handle` what the VM's functions take for it, `pass` a [`Pass`] with this writer.
unsafe fn write<W: LiveWriter>(raw: *const c_void, id: u32, handle: usize, pass: *mut c_void) {
    // SAFETY: the caller vouches; nothing else uses the pass during the callback.
    let (raw, address, pass) =
        unsafe { (&*raw.cast::<RawShape>(), raw as u64, &mut *pass.cast::<Pass<'_, W>>()) };
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        let of = |function: Option<unsafe extern "C" fn(usize) -> usize>| {
            // SAFETY: takes the handle of a shape.
            function.map_or(0, |function| unsafe { function(handle) }) as u64
        };
        let kind = TYPES.get(raw.kind as usize).copied().unwrap_or("UNKNOWN");
        let shape = Shape {
            address,
            id: u64::from(id),
            parent_id: (kind != "ROOT").then_some(u64::from(raw.parent_id)),
            depth: of(symbols().shape_depth),
            shape_type: pass.walk.names.word(kind),
            edge_name: (kind == "IVAR").then(|| pass.walk.names.id(raw.edge_name)),
            edges: of(symbols().shape_edges_count),
            memsize: of(symbols().shape_memsize),
        };
        pass.writer.shape(&pass.walk.names.tables, &shape)
    }));
    pass.walk.keep(outcome);
}
