//! The event hook: allocations, frees and GCs.
//!
//! See the head of [`super`] for operations forbidden here. A panic does not leave the hook: it ends tracking.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use rb_sys::{VALUE, rb_trace_arg_t, ruby_value_type};

use memprof_profile::cells::CellId;
use memprof_profile::sessions::SegmentId;
use memprof_profile::sites::{Site, SiteId};

use super::callers::Caller;
use super::classes;
use super::event::Event;
use super::event_hook::EventHook;
use super::frees::{forget_name, free};
use super::origin::{Found, Origin};
use super::peak;
use super::places::{Known, Place};
use super::protect::protect;
use super::ractors;
use super::revealed;
use super::ruby_object::{self, Flags};
use super::ruby_thread::current_thread;
use super::stack_checks;
use super::stack_tree::{Counted, NO_CALLER, Node};
use super::tracker::{self, Tracker};

const ALLOCATION: u32 = rb_sys::RUBY_INTERNAL_EVENT_NEWOBJ;
const FREE: u32 = rb_sys::RUBY_INTERNAL_EVENT_FREEOBJ;
const GC_START: u32 = rb_sys::RUBY_INTERNAL_EVENT_GC_START;

/// The hook of all sessions.
pub static HOOK: EventHook = EventHook::new(ALLOCATION | FREE | GC_START, event);

static INSTALLED: AtomicBool = AtomicBool::new(false);

/// Set when the hook has failed, and must do nothing any more.
static BROKEN: AtomicBool = AtomicBool::new(false);

/// Adds the hook. Not to be called inside [`tracker::with`].
pub fn install() {
    if INSTALLED.swap(true, Ordering::Relaxed) {
        return;
    }
    set_generation();
    HOOK.add();
}

/// Removes the hook. Not to be called inside [`tracker::with`].
pub fn remove() {
    if INSTALLED.swap(false, Ordering::Relaxed) {
        HOOK.remove();
    }
}

/// Adds the hook again if the VM no longer calls it, and returns whether that was so. Up to Ruby 3.4 the VM silently disables
/// all hooks when a Ractor is freed (Bug #19112). Allocates an object, which is not recorded. Not to be called inside
/// [`tracker::with`].
pub fn restore_if_lost() -> bool {
    let may_be_lost = !cfg!(ruby_gte_4_0) && INSTALLED.load(Ordering::Relaxed) && !broken();
    if !may_be_lost || is_called() {
        return false;
    }
    HOOK.remove();
    HOOK.add();
    set_generation();
    true
}

/// Whether the VM calls the hook for a new object: then the hook counts down the allocations to skip.
fn is_called() -> bool {
    let gap = tracker::allocations_to_skip();
    tracker::set_skip(1);
    // SAFETY: called with the GVL, where allocating is allowed.
    let allocated = protect(|| unsafe { rb_sys::rb_ary_new() });
    let called = tracker::allocations_to_skip() == 0;
    tracker::set_skip(gap);
    // Without memory nothing was allocated, so the hook had no event.
    called || allocated.is_err()
}

unsafe extern "C" fn event(_data: VALUE, arg: *mut rb_trace_arg_t) {
    if BROKEN.load(Ordering::Relaxed) {
        return;
    }
    let outcome = std::panic::catch_unwind(|| {
        // SAFETY: `arg` is valid for the duration of the hook; NEWOBJ and FREEOBJ have an object.
        unsafe {
            let event = Event::of(arg);
            match event.kind() {
                ALLOCATION if !tracker::skip() => allocation(event),
                ALLOCATION => skipped(event),
                FREE => free(event.object()),
                _ => collection_starts(),
            }
        }
    });
    if outcome.is_err() {
        BROKEN.store(true, Ordering::Relaxed);
    }
}

/// True if the hook has failed, so that nothing is counted any more.
pub fn broken() -> bool {
    BROKEN.load(Ordering::Relaxed)
}

fn collection_starts() {
    // Live objects still belong to the generation that ends.
    peak::collection_starts();
    tracker::with(revealed::forget);
    set_generation();
}

