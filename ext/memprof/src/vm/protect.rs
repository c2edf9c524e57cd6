//! Calls of the VM that may raise.
//!
//! A Ruby exception jumps to where it is rescued. Rust frames in between are skipped without running destructors, and those of
//! the heap walk leave GC disabled; so each call into the VM that may raise goes through [`protect`].

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use magnus::error::ErrorType;
use magnus::rb_sys::AsRawValue;
use magnus::value::ReprValue;
use magnus::{Module, Ruby, TryConvert, Value};
use rb_sys::VALUE;

use super::{classes, ruby_object};

/// Evaluates code as the main program would. `Ruby::eval` resolves constants and methods in the current module and object of
/// the thread, which may have its own `Thread` or `Process`, or no methods at all.
///
/// # Errors
/// Exceptions of the code.
pub fn eval_at_top<T: TryConvert>(ruby: &Ruby, code: &str) -> Result<T, magnus::Error> {
    let binding: Value = ruby.class_object().const_get("TOPLEVEL_BINDING")?;
    binding.funcall("eval", (code, "(eval)", 1))
}

/// The VM raised an exception, which was rescued.
#[derive(Debug)]
pub struct Raised {
    class: Option<String>,
}

impl Raised {
    fn from(error: &magnus::Error) -> Self {
        let class = match error.error_type() {
            ErrorType::Exception(exception) => {
                // SAFETY: the exception was raised just now, and is held by the error.
                classes::real_name(unsafe { ruby_object::class_word(exception.as_raw()) })
            }
            // A class and a message from Rust, or a jump that is not an exception (`throw`).
            _ => None,
        };
        Raised { class }
    }
}

impl fmt::Display for Raised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let class = self.class.as_deref().unwrap_or("an exception");
        write!(f, "Ruby raised {class} while its heap was read")
    }
}

impl From<Raised> for std::io::Error {
    fn from(raised: Raised) -> Self {
        std::io::Error::other(raised.to_string())
    }
}

/// Calls `work`, and rescues exceptions raised by the VM in it. They skip the destructors of `work`'s frames: it should own
/// nothing that must be released, and nothing of [`super::tracker::with`]. A panic resumes after the VM's frames. Called with
/// the GVL.
///
/// # Errors
/// If the VM raised.
pub fn protect<T>(work: impl FnOnce() -> T) -> Result<T, Raised> {
    let mut outcome = None;
    let called = magnus::rb_sys::protect(|| {
        outcome = Some(catch_unwind(AssertUnwindSafe(work)));
        rb_sys::Qnil as VALUE
    });
    match (called, outcome) {
        (_, Some(Ok(value))) => Ok(value),
        (_, Some(Err(panic))) => resume_unwind(panic),
        (Err(error), None) => Err(Raised::from(&error)),
        (Ok(_), None) => Err(Raised { class: None }),
    }
}
