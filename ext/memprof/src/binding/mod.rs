//! The Ruby API: one file per Ruby module or class.

mod convert_dump;
mod count_objects;
mod dump;
mod exceptions;
mod heap;
mod job;
mod malloc;
mod native;
mod native_agent;
mod native_files;
mod native_image;
mod native_iseqs;
mod native_memory;
mod native_profile;
mod native_snapshot;
mod native_trace;
mod recordings;
mod request_log;
mod requests;
mod trace_report;

use magnus::{Error, Module, Ruby};

/// Defines `Memprof::Native` and its contents.
pub fn init(ruby: &Ruby) -> Result<(), Error> {
    let memprof = ruby.define_module("Memprof")?;
    let native = memprof.define_module("Native")?;
    native_profile::init(ruby, native)?;
    dump::init(ruby, native)?;
    native_files::init(ruby, native)?;
    native_image::init(ruby, native)?;
    heap::init(ruby, native)?;
    convert_dump::init(ruby, native)?;
    count_objects::init(native)?;
    native_iseqs::init(native)?;
    native_memory::init(native)?;
    native_snapshot::init(ruby, native)?;
    native_trace::init(ruby, native)?;
    trace_report::init(ruby, native)?;
    requests::init(ruby, native)?;
    request_log::init(ruby, native)?;
    malloc::init(ruby, native)?;
    recordings::init(native)?;
    native_agent::init(native)?;
    native::init(ruby, native)
}
