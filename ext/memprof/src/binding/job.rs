//! Long-running work: a separate thread does it while the Ruby thread waits without the GVL.
//!
//! So the Ruby thread can be interrupted at any time, and can report progress meanwhile. Abandoned work continues until it
//! checks whether it is still wanted.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use magnus::{Error, Ruby};

use crate::vm::gvl;

/// Interval between progress checks.
const PAUSE: Duration = Duration::from_millis(100);

/// True once the caller has given up.
pub type Abandoned = Arc<AtomicBool>;

struct Outcome {
    ended: Mutex<Option<thread::Result<()>>>,
    ready: Condvar,
}

/// Runs the work.
pub fn run<T: Send + 'static>(
    ruby: &Ruby,
    name: &str,
    work: impl FnOnce(Abandoned) -> T + Send + 'static,
) -> Result<T, Error> {
    run_with(ruby, name, work, || Ok(()))
}

/// Runs the work, and calls `meanwhile` in this thread about ten times a second, which may abort the wait.
pub fn run_with<T: Send + 'static>(
    ruby: &Ruby,
    name: &str,
    work: impl FnOnce(Abandoned) -> T + Send + 'static,
    mut meanwhile: impl FnMut() -> Result<(), Error>,
) -> Result<T, Error> {
    let value = Arc::new(Mutex::new(None));
    let theirs = Arc::clone(&value);
    let work = move |abandoned| {
        let value = work(abandoned);
        *theirs.lock().unwrap_or_else(PoisonError::into_inner) = Some(value);
    };
    wait_for(ruby, name, Box::new(work), &mut meanwhile)?;
    let value = value.lock().unwrap_or_else(PoisonError::into_inner).take();
    value.ok_or_else(|| bug(ruby))
}

/// The part common to all types of work: monomorphized for each, it would take a hundred kilobytes.
fn wait_for(
    ruby: &Ruby,
    name: &str,
    work: Box<dyn FnOnce(Abandoned) + Send>,
    meanwhile: &mut dyn FnMut() -> Result<(), Error>,
) -> Result<(), Error> {
    let abandon = Abandon(Arc::default());
    let abandoned = Arc::clone(&abandon.0);
    let outcome = Arc::new(Outcome { ended: Mutex::new(None), ready: Condvar::new() });
    let worker = Arc::clone(&outcome);
    let started = thread::Builder::new().name(format!("memprof {name}")).spawn(move || {
        let ended = catch_unwind(AssertUnwindSafe(|| work(abandoned)));
        *worker.ended.lock().unwrap_or_else(PoisonError::into_inner) = Some(ended);
        worker.ready.notify_one();
    });
    started.map_err(|error| super::exceptions::of_input(ruby, &error))?;
    let process = process::id();
    loop {
        let ended = gvl::without(|| outcome.wait()).flatten();
        if let Some(ended) = ended {
            ruby.thread_check_ints()?;
            return ended.map_err(|_| bug(ruby));
        }
        ruby.thread_check_ints()?;
        meanwhile()?;
        if process::id() != process {
            let text = "this is being done in the parent of this process";
            return Err(Error::new(ruby.exception_runtime_error(), text));
        }
    }
}

impl Outcome {
    /// Waits for a short time.
    fn wait(&self) -> Option<thread::Result<()>> {
        let end = Instant::now() + PAUSE;
        let mut ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        while ended.is_none() {
            let left = end.checked_duration_since(Instant::now())?;
            ended = match self.ready.wait_timeout(ended, left) {
                Ok((ended, _)) => ended,
                Err(poisoned) => poisoned.into_inner().0,
            };
        }
        ended.take()
    }
}

/// Tells the work that its caller has given up.
struct Abandon(Abandoned);

impl Drop for Abandon {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn bug(ruby: &Ruby) -> Error {
    Error::new(
        ruby.exception_runtime_error(),
        "internal error in memprof (please report it): a thread of it panicked",
    )
}
