//! `Memprof::Native::Trace`: the tracers of the VM, from begin to finish.

use std::cell::RefCell;
use std::sync::Arc;

use magnus::{
    Class, DataTypeFunctions, Error, ExceptionClass, Module, Object, RModule, Ruby, TypedData,
    function, method,
};
use memprof_native::Refused;

use super::trace_report::NativeReport;
use crate::vm::after_fork;
use crate::vm::trace::{self, Installation, Running};

/// The tracers of a trace. Reused for many traces: a server has one trace per request.
#[derive(TypedData)]
#[magnus(class = "Memprof::Native::TraceChoice", free_immediately)]
pub struct NativeChoice(Arc<Choice>);

impl DataTypeFunctions for NativeChoice {}

/// Tracers and their names.
pub struct Choice {
    /// Tracers of the extension.
    own: trace::Choice,
    /// All tracers in the report, in order.
    pub reported: Vec<String>,
}

/// One trace. It is created before counting starts, so that it is not counted itself. A trace that is never finished, because
/// its fiber was discarded, ends with this object.
#[derive(TypedData)]
#[magnus(class = "Memprof::Native::Trace")]
pub struct NativeTrace {
    choice: Arc<Choice>,
    process: bool,
    running: RefCell<Option<Begun>>,
}

/// State shared between the traces of a server, released with this object.
#[derive(TypedData)]
#[magnus(class = "Memprof::Native::TraceInstallation")]
pub struct NativeInstallation(RefCell<Option<Installation>>);

impl DataTypeFunctions for NativeInstallation {}

struct Begun {
    vm: Running,
    /// The process in which it began: the child of a fork no longer counts anything for it.
    pid: u32,
}

impl DataTypeFunctions for NativeTrace {}

pub fn init(ruby: &Ruby, native: RModule) -> Result<(), Error> {
    native.define_class("TraceGuard", ruby.class_object())?;
    trace::init(ruby)?;
    native.define_singleton_method("gvl_wait", function!(gvl_wait, 0))?;
    let choice = native.define_class("TraceChoice", ruby.class_object())?;
    choice.undef_default_alloc_func();
    choice.define_singleton_method("new", function!(NativeChoice::new, 2))?;
    let installation = native.define_class("TraceInstallation", ruby.class_object())?;
    installation.undef_default_alloc_func();
    installation.define_singleton_method("new", function!(NativeInstallation::new, 1))?;
    installation.define_method("release", method!(NativeInstallation::release, 0))?;
    let class = native.define_class("Trace", ruby.class_object())?;
    class.undef_default_alloc_func();
    class.define_singleton_method("new", function!(NativeTrace::new, 2))?;
    class.define_singleton_method("names", function!(trace::names, 0))?;
    class.define_singleton_method("call_names", function!(call_names, 0))?;
    class.define_singleton_method("after_fork", function!(after_fork::remove_hooks, 0))?;
    class.define_method("begin", method!(NativeTrace::begin, 0))?;
    class.define_method("finish", method!(NativeTrace::finish, 0))
}

/// Tracers that count library calls, which may be impossible in a process.
fn call_names() -> Vec<&'static str> {
    memprof_native::names().to_vec()
}

/// Seconds that the calling thread has waited for the GVL, as far as a trace had the VM report it.
fn gvl_wait() -> f64 {
    trace::waited().as_secs_f64()
}

impl NativeChoice {
    fn new(ruby: &Ruby, own: Vec<String>, reported: Vec<String>) -> Result<Self, Error> {
        let own =
            trace::Choice::of(&own, &reported).map_err(|why| unsupported(ruby, "calls", &why))?;
        Ok(NativeChoice(Arc::new(Choice { own, reported })))
    }
}

impl NativeInstallation {
    fn new(ruby: &Ruby, choice: &NativeChoice) -> Result<Self, Error> {
        let installed =
            trace::install(&choice.0.own).map_err(|why| unsupported(ruby, "calls", &why))?;
        Ok(NativeInstallation(RefCell::new(Some(installed))))
    }

    /// A second call does nothing.
    fn release(&self) {
        drop(self.0.take());
    }
}

impl NativeTrace {
    fn new(choice: &NativeChoice, process: bool) -> Self {
        NativeTrace { choice: Arc::clone(&choice.0), process, running: RefCell::new(None) }
    }

    /// Starts counting. Allocates no Ruby object.
    fn begin(ruby: &Ruby, this: &Self) -> Result<(), Error> {
        if this.running.borrow().is_some() {
            return Err(Error::new(ruby.exception_runtime_error(), "the trace has begun"));
        }
        let vm = trace::begin(&this.choice.own, this.process)
            .map_err(|why| unsupported(ruby, "calls", &why))?;
        let pid = std::process::id();
        *this.running.borrow_mut() = Some(Begun { vm, pid });
        Ok(())
    }

    /// Stops counting; returns the report, or nil if there is none: it was already ended, or this is the child of a fork.
    fn finish(_: &Ruby, this: &Self) -> Option<NativeReport> {
        let begun = this.running.borrow_mut().take()?;
        let counted = trace::finish(begun.vm);
        (begun.pid == std::process::id())
            .then(|| NativeReport::new(Arc::clone(&this.choice), counted))
    }
}

/// Why `what` can't be traced, as a Memprof::Unsupported.
pub fn unsupported(ruby: &Ruby, what: &str, why: &Refused) -> Error {
    let class: Result<ExceptionClass, Error> = (ruby.class_object())
        .const_get::<_, RModule>("Memprof")
        .and_then(|memprof| memprof.const_get("Unsupported"));
    Error::new(
        class.unwrap_or_else(|_| ruby.exception_runtime_error()),
        format!("{what} cannot be traced: {why}"),
    )
}
