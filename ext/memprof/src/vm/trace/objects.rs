//! `objects`: what is born, by type and class, with the bytes of the slots. A birth hook: see the head of [`super::super`].

use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use memprof_native::Node;
use rb_sys::{VALUE, rb_trace_arg_t, ruby_value_type};

use super::class_names::ClassNames;
use super::moment::Moment;
use super::owners::{Owner, Owners};
use super::{fields, forked};
use crate::vm::classes;
use crate::vm::event::Event;
use crate::vm::event_hook::EventHook;
use crate::vm::hooks::current_thread;
use crate::vm::object::{self, Flags};
use crate::vm::tracker;

const BIRTH: u32 = rb_sys::RUBY_INTERNAL_EVENT_NEWOBJ;

const HOOK: EventHook = EventHook {
    events: BIRTH,
    function: event,
};

/// Classes that a report names: a request makes objects of hundreds.
const NAMED: usize = 20;
/// Types, T_NONE to T_MOVED.
const TYPES: usize = 32;

/// Set in the child of a fork.
pub static FORKED: AtomicBool = AtomicBool::new(false);

static STATE: Mutex<State> = Mutex::new(State {
    owners: Owners::new(),
    classes: None,
    installed: false,
});

struct State {
    owners: Owners<Counters>,
    classes: Option<ClassNames>,
    installed: bool,
}

#[derive(Clone, Default)]
struct Counters {
    created: u64,
    internal: u64,
    bytes: u64,
    threads: u64,
    types: [u64; TYPES],
    /// Objects and bytes, by the class's number.
    classes: Vec<(u64, u64)>,
}

/// Nothing inside may allocate a Ruby object or run Ruby code: that would run the hook, which wants this.
fn state() -> MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Classes were moved.
pub fn forget_addresses() {
    if let Some(classes) = &mut state().classes {
        classes.forget_all();
    }
}

/// A place in the counters, which it keeps counting.
pub struct Mark {
    owner: Owner,
    epoch: u64,
    named: bool,
    then: Counters,
    finished: bool,
}

impl Mark {
    /// Counts from now on. `named`: also by class; then the counters of classes are part of what is remembered.
    pub fn new(owner: Owner, named: bool) -> Self {
        let now = Moment::now();
        let (mark, install) = {
            let mut state = state();
            if forked(&FORKED) {
                state.owners.forget();
            }
            if state.owners.is_empty() {
                state.classes.take_if(|classes| !classes.may_stay());
            }
            let install = !state.installed;
            state.installed = true;
            state.classes.get_or_insert_with(|| ClassNames::new(now));
            let mark = Mark {
                owner,
                epoch: state.owners.epoch,
                named,
                then: state.owners.follow(owner),
                finished: false,
            };
            (mark, install)
        };
        if install {
            HOOK.add();
        }
        mark
    }

    /// Counts no more; tells how much was.
    pub fn finish(mut self) -> Grown {
        let now = self.leave();
        let mut grown = Grown::default();
        let Some(now) = now else {
            return grown;
        };
        grown.counters = now.since(&self.then);
        if self.named {
            let state = state();
            grown.name(state.classes.as_ref());
        }
        drop_classes();
        grown
    }

    /// Not to be called in a hook: see [`EventHook::remove`].
    fn leave(&mut self) -> Option<Counters> {
        self.finished = true;
        let (now, remove) = {
            let mut state = state();
            if state.owners.epoch != self.epoch || FORKED.load(Ordering::Relaxed) {
                return None;
            }
            let now = state.owners.leave(self.owner);
            let remove = state.owners.is_empty() && state.installed;
            state.installed &= !remove;
            (now, remove)
        };
        if remove {
            HOOK.remove();
        }
        now
    }
}

impl Drop for Mark {
    /// Of a trace that was never ended: its fiber is garbage. The VM drops such objects behind the collection.
    fn drop(&mut self) {
        if !self.finished {
            drop(self.leave());
            drop_classes();
        }
    }
}

/// In the child of a fork: nobody is there who counted.
pub fn start_anew() {
    let remove = {
        let mut state = state();
        FORKED.store(false, Ordering::Relaxed);
        state.owners.forget();
        state.classes = None;
        std::mem::take(&mut state.installed)
    };
    if remove {
        HOOK.remove();
    }
}

/// While somebody counts, the numbers in the counters mean these names.
fn drop_classes() {
    let mut state = state();
    if state.owners.is_empty() {
        state.classes.take_if(|classes| !classes.may_stay());
    }
}

