//! A traced block of code.

use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Once};

use crate::at_fork;
use crate::clock;
use crate::counters::{self, Block};
use crate::interpose::{self, Hook};
use crate::malloc;
use crate::tracers::{self, Tracer, Whose, connections};
use crate::{Node, Refused, Report, Scope};

/// Tracers for traces. Reuse a choice to begin many traces without looking their names up each time.
#[derive(Clone)]
pub struct Choice {
    tracers: Arc<[&'static Tracer]>,
}

impl std::fmt::Debug for Choice {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names = self.tracers.iter().map(|tracer| tracer.name);
        out.debug_list().entries(names).finish()
    }
}

impl Choice {
    /// The named tracers.
    ///
    /// # Errors
    ///
    /// When a name is unknown.
    pub fn of(names: &[&str]) -> Result<Choice, Refused> {
        let tracers = (names.iter())
            .map(|name| tracers::find(name).ok_or_else(|| Refused::Unknown((*name).to_owned())))
            .collect::<Result<_, _>>()?;
        Ok(Choice { tracers })
    }

    /// Starts counting, for this thread or for the process.
    ///
    /// The first trace of a process prepares the state that all share. No other thread may fork meanwhile: its child would
    /// deadlock. Ruby's lock, taken by both forks and traces, ensures that.
    ///
    /// # Errors
    ///
    /// When calls cannot be interposed in this process, which is then left unchanged.
    pub fn begin(&self, scope: Scope) -> Result<Trace, Refused> {
        let held = if self.tracers.iter().all(|tracer| is_installed(tracer)) {
            None
        } else {
            Some(self.hold()?)
        };
        let block = counters::mine();
        block.pin();
        if scope == Scope::Thread {
            connections::enter(block);
        }
        let mut trace = Trace {
            choice: self.clone(),
            scope,
            block,
            before: Vec::new(),
            has_left: scope == Scope::Process,
            _held: held,
        };
        trace.before = trace.read();
        Ok(trace)
    }

    /// Keeps the functions of these tracers replaced until the result is dropped, whatever traces there are. Traces begun
    /// meanwhile only read counters.
    ///
    /// # Errors
    ///
    /// As for [`Choice::begin`].
    pub fn install(&self) -> Result<Installation, Refused> {
        let held = self.hold()?;
        for tracer in &*self.tracers {
            INSTALLED[tracers::index(tracer)].fetch_add(1, Relaxed);
        }
        Ok(Installation(held))
    }

    fn hold(&self) -> Result<Held, Refused> {
        if let Some(why) = self.tracers.iter().find_map(|tracer| (tracer.obstacle)()) {
            return Err(Refused::Unsupported(why));
        }
        watch_forks();
        clock::prepare();
        let groups: Vec<_> = (self.tracers.iter())
            .map(|tracer| tracer.hooks)
            .filter(|hooks| !hooks.is_empty())
            .collect();
        for tracer in &*self.tracers {
            if HELD[tracers::index(tracer)].fetch_add(1, Relaxed) == 0 {
                (tracer.forget)();
            }
        }
        let held = Held { choice: self.clone(), groups };
        match interpose::install(&held.groups) {
            Ok(()) => Ok(held),
            Err(why) => {
                held.release();
                std::mem::forget(held); // nothing to restore
                Err(why)
            }
        }
    }
}

/// Number of installations that keep the functions of each tracer replaced.
static INSTALLED: [AtomicUsize; tracers::COUNT] = [const { AtomicUsize::new(0) }; tracers::COUNT];

/// Number of users that have the functions of each tracer replaced, installations included.
static HELD: [AtomicUsize; tracers::COUNT] = [const { AtomicUsize::new(0) }; tracers::COUNT];

/// Whether a trace counts what the tracer at this place follows.
#[inline(always)]
pub(crate) fn is_held(place: usize) -> bool {
    HELD[place].load(Relaxed) > 0
}

fn is_installed(tracer: &Tracer) -> bool {
    INSTALLED[tracers::index(tracer)].load(Relaxed) > 0
}

/// Keeps functions replaced until dropped.
struct Held {
    choice: Choice,
    groups: Vec<&'static [Hook]>,
}

impl Held {
    fn release(&self) {
        for tracer in &*self.choice.tracers {
            if HELD[tracers::index(tracer)].fetch_sub(1, Relaxed) == 1 {
                (tracer.forget)();
            }
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        interpose::remove(&self.groups);
        self.release();
    }
}

/// See [`Choice::install`]. A trace that outlives this counts calls only while others keep the functions replaced.
#[must_use = "what is dropped keeps nothing"]
pub struct Installation(Held);

impl std::fmt::Debug for Installation {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_tuple("Installation").field(&self.0.choice).finish()
    }
}

