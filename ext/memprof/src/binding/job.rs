//! Work that takes its time: a thread of our own does it, the thread of Ruby waits without the GVL.
//!
//! So the thread of Ruby can be interrupted at any time, and can report progress meanwhile. Work that no one waits
//! for any more goes on until it looks whether it is still wanted.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use magnus::{Error, Ruby};

use crate::vm::gvl;

/// Time between two looks at what is going on.
const PAUSE: Duration = Duration::from_millis(100);

/// True when the caller has gone.
pub type Abandoned = Arc<AtomicBool>;

struct Outcome {
    ended: Mutex<Option<thread::Result<()>>>,
    ready: Condvar,
}

/// Does the work.
pub fn run<T: Send + 'static>(
    ruby: &Ruby,
    name: &str,
    work: impl FnOnce(Abandoned) -> T + Send + 'static,
) -> Result<T, Error> {
    run_with(ruby, name, work, || Ok(()))
}

/// Does the work, and meanwhile, about ten times a second, something in this thread, which may end the waiting.
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

/// The part that is the same for all work: compiled for each kind, it would take a hundred kilobytes.
fn wait_for(
    ruby: &Ruby,
    name: &str,
    work: Box<dyn FnOnce(Abandoned) + Send>,
    meanwhile: &mut dyn FnMut() -> Result<(), Error>,
) -> Result<(), Error> {
    let abandon = Abandon(Arc::default());
    let abandoned = Arc::clone(&abandon.0);
    let outcome = Arc::new(Outcome {
        ended: Mutex::new(None),
        ready: Condvar::new(),
    });
    let worker = Arc::clone(&outcome);
    let started = thread::Builder::new()
        .name(format!("memprof {name}"))
        .spawn(move || {
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

/// Notifies the work when its caller has gone.
struct Abandon(Abandoned);

impl Drop for Abandon {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn bug(ruby: &Ruby) -> Error {
    Error::new(
        ruby.exception_runtime_error(),
        "a bug in memprof: work that a thread of its own did ended with a panic",
    )
}
