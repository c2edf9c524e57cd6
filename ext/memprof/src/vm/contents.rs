//! Size of the contents of containers: an Array that Integers are appended to remains one object, and so does a String.
//!
//! Contents are measured by length. The memsize of a container follows its capacity, which grows in ever larger steps: an Array
//! of ten thousand elements may not grow its capacity once in twenty runs.

use memprof_profile::sessions::SessionId;
use rb_sys::{StableApiDefinition, VALUE, ruby_fl_type, ruby_value_type};

use super::classes;
use super::objspace;
use super::protect::Raised;
use super::ruby_object::{self, Flags};
use super::tracker;

const WORD: u64 = size_of::<VALUE>() as u64;

/// Bytes of the elements of a String, Array, Hash or Set; 0 for other objects.
///
/// # Safety
/// `object` is alive, and no GC frees it meanwhile.
pub unsafe fn bytes(object: VALUE, flags: Flags) -> u64 {
    let api = rb_sys::stable_api::get_default();
    // SAFETY: the caller vouches for the object; each function reads a field of the type that was checked.
    unsafe {
        match flags.value_type() {
            kind if kind == ruby_value_type::RUBY_T_STRING as u32 => {
                u64::try_from(api.rstring_len(object)).unwrap_or(0)
            }
            kind if kind == ruby_value_type::RUBY_T_ARRAY as u32 => {
                u64::try_from(api.rarray_len(object)).unwrap_or(0) * WORD
            }
            kind if kind == ruby_value_type::RUBY_T_HASH as u32 => {
                rb_sys::rb_hash_size_num(object) as u64 * 2 * WORD
            }
            kind if kind == ruby_value_type::RUBY_T_DATA as u32 => set_size(object) * WORD,
            _ => 0,
        }
    }
}

/// Number of elements of a Set. Before Ruby 4.0 a Set has a Hash, which counts.
#[cfg(ruby_gte_4_0)]
unsafe fn set_size(object: VALUE) -> u64 {
    let kind = super::heap::typed_data::data_type(object);
    if kind.is_null() {
        return 0;
    }
    // SAFETY: the type of a living object has a name that ends with 0; a T_DATA of this type is a Set.
    unsafe {
        if std::ffi::CStr::from_ptr((*kind).wrap_struct_name) == c"set" {
            rb_sys::rb_set_size(object) as u64
        } else {
            0
        }
    }
}

#[cfg(not(ruby_gte_4_0))]
unsafe fn set_size(_: VALUE) -> u64 {
    0
}

/// True for an object that is visible to the program and whose contents may grow.
fn may_grow(flags: Flags, class_word: VALUE) -> bool {
    const TYPES: [ruby_value_type; 4] = [
        ruby_value_type::RUBY_T_STRING,
        ruby_value_type::RUBY_T_ARRAY,
        ruby_value_type::RUBY_T_HASH,
        ruby_value_type::RUBY_T_DATA,
    ];
    class_word != 0
        && flags.0 & ruby_fl_type::RUBY_FL_FREEZE as usize == 0
        && TYPES.iter().any(|kind| flags.is(*kind))
}

/// A container older than the session.
struct Container {
    address: u64,
    number: u32,
    first: u64,
}

/// A container whose contents have grown since it was noted.
#[derive(Debug)]
pub struct GrownContainer {
    /// Id of the container.
    pub number: u32,
    /// Name of its class.
    pub class: String,
    /// Bytes grown.
    pub bytes: u64,
    /// Current address.
    pub address: u64,
}

/// The containers older than a session, by address. Their allocations were not recorded.
#[derive(Default)]
pub struct OldContainers {
    containers: Vec<Container>,
    /// Set once they were noted; later walks only compare.
    noted: bool,
    grown: Vec<GrownContainer>,
}