fn set_generation() {
    // SAFETY: reads a counter.
    let generation = unsafe { rb_sys::rb_gc_count() } as u32;
    let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_micros() as u64;
    tracker::with(|tracker| tracker.recorder.set_generation(generation, time));
}

/// # Safety
/// Called in an allocation hook, with its event.
#[inline]
unsafe fn allocation(event: Event) {
    let object = event.object();
    // SAFETY: the new object: flags and class word are set.
    let (flags, class) = unsafe { (Flags::of(object), ruby_object::class_word(object)) };
    tracker::with(|tracker| {
        notice(tracker, flags, class, object);
        // Drawn again even if no session records this object: otherwise the next recorded one would not be random.
        tracker::set_skip(tracker.recorder.sample_gap());
        match segment(tracker) {
            Some(segment) => match cell(tracker, event, flags, class, segment) {
                Some(cell) => {
                    (tracker.recorder).allocated(object, cell, || ruby_object::slot_size(object));
                    if revealed::is_hidden(flags, class) {
                        revealed::remember(tracker, object);
                    }
                }
                None => tracker.recorder.allocated_unrecorded(object),
            },
            None => tracker.recorder.allocated_unrecorded(object),
        }
    });
}

/// An object that is not sampled was allocated. Threads must be noticed anyway if sessions follow them, and so must Ractors
/// since Ruby 4.0, or where they crash the VM; otherwise only the Ractor that installed the hook runs it.
///
/// # Safety
/// Called in an allocation hook, with its event.
#[inline]
unsafe fn skipped(event: Event) {
    if cfg!(ruby_gte_4_0) || ractors::avoided() || tracker::follows_threads() {
        // SAFETY: the new object: flags and class word are set.
        let (object, flags, class) = unsafe {
            let object = event.object();
            (object, Flags::of(object), ruby_object::class_word(object))
        };
        if flags.is(ruby_value_type::RUBY_T_DATA) {
            tracker::with(|tracker| notice(tracker, flags, class, object));
        }
    }
}

/// Special meanings of some types of objects: reused addresses of classes and frames, threads that belong to a session,
/// Ractors.
#[inline]
fn notice(tracker: &mut Tracker, flags: Flags, class: VALUE, object: VALUE) {
    if flags.is(ruby_value_type::RUBY_T_DATA) {
        tracker.quiet.forget(object);
        if (ractors::avoided() || !tracker::ractors_seen()) && classes::is_ractor(class) {
            tracker::expect_ractors();
            ractors::is_allocated();
        }
        if tracker.recorder.sessions.by_thread() && classes::is_thread(class) {
            tracker.recorder.sessions.thread_started(current_thread(), object);
        }
    } else {
        forget_name(tracker, flags, object);
    }
}

#[inline]
fn segment(tracker: &Tracker) -> Option<SegmentId> {
    if tracker.is_quiet() {
        return None;
    }
    let sessions = &tracker.recorder.sessions;
    if sessions.by_thread() {
        sessions.segment(current_thread())
    } else {
        sessions.process_segment()
    }
}

/// Marks memprof's own places in the place cache.
const OWN: u32 = u32::MAX;

/// Marks places inside the VM (`<internal:kernel>`) in the place cache: their caller must be looked up.
const STACK: u32 = u32::MAX - 1;

/// Represents the caller if the place is a node of the stack tree.
const NODE: u64 = u64::MAX;

#[inline]
fn cell_id(cached: u32) -> Option<CellId> {
    (cached != OWN).then_some(CellId(cached))
}

/// The cell of an allocation; `None` if it is memprof's own.
#[inline]
fn cell(
    tracker: &mut Tracker,
    event: Event,
    flags: Flags,
    class: VALUE,
    segment: SegmentId,
) -> Option<CellId> {
    let class = classes::key(flags, class);
    if tracker.recorder.sessions.stack() > 1 {
        return stack_cell(tracker, event, flags, class, segment);
    }
    let (frame, line, caller) = match position(event) {
        Some((instruction, _)) => (instruction as u64, 0, caller(tracker, event, instruction)),
        None => (event.path(), event.line(), None),
    };
    let place = Place {
        class,
        frame,
        line,
        caller: caller.map_or(0, |caller| caller.instruction),
        segment,
    };
    match tracker.places.get(&place) {
        Some(STACK) => stack_cell(tracker, event, flags, class, segment),
        Some(cell) => cell_id(cell),
        None => first_cell(tracker, event, flags, place, caller),
    }
}

