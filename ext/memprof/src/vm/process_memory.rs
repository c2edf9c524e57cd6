//! Memory of this process by use: data from the kernel and malloc, and the pages and sizes of Ruby's heap.

use std::ffi::CStr;
use std::io;
use std::ops::Range;
use std::sync::OnceLock;

use memprof_ledger::{
    Allocator, Facts, HeapPages, HeapSizes, Ledger, Sharing, UnsharedPages, merged,
};
use rb_sys::{VALUE, ruby_value_type};

use super::heap::typed_data::data_type;
use super::protect::protect;
use super::ruby_object::Flags;
use super::symbols::symbols;
use super::{allocator, memsize, sessions, slots};

/// Number of imemo_iseq in `enum imemo_type` (internal/imemo.h), the same from 2.3 to 4.0.
const IMEMO_ISEQ: u32 = 7;
/// HEAP_PAGE_SIZE (gc.c, gc/default/default.c), to which pages are aligned.
const HEAP_PAGE: u64 = if cfg!(ruby_gte_3_2) { 64 << 10 } else { 16 << 10 };
const SELF: &str = "/proc/self";

/// A page of Ruby's heap.
pub struct HeapPage {
    /// Start address.
    pub address: u64,
    /// Bytes of a slot.
    pub slot_size: u64,
    /// Number of slots.
    pub slots: u64,
    /// Slots with an object.
    pub used: u64,
}

/// Prepares anything that would allocate during the heap walk.
pub fn init() {
    heap_page_count();
}

/// Memory that a server's worker shares with its parent. A child that dumps shares everything with the worker, so this must be
/// measured before the fork.
pub struct Worker {
    sharing: Sharing,
    unshared: UnsharedPages,
}

/// Compares this process with its parent; `None` if it was not forked. Not to be called inside `tracker::with`.
pub fn worker() -> Option<Worker> {
    worker_of(ranges().ok()?)
}

fn worker_of(pages: Vec<Range<u64>>) -> Option<Worker> {
    let pid = std::process::id();
    let parent = memprof_ledger::forked_from(pid)?;
    let compared = memprof_ledger::compare(pid, parent, page_size(), &merged(pages));
    let (sharing, unshared) = compared.ok()?;
    Some(Worker { sharing, unshared })
}

/// Measures this process for the header of a dump, with the pages of Ruby's heap, but not its objects. In a child that dumps,
/// `forked` is true, and `worker` has the parent's own results. `None` without /proc, as on macOS. Not to be called inside
/// `tracker::with`.
pub fn header_json(forked: bool, worker: Option<Worker>) -> Option<String> {
    let mut facts = measure(ranges().ok()?).ok()?;
    if forked {
        // Nearly all of it is shared with the parent.
        (facts.pss, facts.private) = (None, None);
    }
    facts.sharing = worker.as_ref().map(|worker| worker.sharing);
    let memory = serde_json::to_string(&facts).ok()?;
    let unshared = worker.and_then(|worker| worker.unshared.to_json(page_size()).ok());
    let unshared = unshared.map_or(String::new(), |json| format!(",\"unshared\":{json}"));
    Some(format!("\"memory\":{memory}{unshared}"))
}

/// Measures the process that this one is a copy of, for the header of a dump. `None` if its /proc can't be read. Not to be
/// called inside `tracker::with`.
pub fn facts_of_original(pid: u32) -> Option<Facts> {
    let directory = format!("/proc/{pid}");
    let pages = heap_pages_of(ranges().ok()?);
    let malloc = allocator::statistics_in_copy();
    let mut facts = memprof_ledger::measure(&directory, page_size(), Some(pages), malloc).ok()?;
    // It shares nearly all of it with the copy.
    (facts.pss, facts.private) = (None, None);
    Some(facts)
}

/// Measures a process of whose memory there is a copy, with the pages of Ruby's heap and the allocator's statistics found in
/// that. `None` if its /proc can't be read.
pub fn facts_of_copied(
    pid: u32,
    pages: Vec<Range<u64>>,
    malloc: Option<Allocator>,
) -> Option<Facts> {
    let pages = (!pages.is_empty()).then_some(HeapPages { ranges: pages, empty: 0 });
    let directory = format!("/proc/{pid}");
    let mut facts = memprof_ledger::measure(&directory, page_size(), pages, malloc).ok()?;
    // It shares nearly all of it with the copy.
    (facts.pss, facts.private) = (None, None);
    Some(facts)
}

fn ranges() -> Result<Vec<Range<u64>>, String> {
    let mut ranges = Vec::new();
    slots::each_page(|slots, _| ranges.push(page_of(&slots)))?;
    Ok(ranges)
}