unsafe extern "C" fn event(_data: VALUE, arg: *mut rb_trace_arg_t) {
    // A panic must not cross into C; what is lost is one count.
    drop(std::panic::catch_unwind(|| {
        // SAFETY: `arg` is valid for the duration of the hook; NEWOBJ has an object, whose flags and class word are set.
        unsafe {
            let object = Event::of(arg).object();
            birth(object, Flags::of(object), object::class_word(object));
        }
    }));
}

#[inline]
fn birth(object: VALUE, flags: Flags, class: VALUE) {
    let mut guard = state();
    let state = &mut *guard;
    if forked(&FORKED) {
        state.owners.forget();
    }
    if state.owners.is_empty() {
        return;
    }
    let Some(classes) = &mut state.classes else {
        return;
    };
    if flags.is(ruby_value_type::RUBY_T_CLASS) || flags.is(ruby_value_type::RUBY_T_MODULE) {
        classes.forget(object);
    }
    if tracker::is_suspended() {
        return;
    }
    let thread = current_thread() as VALUE;
    if internal(flags) {
        state
            .owners
            .count(thread, |counters| counters.internal += 1);
        return;
    }
    let number = classes.number(flags, class) as usize;
    let bytes = u64::from(object::slot_size(object));
    let is_thread = flags.is(ruby_value_type::RUBY_T_DATA) && classes::is_thread(class);
    (state.owners).count(thread, |counters| {
        counters.count(flags, number, bytes, is_thread)
    });
}

/// What the VM makes for itself, as caches of calls: no program asks for it.
fn internal(flags: Flags) -> bool {
    flags.is(ruby_value_type::RUBY_T_IMEMO) || flags.is(ruby_value_type::RUBY_T_NODE)
}

impl Counters {
    #[inline]
    fn count(&mut self, flags: Flags, class: usize, bytes: u64, is_thread: bool) {
        self.created += 1;
        self.bytes += bytes;
        self.threads += u64::from(is_thread);
        if let Some(count) = self.types.get_mut(flags.value_type() as usize) {
            *count += 1;
        }
        if self.classes.len() <= class {
            self.classes.resize(class + 1, (0, 0));
        }
        if let Some((count, sum)) = self.classes.get_mut(class) {
            *count += 1;
            *sum += bytes;
        }
    }

    fn since(mut self, then: &Counters) -> Counters {
        self.created -= then.created;
        self.internal -= then.internal;
        self.bytes -= then.bytes;
        self.threads -= then.threads;
        for (now, then) in self.types.iter_mut().zip(then.types) {
            *now -= then;
        }
        for (now, then) in self.classes.iter_mut().zip(&then.classes) {
            now.0 -= then.0;
            now.1 -= then.1;
        }
        self
    }
}

/// By how much the counters have grown.
#[derive(Default)]
pub struct Grown {
    counters: Counters,
    /// Name, objects, bytes.
    classes: Vec<(Arc<str>, u64, u64)>,
}

impl Grown {
    /// Keeps the names of the classes that there are objects of.
    fn name(&mut self, classes: Option<&ClassNames>) {
        let Some(classes) = classes else { return };
        self.classes = (classes.names.iter())
            .zip(std::mem::take(&mut self.counters.classes))
            .filter(|(_, (count, _))| *count > 0)
            .map(|(name, (count, bytes))| (Arc::clone(name), count, bytes))
            .collect();
    }

    /// The classes with most objects, ties by name.
    fn greatest(&self) -> Vec<&(Arc<str>, u64, u64)> {
        let mut classes: Vec<_> = self.classes.iter().collect();
        classes.sort_unstable_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        classes.truncate(NAMED);
        classes
    }

    /// Threads made.
    pub fn threads(&self) -> u64 {
        self.counters.threads
    }

    /// The tracer's report.
    pub fn report(&self) -> Node {
        let types = (0_u32..)
            .zip(self.counters.types)
            .filter(|(_, count)| *count > 0)
            .map(|(number, count)| (Cow::from(type_name(number)), Node::Count(count)))
            .collect();
        let classes = (self.greatest().into_iter())
            .map(|(name, count, bytes)| {
                let numbers = [
                    ("count", Node::Count(*count)),
                    ("bytes", Node::Count(*bytes)),
                ];
                (Cow::from(name.to_string()), fields(numbers))
            })
            .collect();
        fields([
            ("created", Node::Count(self.counters.created)),
            ("types", Node::Map(types)),
            ("classes", Node::Map(classes)),
            ("bytes", Node::Count(self.counters.bytes)),
            ("internal", Node::Count(self.counters.internal)),
        ])
    }
}

/// Name of a type, as memprof 0.3 wrote it.
fn type_name(number: u32) -> String {
    let flags = Flags(number as usize);
    let name = object::internal_name(flags);
    name.trim_matches(['<', '>']).to_owned()
}