/// [`Event::position`] as long as no other Ractor runs. Up to 3.4 the hook may miss frees by another Ractor's GC, and a place
/// would be identified by instructions of an iseq that was freed.
#[inline(always)]
fn position(event: Event) -> Option<(usize, VALUE)> {
    if tracker::ractors_seen() {
        return None;
    }
    event.position()
}

/// Removes dead sites if there are too many and all sessions are lasting; others list them in reports. Call it before any
/// lookup, as it renumbers sites, stacks and classes.
fn make_room(tracker: &mut Tracker) {
    if tracker.recorder.is_crowded() && tracker.facts.values().all(|facts| facts.lasting) {
        tracker.places.clear();
        tracker.classes = Default::default();
        tracker.recorder.forget_dead(tracker.frames.forget_all());
    }
}

/// The cell of a place that is not in the cache.
#[cold]
fn first_cell(
    tracker: &mut Tracker,
    event: Event,
    flags: Flags,
    place: Place,
    caller: Option<Caller>,
) -> Option<CellId> {
    make_room(tracker);
    if let Some(caller) = caller {
        tracker.frames.remember(caller.iseq);
    }
    let known = match tracker.places.known(&place) {
        Some(known) => known,
        None => find(tracker, event, flags, &place, caller),
    };
    match known {
        Known::Site(site) => Some(count_at(tracker, place, site)),
        Known::Own => {
            tracker.places.put(place, OWN);
            None
        }
        Known::Internal => {
            tracker.places.put(place, STACK);
            stack_cell(tracker, event, flags, place.class, place.segment)
        }
    }
}

/// The innermost frame of the application, if it is wanted and is not the frame of this instruction.
#[inline(always)]
fn caller(tracker: &mut Tracker, event: Event, instruction: usize) -> Option<Caller> {
    if !tracker.wants_callers {
        return None;
    }
    let caller = tracker.frames.caller(event);
    caller.filter(|caller| caller.instruction != instruction as u64)
}

/// Resolves a place by its frames.
fn find(
    tracker: &mut Tracker,
    event: Event,
    flags: Flags,
    place: &Place,
    caller: Option<Caller>,
) -> Known {
    if let Some((_, iseq)) = position(event) {
        tracker.frames.remember(iseq);
    }
    let sites = &mut tracker.recorder.sites;
    let known = match (tracker.frames).single(sites, event.path(), event.line()) {
        None => Known::Internal,
        Some(Origin::Own) => Known::Own,
        Some(Origin::Program(found)) => {
            let (site, lasts) = site(tracker, event, flags, place.class, found, caller);
            if !(lasts && found.loaded) {
                return Known::Site(site); // only for this object
            }
            Known::Site(site)
        }
    };
    tracker.places.learn(place, known);
    known
}