/// The ledger of this process. Not to be called inside `tracker::with`.
///
/// # Errors
/// If there is no /proc, as on macOS, or the heap cannot be walked.
pub fn ledger() -> io::Result<Ledger> {
    let mut sizes = HeapSizes::default();
    let mut ranges = Vec::new();
    slots::each_page(|slots, size| {
        ranges.push(page_of(&slots));
        slots.step_by(size).for_each(|slot| add(&mut sizes, slot as VALUE, size as u64));
    })
    .map_err(io::Error::other)?;
    // Included in the memsize of one of the objects.
    sizes.memprof = sessions::memsize() as u64;
    sizes.outside = sizes.outside.saturating_sub(sizes.memprof);
    let worker = worker_of(ranges.clone());
    let mut facts = measure(ranges)?;
    facts.sharing = worker.map(|worker| worker.sharing);
    Ok(Ledger::new(facts, Some(sizes)))
}

/// The ledger of another process, from /proc.
///
/// # Errors
/// If it is gone, or belongs to another user.
pub fn ledger_of(pid: u32) -> io::Result<Ledger> {
    let facts = memprof_ledger::measure(&format!("/proc/{pid}"), page_size(), None, None)?;
    Ok(Ledger::new(facts, None))
}

/// The pages with objects. Not to be called inside `tracker::with`.
///
/// # Errors
/// If the heap cannot be walked.
pub fn heap_pages() -> Result<Vec<HeapPage>, String> {
    let mut pages = Vec::new();
    slots::each_page(|slots, size| {
        let used = (slots.clone().step_by(size)).filter(|&slot| {
            // SAFETY: a slot of the heap page that the walk is at.
            unsafe { Flags::of(slot as VALUE) }.holds_object()
        });
        pages.push(HeapPage {
            address: page_of(&slots).start,
            slot_size: size as u64,
            used: used.count() as u64,
            slots: (slots.len() / size) as u64,
        });
    })?;
    Ok(pages)
}

fn measure(ranges: Vec<Range<u64>>) -> io::Result<Facts> {
    let pages = heap_pages_of(ranges);
    memprof_ledger::measure(SELF, page_size(), Some(pages), allocator::statistics())
}

fn heap_pages_of(ranges: Vec<Range<u64>>) -> HeapPages {
    let empty = heap_page_count().saturating_sub(ranges.len() as u64);
    HeapPages { ranges, empty: empty * HEAP_PAGE }
}

/// Slots begin after the header of their page.
fn page_of(slots: &Range<usize>) -> Range<u64> {
    let start = slots.start as u64 / HEAP_PAGE * HEAP_PAGE;
    start..(slots.end as u64).next_multiple_of(HEAP_PAGE)
}

fn add(sizes: &mut HeapSizes, object: VALUE, slot_size: u64) {
    // SAFETY: a slot of the heap page that the walk is at.
    let flags = unsafe { Flags::of(object) };
    let garbage = || {
        // SAFETY: as above.
        (symbols().garbage_object_p).is_some_and(|garbage| unsafe { garbage(object) })
    };
    if !flags.holds_object() || garbage() {
        return;
    }
    // SAFETY: an object that lives, and nothing is freed during the walk.
    let memsize = unsafe { memsize::memsize(object, flags) }.unwrap_or(slot_size);
    let name = if flags.is(ruby_value_type::RUBY_T_IMEMO) && flags.imemo_type() == IMEMO_ISEQ {
        Some("iseq")
    } else {
        data_type_name(object)
    };
    sizes.add(slot_size, memsize, name);
}

fn data_type_name<'a>(object: VALUE) -> Option<&'a str> {
    // SAFETY: the types of live objects and their names are static.
    let name = unsafe { data_type(object).as_ref().map(|kind| kind.wrap_struct_name) };
    let name = name.filter(|name| !name.is_null())?;
    // SAFETY: as above, a NUL-terminated string.
    unsafe { CStr::from_ptr(name) }.to_str().ok()
}

/// Number of heap pages, including empty ones, which a walk does not reach. 0 if the GC does not report it.
fn heap_page_count() -> u64 {
    static KEY: OnceLock<VALUE> = OnceLock::new();
    // SAFETY: called with the GVL. The symbol is never collected, as its ID comes from C; a GC that does not know it raises.
    let count = protect(|| unsafe {
        let name = c"heap_allocated_pages";
        let key = *KEY.get_or_init(|| rb_sys::rb_id2sym(rb_sys::rb_intern(name.as_ptr())));
        rb_sys::rb_gc_stat(key) as u64
    });
    count.unwrap_or(0)
}

fn page_size() -> u64 {
    // SAFETY: sysconf has no conditions.
    unsafe { libc::sysconf(libc::_SC_PAGESIZE) }.max(4096) as u64
}
