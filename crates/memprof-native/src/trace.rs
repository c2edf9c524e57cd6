//! A block of code that is traced.

use std::sync::Once;

use crate::clock;
use crate::counters::{self, Block};
use crate::interpose::{self, Held, Hook};
use crate::tracers::{self, Tracer};
use crate::{Node, Refused, Report, Scope};

/// A running trace. Traces nest, and run side by side: the first one has functions replaced, the last one puts them
/// back. Whoever traces many short blocks keeps one trace of the same tracers open around them all, and the inner
/// ones only read counters.
#[must_use = "a trace that is dropped ends at once"]
pub struct Trace {
    tracers: Vec<&'static Tracer>,
    scope: Scope,
    /// The counters of the thread that began the trace; its own until the trace ends.
    block: &'static Block,
    before: Vec<Option<Vec<u64>>>,
}

impl std::fmt::Debug for Trace {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<_> = self.tracers.iter().map(|tracer| tracer.name).collect();
        out.debug_struct("Trace")
            .field("tracers", &names)
            .field("scope", &self.scope)
            .finish_non_exhaustive()
    }
}

impl Trace {
    /// Counts from now on what the named tracers follow, for this thread or for the process.
    ///
    /// The first trace of a process prepares what all share. Another thread must not fork meanwhile: its child would
    /// wait for the rest of that. Ruby's lock, which both a fork and a trace take, sees to it.
    ///
    /// # Errors
    ///
    /// When a name is unknown, or calls cannot be interposed in this process. It is left as it was then.
    pub fn begin(names: &[&str], scope: Scope) -> Result<Trace, Refused> {
        let tracers: Vec<_> = names
            .iter()
            .map(|name| tracers::find(name).ok_or_else(|| Refused::Unknown((*name).to_owned())))
            .collect::<Result<_, _>>()?;
        if let Some(why) = tracers.iter().find_map(|tracer| (tracer.obstacle)()) {
            return Err(Refused::Unsupported(why));
        }
        watch_forks();
        clock::prepare();
        interpose::install(&groups(&tracers))?;
        let block = counters::mine();
        block.pin();
        let mut trace = Trace {
            tracers,
            scope,
            block,
            before: Vec::new(),
        };
        trace.before = trace.read();
        Ok(trace)
    }

    /// Ends the trace, and says what was counted since it began. May be called by another thread than the one that
    /// began: [`Scope::Thread`] goes on meaning that one.
    #[must_use]
    pub fn finish(self) -> Report {
        self.stop().report()
    }

    /// Ends the trace, as [`Trace::finish`] does, and leaves the report for when there is time for it.
    pub fn stop(self) -> Counted {
        let mut after = self.read();
        for (before, after) in self.before.iter().zip(&mut after) {
            match before.as_ref().zip(after.as_mut()) {
                Some((before, after)) => (after.iter_mut().zip(before))
                    .for_each(|(after, before)| *after = after.saturating_sub(*before)),
                None => *after = None,
            }
        }
        let tracers = self.tracers.iter().copied();
        Counted(tracers.zip(after).collect())
    }

    /// The counters of each tracer; None where the thread that they are of has ended and left none. None at all stand
    /// for zeroes.
    fn read(&self) -> Vec<Option<Vec<u64>>> {
        self.tracers
            .iter()
            .map(|tracer| match (tracer.sample, self.scope) {
                (Some(sample), scope) => sample(scope, self.block.thread()),
                _ if (tracer.idle)() => Some(Vec::new()),
                (None, Scope::Thread) => Some(
                    tracers::cells(tracer)
                        .map(|cell| self.block.read(cell))
                        .collect(),
                ),
                (None, Scope::Process) => Some(counters::sum(tracers::cells(tracer))),
            })
            .collect()
    }
}

/// What a trace that has ended counted: it changes no more.
#[must_use]
pub struct Counted(Vec<(&'static Tracer, Option<Vec<u64>>)>);

impl std::fmt::Debug for Counted {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let cells = self.0.iter().map(|(tracer, cells)| (tracer.name, cells));
        out.debug_map().entries(cells).finish()
    }
}

impl Counted {
    /// Puts it into words.
    #[must_use]
    pub fn report(&self) -> Report {
        clock::settle();
        (self.0.iter())
            .map(|(tracer, cells)| {
                let node = cells.as_ref().map(|cells| (tracer.report)(cells));
                (tracer.name, node.unwrap_or(Node::Map(Vec::new())))
            })
            .collect()
    }
}

impl Drop for Trace {
    fn drop(&mut self) {
        self.block.unpin();
        interpose::remove(&groups(&self.tracers));
    }
}

fn groups(tracers: &[&'static Tracer]) -> Vec<&'static [Hook]> {
    tracers
        .iter()
        .map(|tracer| tracer.hooks)
        .filter(|hooks| !hooks.is_empty())
        .collect()
}

fn watch_forks() {
    extern "C" fn before() {
        interpose::hold(Held::Before);
    }
    extern "C" fn in_parent() {
        interpose::hold(Held::InParent);
    }
    extern "C" fn in_child() {
        counters::after_fork();
        interpose::hold(Held::InChild);
    }
    static ONCE: Once = Once::new();
    // SAFETY: functions of the signature that is asked for; this object is never unloaded once it has traced.
    ONCE.call_once(|| unsafe {
        libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child));
    });
}
