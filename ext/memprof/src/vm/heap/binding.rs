//! Prepares a walk with data from Ruby, and reads raw words of values.

use std::ffi::c_int;
use std::fs::File;
use std::io;
use std::sync::OnceLock;

use magnus::rb_sys::AsRawValue;
use magnus::value::ReprValue;
use magnus::{Error, RArray, Ruby, TryConvert, Value};
use rb_sys::{ID, VALUE};

use super::finalizer_table::{FinalizerTable, Known};
use super::locals::{LocalTable, Probe};
use super::typed_data::{self, DataTypes, Samples};
use crate::vm::protect::{eval_at_top, protect};
use crate::vm::{dump_files, layouts};

/// One object of each type to look into; procs with known local variables, and with different numbers of parameters and other
/// variables.
const SAMPLES: &str = "\
    [proc {}, method(:puts), binding, ::Thread.current, [].each, ::Fiber.new {}, {}.compare_by_identity, \
    ::Array.new(20) { |index| [index, index] }.to_h, [\
    proc { |memprof_a| memprof_b = memprof_c = 0; [memprof_b, memprof_c] },\
    proc { |memprof_d, memprof_e| memprof_f = memprof_g = memprof_h = memprof_i = memprof_j = 0; \
    [memprof_f, memprof_g, memprof_h, memprof_i, memprof_j] },\
    proc { memprof_k = memprof_l = memprof_m = memprof_n = memprof_o = 0; \
    [memprof_k, memprof_l, memprof_m, memprof_n, memprof_o] }], ::Object.new, ::Thread.main]";

/// Names of the variables of each proc, one letter each.
const NAMES: [&str; 3] = ["abc", "defghij", "klmno"];

/// The types, and where iseqs store the names of their variables and the VM its finalizers: determined once.
pub fn data_types(ruby: &Ruby) -> Result<DataTypes, Error> {
    static FOUND: OnceLock<DataTypes> = OnceLock::new();
    match FOUND.get() {
        Some(known) => Ok(known.clone()),
        None => find(ruby).map(|known| FOUND.get_or_init(|| known).clone()),
    }
}

fn find(ruby: &Ruby) -> Result<DataTypes, Error> {
    let samples: RArray = eval_at_top(ruby, SAMPLES)?;
    let object =
        |index: isize| -> Result<VALUE, Error> { Ok(samples.entry::<Value>(index)?.as_raw()) };
    let procs = RArray::try_convert(samples.entry::<Value>(8)?)?;
    let mut probes = Vec::new();
    for (index, letters) in NAMES.iter().enumerate() {
        let proc: Value = procs.entry(index as isize)?;
        let path: Value = proc.funcall::<_, _, RArray>("source_location", ())?.entry(0)?;
        probes.push(probe(proc.as_raw(), letters, path.as_raw()));
    }
    let samples = Samples {
        proc: object(0)?,
        method: object(1)?,
        binding: object(2)?,
        thread: object(3)?,
        enumerator: object(4)?,
        fiber: object(5)?,
        identity: object(6)?,
        table: object(7)?,
    };
    let probes: Option<Vec<Probe>> = probes.into_iter().collect();
    let locals = probes.as_deref().and_then(LocalTable::find);
    Ok(DataTypes {
        locals,
        finalizers: find_finalizers(object(9)?, samples.proc, object(10)?),
        ..DataTypes::new(&samples)
    })
}

/// Defines a finalizer, finds it, and removes it.
fn find_finalizers(object: VALUE, finalizer: VALUE, main_thread: VALUE) -> Option<FinalizerTable> {
    layouts::check().ok()?;
    let known = Known { object, finalizer, main_thread: typed_data::data(main_thread)? };
    // SAFETY: an object that is not frozen, and a Proc.
    protect(|| unsafe { rb_sys::rb_define_finalizer(object, finalizer) }).ok()?;
    let found = FinalizerTable::find(&known);
    // SAFETY: the same object.
    let _ = protect(|| unsafe { rb_sys::rb_undefine_finalizer(object) });
    found
}

fn probe(proc: VALUE, letters: &str, path: VALUE) -> Option<Probe> {
    // SAFETY: a Proc made from a block, whose third word is its iseq.
    let iseq = unsafe { typed_data::word(proc, 2) }?;
    let names = letters.chars().map(|letter| intern(&format!("memprof_{letter}")));
    Some(Probe { iseq, names: names.collect(), path })
}

fn intern(name: &str) -> ID {
    // SAFETY: interns a name of that length.
    unsafe { rb_sys::rb_intern2(name.as_ptr().cast(), name.len() as _) }
}

/// The raw word of a value.
pub fn address(value: Value) -> u64 {
    value.as_raw()
}

/// A duplicate of the descriptor of the caller's open IO. An invalid descriptor gives an error.
pub fn duplicate(descriptor: c_int) -> io::Result<File> {
    let file = dump_files::borrowed(descriptor)?;
    Ok(file.try_clone_to_owned()?.into())
}

/// Major and minor version of this Ruby.
pub fn version(_: &Ruby) -> (u8, u8) {
    layouts::running_version()
}

/// Calls `define`; the methods it defines may be called by other Ractors than the first.
pub fn ractor_safe<T>(define: impl FnOnce() -> T) -> T {
    // SAFETY: sets a flag of the frame that loads the extension, which is running.
    unsafe { rb_sys::rb_ext_ractor_safe(true) };
    let defined = define();
    // SAFETY: as above.
    unsafe { rb_sys::rb_ext_ractor_safe(false) };
    defined
}
