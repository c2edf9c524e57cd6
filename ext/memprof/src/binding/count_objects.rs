//! `Memprof::Native.count_objects` and `count_instances`.

use magnus::rb_sys::AsRawValue;
use magnus::{Error, ExceptionClass, Module, Object, RArray, RHash, RModule, Ruby, function};

use crate::vm::{census, tracker};

pub fn init(native: RModule) -> Result<(), Error> {
    census::init();
    native
        .define_singleton_method("stack_checks", function!(crate::vm::stack_checks::counted, 0))?;
    native.define_singleton_method("count_instances", function!(count_instances, 1))?;
    native.define_singleton_method("count_objects", function!(count_objects, 1))
}

/// Instances of each class, with those of its subclasses.
fn count_instances(ruby: &Ruby, classes: RArray) -> Result<Vec<u64>, Error> {
    let classes: Vec<_> = (classes.into_iter()).map(|class| class.as_raw()).collect();
    census::count_instances(&classes).map_err(|why| failure(ruby, why))
}

/// Counts of slots, of types, and of the classes in the namespaces, in the order of the classic's keys.
fn count_objects(ruby: &Ruby, namespaces: RArray) -> Result<RHash, Error> {
    let namespaces: Vec<String> = namespaces.to_vec()?;
    let census = census::count_objects(&namespaces).map_err(|why| failure(ruby, why))?;
    tracker::suspended(|| {
        let counts = ruby.hash_new();
        counts.aset("total_slots", census.total_slots)?;
        counts.aset("free_slots", census.free_slots)?;
        counts.aset("basic_types", hash(ruby, &census.basic_types)?)?;
        counts.aset("user_types", hash(ruby, &census.user_types)?)?;
        Ok(counts)
    })
}

fn hash<N: AsRef<str>>(ruby: &Ruby, counts: &[(N, u64)]) -> Result<RHash, Error> {
    let hash = ruby.hash_new();
    for (name, count) in counts {
        hash.aset(ruby.str_new(name.as_ref()), *count)?;
    }
    Ok(hash)
}

/// A Memprof::Error.
pub fn failure(ruby: &Ruby, why: String) -> Error {
    let class: Result<ExceptionClass, Error> = (ruby.class_object())
        .const_get::<_, RModule>("Memprof")
        .and_then(|memprof| memprof.const_get("Error"));
    Error::new(class.unwrap_or_else(|_| ruby.exception_runtime_error()), why)
}
