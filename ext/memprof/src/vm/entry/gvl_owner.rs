//! Finds out which thread has the GVL.
//!
//! `ruby_thread_has_gvl_p` is wrong for a thread that sleeps, or waits for a Mutex, a Queue or its turn: it only reports
//! whether the thread released the GVL by `rb_nogvl`. The VM stores the owner in its struct for a Ractor, at an offset that
//! differs between versions. It is searched when the extension is loaded: a word that refers to this thread, except while this
//! thread has released the GVL. Without such a word the owner is unknown.

#[cfg(target_os = "linux")]
pub use linux::{find, has_gvl};

#[cfg(target_os = "linux")]
mod linux {
    use std::sync::OnceLock;

    use magnus::rb_sys::AsRawValue;
    use magnus::value::ReprValue;
    use magnus::{Error, Module, RClass, Ruby, Value};
    use rb_sys::VALUE;

    use crate::vm::gvl;
    use crate::vm::heap::typed_data;

    /// Words to search for the Ractor in the struct of a thread (rb_thread_t); it has many more.
    const THREAD_WORDS: usize = 8;
    /// Maximum words to search for the owner in the struct of a Ractor (rb_ractor_t).
    const RACTOR_WORDS: usize = 256;
    /// Attempts to release the GVL if interrupts are pending.
    const ATTEMPTS: usize = 3;

    /// Indices of words.
    struct Places {
        /// In a thread: its Ractor.
        ractor: usize,
        /// In a Ractor: the thread that has its GVL.
        owner: usize,
    }

    static PLACES: OnceLock<Option<Places>> = OnceLock::new();

    /// Searches for the owner word. Called with the GVL.
    pub fn find(ruby: &Ruby) {
        PLACES.get_or_init(|| places(ruby).ok().flatten());
    }

    fn places(ruby: &Ruby) -> Result<Option<Places>, Error> {
        let class: RClass = ruby.class_object().const_get("Ractor")?;
        let current: Value = class.funcall("current", ())?;
        let (Some(thread), Some(ractor)) = (this_thread(), typed_data::data(current.as_raw()))
        else {
            return Ok(None);
        };
        // SAFETY: the struct of this thread has more words than these.
        let of_thread = unsafe { words(thread, THREAD_WORDS) };
        let Some(place) = of_thread.iter().position(|word| *word == ractor) else {
            return Ok(None);
        };
        // SAFETY: the VM has the struct from malloc, which says how much of it may be read.
        let length = unsafe { libc::malloc_usable_size(ractor as *mut _) } / size_of::<usize>();
        // SAFETY: as above.
        let own = || unsafe { places_of(thread, ractor, length.min(RACTOR_WORDS)) };
        let with = own();
        let mut attempts = (0..ATTEMPTS).filter_map(|_| gvl::without(own));
        let Some(without) = attempts.next() else {
            return Ok(None);
        };
        let mut owners = with.into_iter().filter(|place| !without.contains(place));
        Ok(match (owners.next(), owners.next()) {
            (Some(owner), None) => Some(Places { ractor: place, owner }),
            _ => None,
        })
    }

    /// Whether this Ruby thread has the GVL; `None` if unknown.
    pub fn has_gvl() -> Option<bool> {
        let places = PLACES.get()?.as_ref()?;
        let thread = this_thread()?;
        // SAFETY: a living thread and its Ractor, whose structs have these words. Another thread may change the owner
        // meanwhile, but neither from nor to this one.
        unsafe {
            let ractor = *(thread as *const usize).add(places.ractor);
            let owner = (ractor as *const usize).add(places.owner);
            Some(owner.read_volatile() == thread)
        }
    }

    /// Address of the struct of this thread.
    fn this_thread() -> Option<usize> {
        // SAFETY: called on a thread of Ruby's; reads what the thread itself holds.
        typed_data::data(unsafe { rb_sys::rb_thread_current() } as VALUE)
    }

    /// # Safety
    /// As [`words`].
    unsafe fn places_of(thread: usize, ractor: usize, length: usize) -> Vec<usize> {
        // SAFETY: the caller vouches.
        let all = unsafe { words(ractor, length) };
        let places = all.iter().enumerate().filter(|(_, word)| **word == thread);
        places.map(|(place, _)| place).collect()
    }

    /// # Safety
    /// At this address are so many words.
    unsafe fn words(address: usize, length: usize) -> Vec<usize> {
        // SAFETY: the caller vouches. Other threads may write meanwhile.
        (0..length)
            .map(|index| unsafe { (address as *const usize).add(index).read_volatile() })
            .collect()
    }
}

/// Not supported on other systems.
#[cfg(not(target_os = "linux"))]
pub fn find(_: &magnus::Ruby) {}

/// Always unknown.
#[cfg(not(target_os = "linux"))]
pub fn has_gvl() -> Option<bool> {
    None
}
