//! Ruby code of memprof's own, evaluated where a program may be at anything.

use magnus::value::ReprValue;
use magnus::{Error, Module, Ruby, TryConvert, Value};

/// Evaluates code as the main program would: `Ruby::eval` looks constants and methods up in the module and the object
/// that the thread is at, which may have a `Thread` or `Process` of its own, or no methods at all.
///
/// # Errors
/// What the code raises.
pub fn eval<T: TryConvert>(ruby: &Ruby, code: &str) -> Result<T, Error> {
    let binding: Value = ruby.class_object().const_get("TOPLEVEL_BINDING")?;
    binding.funcall("eval", (code, "(eval)", 1))
}
