//! `Memprof::Native.memory`: the memory of a process by use, as JSON.

use std::io;

use magnus::{Error, Object, RArray, RModule, Ruby, function};
use serde::Serialize;

use super::count_objects::failure;
use crate::os_errors;
use crate::vm::{process_memory, tracker};

const FORBIDDEN: &str = "reading its mappings is not permitted: run memprof as its user, or as root with the capability SYS_PTRACE";

pub fn init(native: RModule) -> Result<(), Error> {
    process_memory::init();
    native.define_singleton_method("memory", function!(ledger, 0))?;
    native.define_singleton_method("memory_of", function!(ledger_of, 1))?;
    native.define_singleton_method("memory_of_cluster", function!(cluster, 1))?;
    native.define_singleton_method("heap_pages", function!(heap_pages, 0))
}

fn ledger(ruby: &Ruby) -> Result<String, Error> {
    json(ruby, process_memory::ledger())
}

/// The ledger of another process.
fn ledger_of(ruby: &Ruby, pid: u32) -> Result<String, Error> {
    json(ruby, process_memory::ledger_of(pid))
}

/// The cluster of a process and those forked from it; without a process, the cluster of this one.
fn cluster(ruby: &Ruby, pid: Option<u32>) -> Result<String, Error> {
    let pid = pid.map_or_else(|| memprof_ledger::master_of(std::process::id()), Ok);
    json(ruby, pid.and_then(memprof_ledger::cluster))
}

/// Address, slot size, slots and used slots of each page.
fn heap_pages(ruby: &Ruby) -> Result<RArray, Error> {
    let pages = process_memory::heap_pages().map_err(|why| failure(ruby, why))?;
    tracker::suspended(|| {
        let array = ruby.ary_new_capa(pages.len());
        for page in pages {
            array.push((page.address, page.slot_size, page.slots, page.used))?;
        }
        Ok(array)
    })
}

fn json(ruby: &Ruby, measured: io::Result<impl Serialize>) -> Result<String, Error> {
    let measured = measured.map_err(|error| match error.kind() {
        io::ErrorKind::PermissionDenied => failure(ruby, FORBIDDEN.to_owned()),
        _ => failure(ruby, os_errors::text(&error)),
    })?;
    serde_json::to_string(&measured).map_err(|error| failure(ruby, error.to_string()))
}