impl Drop for Installation {
    fn drop(&mut self) {
        for tracer in &*self.0.choice.tracers {
            INSTALLED[tracers::index(tracer)].fetch_sub(1, Relaxed);
        }
    }
}

/// A running trace. Traces may nest and run concurrently: the first replaces functions, the last restores them. To trace
/// many short blocks, keep their functions replaced by [`Choice::install`].
#[must_use = "a trace that is dropped ends at once"]
pub struct Trace {
    choice: Choice,
    scope: Scope,
    /// The counters of the thread that began the trace, owned by it until the trace ends.
    block: &'static Block,
    before: Vec<Option<Vec<u64>>>,
    /// Whether the thread has left this trace.
    has_left: bool,
    _held: Option<Held>,
}

impl std::fmt::Debug for Trace {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Trace")
            .field("tracers", &self.choice)
            .field("scope", &self.scope)
            .finish_non_exhaustive()
    }
}

impl Trace {
    /// Starts counting what the named tracers follow; see [`Choice::begin`].
    ///
    /// # Errors
    ///
    /// As for [`Choice::of`] and [`Choice::begin`].
    pub fn begin(names: &[&str], scope: Scope) -> Result<Trace, Refused> {
        Choice::of(names)?.begin(scope)
    }

    /// Ends the trace and returns what it counted. May be called by a thread other than the one that began it:
    /// [`Scope::Thread`] still means that one.
    #[must_use]
    pub fn finish(self) -> Report {
        self.stop().report()
    }

    /// Ends the trace like [`Trace::finish`], but defers building the report.
    pub fn stop(mut self) -> Counted {
        self.leave();
        let mut after = self.read();
        for (before, after) in self.before.iter().zip(&mut after) {
            match before.as_ref().zip(after.as_mut()) {
                Some((before, after)) => (after.iter_mut().zip(before))
                    .for_each(|(after, before)| *after = after.saturating_sub(*before)),
                None => *after = None,
            }
        }
        let tracers = self.choice.tracers.iter().copied();
        Counted(tracers.zip(after).collect())
    }

    fn leave(&mut self) {
        if !std::mem::replace(&mut self.has_left, true) {
            connections::leave(self.block);
        }
    }

    /// The counters of each tracer; None if their thread ended without leaving any. An empty list stands for zeroes.
    fn read(&self) -> Vec<Option<Vec<u64>>> {
        let mut counters = self.counters();
        let own = (self.scope == Scope::Thread).then_some(self.block);
        for (cell, count) in connections::open(own) {
            let places = self.choice.tracers.iter().zip(&mut counters);
            for (cells, counters) in places.map(|(tracer, row)| (tracers::cells(tracer), row)) {
                let place = counters.as_mut().filter(|_| cells.contains(&cell));
                if let Some(place) = place.and_then(|row| row.get_mut(cell - cells.start)) {
                    *place += count;
                }
            }
        }
        counters
    }

    /// Like [`Trace::read`], without waits still in progress.
    fn counters(&self) -> Vec<Option<Vec<u64>>> {
        let is_own = ptr::eq(counters::mine(), self.block);
        (self.choice.tracers.iter())
            .map(|tracer| match (tracer.sample, self.scope) {
                (Some(sample), Scope::Process) => sample(Whose::All),
                (Some(sample), Scope::Thread) if is_own => sample(Whose::Own),
                (Some(sample), Scope::Thread) => sample(Whose::Other(self.block.thread())),
                _ if (tracer.idle)() => Some(Vec::new()),
                (None, Scope::Thread) => {
                    Some(tracers::cells(tracer).map(|cell| self.block.read(cell)).collect())
                }
                (None, Scope::Process) => Some(counters::sum(tracers::cells(tracer))),
            })
            .collect()
    }
}

/// The final counts of an ended trace.
#[must_use]
pub struct Counted(Vec<(&'static Tracer, Option<Vec<u64>>)>);

impl std::fmt::Debug for Counted {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let cells = self.0.iter().map(|(tracer, cells)| (tracer.name, cells));
        out.debug_map().entries(cells).finish()
    }
}

impl Counted {
    /// Builds the report.
    #[must_use]
    pub fn report(&self) -> Report {
        clock::settle();
        // Where functions stay replaced, no trace looks for objects loaded past `watch`, such as those that libc loads
        // itself. There is time for it here.
        interpose::notice();
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
        self.leave();
        self.block.unpin();
    }
}

pub(crate) fn watch_forks() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        for functions in
            [counters::AT_FORK, interpose::AT_FORK, connections::AT_FORK, malloc::AT_FORK]
        {
            at_fork::register(functions);
        }
    });
}