/// The cell of an allocation whose place is not the innermost Ruby frame, or whose stack is recorded.
fn stack_cell(
    tracker: &mut Tracker,
    event: Event,
    flags: Flags,
    class: u64,
    segment: SegmentId,
) -> Option<CellId> {
    make_room(tracker);
    let keep = tracker.recorder.sessions.stack() as usize;
    let node = position(event).and_then(|_| tracker.frames.node(event, keep));
    let last = node.and_then(|node| last_cell(tracker, event, node, class, segment));
    if let Some(cell) = last.filter(|_| !stack_checks::are_on()) {
        return cell_id(cell);
    }
    let by_node = node.map(|node| Place {
        class,
        frame: u64::from(node.number) << 32 | 1,
        line: node.generation,
        caller: NODE,
        segment,
    });
    let known = by_node.and_then(|place| tracker.places.get(&place));
    if let Some(cell) = known.filter(|_| !stack_checks::are_on()) {
        if let Some(node) = node {
            remember_cell(tracker, node, (class, segment), 0, cell);
        }
        return cell_id(cell);
    }
    let origin = tracker.frames.stack(&mut tracker.recorder.sites, keep, event, node);
    let Origin::Program(found) = origin else {
        if let Some((place, node)) = by_node.zip(node) {
            tracker.places.put(place, OWN);
            remember_cell(tracker, node, (class, segment), 0, OWN);
        }
        return None;
    };
    let caller = (position(event).filter(|_| !found.application))
        .and_then(|(instruction, _)| caller(tracker, event, instruction));
    let cell = cell_of_stack(tracker, event, flags, (class, segment), found, caller);
    // A frame outside of those that count may change.
    let counts = |caller: Caller| node.is_some_and(|node| caller.inside < node.frames);
    let has_caller = tracker.wants_callers && !found.application;
    let cached = cell.map_or(OWN, |cell| cell.0);
    if let Some(last) = last {
        stack_checks::count(last == cached);
    }
    let Some((place, node)) = by_node.zip(node) else { return cell };
    if !has_caller || caller.is_some_and(counts) {
        tracker.places.put(place, cached);
        remember_cell(tracker, node, (class, segment), 0, cached);
    } else {
        let caller = caller.map_or(NO_CALLER, |caller| caller.instruction);
        remember_cell(tracker, node, (class, segment), caller, cached);
    }
    cell
}

/// The cell of the object that this stack allocated last, if it applies to this one.
#[inline]
fn last_cell(
    tracker: &mut Tracker,
    event: Event,
    node: Node,
    class: u64,
    segment: SegmentId,
) -> Option<u32> {
    let last = tracker.frames.counted(node)?;
    if (last.class, last.segment, last.epoch) != (class, segment, tracker.places.epoch()) {
        return None;
    }
    if last.caller != 0 {
        let (instruction, _) = position(event)?;
        let caller = caller(tracker, event, instruction);
        if caller.map_or(NO_CALLER, |caller| caller.instruction) != last.caller {
            return None;
        }
    }
    Some(last.cell)
}

/// Remembers the cell of an object that this stack allocated; `caller` as in [`Counted`].
#[inline]
fn remember_cell(
    tracker: &mut Tracker,
    node: Node,
    (class, segment): (u64, SegmentId),
    caller: u64,
    cell: u32,
) {
    let epoch = tracker.places.epoch();
    tracker.frames.count(node, Counted { class, caller, segment, epoch, cell });
}

fn cell_of_stack(
    tracker: &mut Tracker,
    event: Event,
    flags: Flags,
    (class, segment): (u64, SegmentId),
    found: Found,
    caller: Option<Caller>,
) -> Option<CellId> {
    // Stack numbers are odd here, unlike addresses; place and stack belong together.
    let place = Place {
        class,
        frame: u64::from(found.stack.number()) << 32 | 1,
        line: found.place.number(),
        caller: caller.map_or(0, |caller| caller.instruction),
        segment,
    };
    if let Some(cell) = tracker.places.get(&place) {
        return cell_id(cell);
    }
    let (site, _) = site(tracker, event, flags, class, found, caller);
    Some(count_at(tracker, place, site))
}

/// The site of an object, and whether it applies to all objects with this class word allocated there, as the class's name is
/// final.
fn site(
    tracker: &mut Tracker,
    event: Event,
    flags: Flags,
    class: u64,
    found: Found,
    caller: Option<Caller>,
) -> (SiteId, bool) {
    let sites = &mut tracker.recorder.sites;
    let (class, lasts) = tracker.classes.id(sites, &mut tracker.identities, flags, class);
    let caller = caller
        .filter(|_| !found.application)
        .and_then(|caller| tracker.frames.caller_alone(sites, event, caller));
    let site = sites.site(Site { class, place: found.place, stack: found.stack, caller });
    (site, lasts)
}

fn count_at(tracker: &mut Tracker, place: Place, site: SiteId) -> CellId {
    let cell = tracker.recorder.cell(place.segment, site);
    tracker.places.put(place, cell.0);
    cell
}
