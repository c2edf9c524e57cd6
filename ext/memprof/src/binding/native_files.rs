//! `Memprof::Native`: files and /proc, mostly without giving the GVL up. Errors are Ruby's own, `Errno::ENOENT` and the like.

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
    native.define_singleton_method("taken?", function!(is_taken, 1))?;
    native.define_singleton_method("source_file?", function!(is_source, 1))?;
    native.define_singleton_method("open_files", function!(open_files, 0))?;
    native.define_singleton_method("process_sizes", function!(process_sizes, 0))
}

/// Adds the descriptor to `made`, if the file is ours. It is not returned: an exception that another thread or a signal
/// sends comes before a caller has what a method returns, and no one would know whose file it is.
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

/// Where a file is replaced, the system gives the memory of the old one back and the new one its place on the disk: with
/// gigabytes that takes a second, in which other threads go on.
fn rename_file(ruby: &Ruby, from: PathBuf, to: PathBuf) -> Result<(), Error> {
    let aside = dump_files::is_taken(&to).then(|| gvl::without(|| dump_files::rename(&from, &to)));
    // Interrupted already: then here, and Ruby looks after the interrupt when it has the answer.
    let outcome = aside
        .flatten()
        .unwrap_or_else(|| dump_files::rename(&from, &to));
    outcome.map_err(|error| system_error(ruby, &error))
}

fn kind_of_file(path: PathBuf) -> Option<&'static str> {
    dump_files::kind(&path)
}

/// Bytes of an open file, or nil if the path names another one by now, or none.
fn size_at(ruby: &Ruby, descriptor: i32, path: PathBuf) -> Result<Option<u64>, Error> {
    if descriptor < 0 {
        return Err(system_error(
            ruby,
            &io::Error::from_raw_os_error(libc::EBADF),
        ));
    }
    dump_files::size_at(descriptor, &path).map_err(|error| system_error(ruby, &error))
}

fn is_taken(path: PathBuf) -> bool {
    dump_files::is_taken(&path)
}

fn is_source(name: String) -> bool {
    dump_files::is_source(&name)
}

/// Descriptor, flags or nil, type bits, and name as bytes, of each open file.
fn open_files(ruby: &Ruby) -> Result<RArray, Error> {
    let files = ruby.ary_new();
    for file in process::open_files() {
        let name = ruby.str_from_slice(&file.name);
        files.push((file.descriptor, file.flags, file.file_type, name))?;
    }
    Ok(files)
}

/// KiB in memory, and of address space.
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