impl OldContainers {
    /// Visits the slots from `start` to `end`; those for which `recorded` is false are not recorded.
    ///
    /// memprof's own objects are not recorded either. They can't silently replace a freed container: memprof allocates nothing
    /// between the GC that frees one and the walk that misses it.
    pub fn visit(&mut self, start: u64, end: u64, stride: u64, recorded: impl Fn(u64) -> bool) {
        if self.noted {
            self.compare(start, end, recorded);
        } else {
            self.note(start, end, stride, recorded);
        }
    }

    fn note(&mut self, start: u64, end: u64, stride: u64, recorded: impl Fn(u64) -> bool) {
        for address in (start..end).step_by(stride as usize) {
            if let Some((flags, _)) = container(address).filter(|_| !recorded(address)) {
                self.containers.push(Container {
                    address,
                    number: 0,
                    // SAFETY: it lives (see `container`).
                    first: unsafe { bytes(address as VALUE, flags) },
                });
            }
        }
    }

    fn compare(&mut self, start: u64, end: u64, recorded: impl Fn(u64) -> bool) {
        let first = self.containers.partition_point(|old| old.address < start);
        for old in &mut self.containers[first..] {
            if old.address >= end {
                break;
            }
            let found = container(old.address).filter(|_| !recorded(old.address));
            let Some((flags, class_word)) = found else {
                old.first = u64::MAX; // gone
                continue;
            };
            // SAFETY: it lives (see `container`).
            let now = unsafe { bytes(old.address as VALUE, flags) };
            if now > old.first {
                self.grown.push(GrownContainer {
                    number: old.number,
                    class: classes::display_name(class_word).unwrap_or_default(),
                    bytes: now - old.first,
                    address: old.address,
                });
            }
        }
    }

    /// The walk is finished: returns the containers that have grown.
    pub fn take_grown(&mut self) -> Vec<GrownContainer> {
        if self.noted {
            self.containers.retain(|old| old.first != u64::MAX);
        } else {
            self.noted = true;
            self.sort();
            for (number, old) in (0..).zip(&mut self.containers) {
                old.number = number;
            }
        }
        std::mem::take(&mut self.grown)
    }

    /// Objects moved in memory.
    pub fn relocate(&mut self, moved: impl Fn(u64) -> Option<u64>) {
        self.containers.retain_mut(|old| {
            let now = moved(old.address);
            old.address = now.unwrap_or(0);
            now.is_some()
        });
        self.sort();
    }

    fn sort(&mut self) {
        self.containers.sort_unstable_by_key(|old| old.address);
    }
}

/// Flags and class word of the object in this slot if it is live and its contents may grow.
fn container(address: u64) -> Option<(Flags, VALUE)> {
    let object = address as VALUE;
    // SAFETY: a slot of the heap page that the walk visits.
    let (flags, class_word) = unsafe { (Flags::of(object), ruby_object::class_word(object)) };
    (may_grow(flags, class_word) && objspace::lives(object)).then_some((flags, class_word))
}

/// Results of one walk: bytes of contents instead of memsizes, and the older containers that have grown since the session's
/// first walk.
pub type Contents = (Vec<memprof_profile::recorder::CountRow>, Vec<GrownContainer>);

/// Live objects of a session with their contents. The first call notes the older containers.
///
/// # Errors
/// If the VM raised.
pub fn of_session(session: SessionId) -> Result<Contents, Raised> {
    let old = tracker::with(|tracker| {
        let facts = tracker.facts.get_mut(&session)?;
        Some(facts.older.take().unwrap_or_default())
    });
    let mut old = old.flatten().unwrap_or_default();
    let survivors = objspace::contents(session, &mut old)?;
    let grown = old.take_grown();
    let rows = tracker::with(|tracker| {
        if let Some(facts) = tracker.facts.get_mut(&session) {
            facts.older = Some(old);
        }
        tracker.recorder.counts(session, &survivors)
    });
    Ok((rows.unwrap_or_default(), grown))
}
