//! What Ruby sees: one file per Ruby module or class.

mod census;
mod convert;
mod dump;
mod error;
mod files;
mod heap;
mod iseqs;
mod job;
mod native;
mod profile;
mod requests;
mod trace;
mod trace_report;

use magnus::{Error, Module, Ruby};

/// Defines `Memprof::Native` and what is in it.
pub fn init(ruby: &Ruby) -> Result<(), Error> {
    let memprof = ruby.define_module("Memprof")?;
    let native = memprof.define_module("Native")?;
    profile::init(ruby, native)?;
    dump::init(ruby, native)?;
    files::init(ruby, native)?;
    heap::init(ruby, native)?;
    convert::init(ruby, native)?;
    census::init(native)?;
    iseqs::init(native)?;
    trace::init(ruby, native)?;
    trace_report::init(ruby, native)?;
    requests::init(ruby, native)?;
    native::init(ruby, native)
}
