//! `objects`: objects by type and class, with the bytes of their slots. An allocation hook: see the head of [`super::super`].

use std::borrow::Cow;
use std::sync::Arc;

use memprof_native::Node;
use rb_sys::{VALUE, rb_trace_arg_t, ruby_value_type};

use super::class_names::ClassNames;
use super::counter_owners::Owner;
use super::counting::{Counting, Own, Place, State};
use super::fields;
use super::gc_moment::Moment;
use crate::vm::classes;
use crate::vm::event::Event;
use crate::vm::event_hook::EventHook;
use crate::vm::ractors;
use crate::vm::ruby_object::{self, Flags};
use crate::vm::ruby_thread::current_thread;
use crate::vm::tracker;

const ALLOCATION: u32 = rb_sys::RUBY_INTERNAL_EVENT_NEWOBJ;

/// Classes named in a report: a request allocates objects of hundreds.
const NAMED: usize = 20;
/// Types, T_NONE to T_MOVED.
const TYPES: usize = 32;

/// The counters, and the classes that they count by.
pub static COUNTING: Counting<Counters, Classes> =
    Counting::new(EventHook::new(ALLOCATION, event), Classes(None));

/// Maps class numbers in the counters to names, while a trace counts.
pub struct Classes(Option<ClassNames>);

impl Own for Classes {
    fn rest(&mut self) {
        self.0.take_if(|classes| !classes.is_reusable());
    }
}

/// The counters of one owner.
#[derive(Clone, Default)]
pub struct Counters {
    created: u64,
    internal: u64,
    bytes: u64,
    threads: u64,
    types: [u64; TYPES],
    /// Objects and bytes, by class number.
    classes: Vec<(u64, u64)>,
}

/// Classes were moved.
pub fn forget_addresses() {
    if let Some(classes) = &mut COUNTING.lock().own.0 {
        classes.forget_all();
    }
}

/// A snapshot of the counters, which go on counting.
pub struct Mark {
    place: Place<Counters, Classes>,
    named: bool,
}

impl Mark {
    /// Starts counting. `named`: also by class; then the snapshot includes the counters of classes.
    pub fn new(owner: Owner, named: bool) -> Self {
        let now = Moment::now();
        let place = COUNTING.follow(owner, |classes| {
            classes.0.get_or_insert_with(|| ClassNames::new(now));
        });
        Mark { place, named }
    }

    /// Stops counting and returns the counts.
    pub fn finish(self) -> Grown {
        let named = self.named;
        let grown = self.place.finish(|now, then, classes| {
            let mut grown = Grown { counters: now.since(then), ..Grown::default() };
            if named {
                grown.name(classes.0.as_ref());
            }
            grown
        });
        grown.unwrap_or_default()
    }
}

unsafe extern "C" fn event(_data: VALUE, arg: *mut rb_trace_arg_t) {
    // A panic must not cross into C; just one count is lost.
    drop(std::panic::catch_unwind(|| {
        // SAFETY: `arg` is valid for the duration of the hook; NEWOBJ has an object, whose flags and class word are set.
        unsafe {
            let object = Event::of(arg).object();
            count(object, Flags::of(object), ruby_object::class_word(object));
        }
    }));
}

#[inline]
fn count(object: VALUE, flags: Flags, class: VALUE) {
    let mut guard = COUNTING.lock();
    let State { owners, own, .. } = &mut *guard;
    if owners.is_empty() {
        return;
    }
    let Some(classes) = &mut own.0 else {
        return;
    };
    if flags.is(ruby_value_type::RUBY_T_CLASS) || flags.is(ruby_value_type::RUBY_T_MODULE) {
        classes.forget(object);
    }
    if tracker::with(|tracker| tracker.is_quiet()) == Some(true) {
        return;
    }
    let thread = current_thread() as VALUE;
    if internal(flags) {
        owners.count(thread, |counters| counters.internal += 1);
        return;
    }
    let number = classes.number(flags, class) as usize;
    let bytes = u64::from(ruby_object::slot_size(object));
    let is_data = flags.is(ruby_value_type::RUBY_T_DATA);
    let is_thread = is_data && classes::is_thread(class);
    if is_data && ractors::avoided() && classes::is_ractor(class) {
        ractors::is_allocated();
    }
    owners.count(thread, |counters| counters.count(flags, number, bytes, is_thread));
}

/// Objects that the VM allocates for itself, such as call caches: not relevant to programs.
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

/// Growth of the counters.
#[derive(Default)]
pub struct Grown {
    counters: Counters,
    /// Name, objects, bytes.
    classes: Vec<(Arc<str>, u64, u64)>,
}

impl Grown {
    /// Resolves the names of the classes with objects.
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

    /// Threads created.
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
                let numbers = [("count", Node::Count(*count)), ("bytes", Node::Count(*bytes))];
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

/// Name of a type, as in memprof 0.3.
fn type_name(number: u32) -> String {
    let flags = Flags(number as usize);
    let name = ruby_object::internal_name(flags);
    name.trim_matches(['<', '>']).to_owned()
}
