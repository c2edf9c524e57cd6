//! `Memprof::Native`: files and /proc, mostly without releasing the GVL. Errors are Ruby's own, such as `Errno::ENOENT`.

use std::io;
use std::os::fd::IntoRawFd;
use std::path::PathBuf;

use magnus::value::ReprValue;
use magnus::{Error, Exception, ExceptionClass, Module, Object, RArray, RModule, Ruby, function};

use crate::vm::{dump_files, gvl, process};

pub fn init(_: &Ruby, native: RModule) -> Result<(), Error> {
    native.define_singleton_method("create_locked", function!(create_locked, 2))?;
    native.define_singleton_method("create_nameless", function!(create_nameless, 2))?;
    native.define_singleton_method("remove_file", function!(remove_file, 1))?;
    native.define_singleton_method("rename_file", function!(rename_file, 2))?;
    native.define_singleton_method("kind_of_file", function!(kind_of_file, 1))?;
    native.define_singleton_method("size_at", function!(size_at, 2))?;
    native.define_singleton_method("free_space", function!(free_space, 1))?;
    native.define_singleton_method("taken?", function!(is_taken, 1))?;
    native.define_singleton_method("source_file?", function!(is_source, 1))?;
    native.define_singleton_method("open_files", function!(open_files, 0))?;
    native.define_singleton_method("process_sizes", function!(process_sizes, 0))
}

/// Adds the descriptor to `made`, if the file is ours. It is not returned, as an exception from another thread or a signal
/// could come before the caller has the return value, and the file would have no owner.
fn create_locked(ruby: &Ruby, path: PathBuf, made: RArray) -> Result<(), Error> {
    match dump_files::create_locked(&path).map_err(|error| system_error(ruby, &error))? {
        Some(file) => made.push(file.into_raw_fd()),
        None => Ok(()),
    }
}

/// Adds the descriptor to `made`, as [`create_locked`] does.
fn create_nameless(ruby: &Ruby, path: PathBuf, made: RArray) -> Result<(), Error> {
    let file = dump_files::create_nameless(&path).map_err(|error| system_error(ruby, &error))?;
    made.push(file.into_raw_fd())
}

fn remove_file(ruby: &Ruby, path: PathBuf) -> Result<bool, Error> {
    dump_files::remove(&path).map_err(|error| system_error(ruby, &error))
}

/// If another file is replaced, releases the GVL: the system then frees that file's memory and disk space, which takes a second
/// for gigabytes.
fn rename_file(ruby: &Ruby, from: PathBuf, to: PathBuf) -> Result<(), Error> {
    let aside = dump_files::is_taken(&to).then(|| gvl::without(|| dump_files::rename(&from, &to)));
    // If already interrupted, it runs here, and Ruby handles the interrupt after the call.
    let outcome = aside.flatten().unwrap_or_else(|| dump_files::rename(&from, &to));
    outcome.map_err(|error| system_error(ruby, &error))
}

fn kind_of_file(path: PathBuf) -> Option<&'static str> {
    dump_files::kind(&path)
}

/// Bytes of an open file, or nil if its path now refers to another file or to none.
fn size_at(ruby: &Ruby, descriptor: i32, path: PathBuf) -> Result<Option<u64>, Error> {
    if descriptor < 0 {
        return Err(system_error(ruby, &io::Error::from_raw_os_error(libc::EBADF)));
    }
    dump_files::size_at(descriptor, &path).map_err(|error| system_error(ruby, &error))
}

/// Bytes that can still be written to the file system of a path.
fn free_space(ruby: &Ruby, path: PathBuf) -> Result<u64, Error> {
    dump_files::free_space(&path).map_err(|error| system_error(ruby, &error))
}

fn is_taken(path: PathBuf) -> bool {
    dump_files::is_taken(&path)
}

fn is_source(name: String) -> bool {
    dump_files::is_source(&name)
}

/// Descriptor, flags or nil, type bits, and name as bytes, for each open file.
fn open_files(ruby: &Ruby) -> Result<RArray, Error> {
    let files = ruby.ary_new();
    for file in process::open_files() {
        let name = ruby.str_from_slice(&file.name);
        files.push((file.descriptor, file.flags, file.file_type, name))?;
    }
    Ok(files)
}

/// KiB of resident memory, and of address space.
fn process_sizes() -> Option<(u64, u64)> {
    process::sizes().map(|sizes| (sizes.resident, sizes.address_space))
}

/// The exception that Ruby's own functions raise.
pub fn system_error(ruby: &Ruby, error: &io::Error) -> Error {
    let exception = || -> Result<Exception, Error> {
        let class: ExceptionClass = ruby.class_object().const_get("SystemCallError")?;
        class.funcall("new", ((), error.raw_os_error()))
    };
    exception().map_or_else(|failed| failed, Error::from)
}
