//! The GC's data on an object.

use std::sync::OnceLock;

use memprof_dump::record::Flags;
use rb_sys::{ID, VALUE};

use crate::vm::symbols::symbols;

/// Flags set by the GC, and its counts since Ruby 4.0.
#[derive(Default)]
pub struct Collector {
    pub flags: Flags,
    pub age: Option<u8>,
    pub object_id: Option<u64>,
}

const FLAGS: [(&str, Flags); 8] = [
    ("wb_protected", Flags::WB_PROTECTED),
    ("old", Flags::OLD),
    ("uncollectible", Flags::UNCOLLECTIBLE),
    ("marking", Flags::MARKING),
    ("marked", Flags::MARKED),
    ("pinned", Flags::PINNED),
    ("remembered", Flags::REMEMBERED),
    ("shareable", Flags::SHAREABLE),
];

struct Ids {
    flags: [(ID, Flags); 8],
    age: ID,
    object_id: ID,
}

fn ids() -> &'static Ids {
    static IDS: OnceLock<Ids> = OnceLock::new();
    IDS.get_or_init(|| {
        let intern = |name: &str| {
            // SAFETY: interns a name that the collector interns, too.
            unsafe { rb_sys::rb_intern2(name.as_ptr().cast(), name.len() as _) }
        };
        Ids {
            flags: FLAGS.map(|(name, flag)| (intern(name), flag)),
            age: intern("age"),
            object_id: intern("object_id"),
        }
    })
}

/// Interns the names in advance: that may allocate, which the walk must not do.
pub fn init() {
    ids();
    if let Some(gc_flags) = symbols().gc_flags {
        // SAFETY: with room for none it only interns its names.
        unsafe { gc_flags(rb_sys::rb_cObject, std::ptr::null_mut(), 0) };
    }
    if let Some(gc_metadata) = symbols().gc_metadata {
        // SAFETY: a living object.
        unsafe { gc_metadata(rb_sys::rb_cObject) };
    }
}

/// Cache: most objects have the same flags as the previous one.
#[derive(Default)]
pub struct Last {
    names: [ID; 8],
    flags: Flags,
}

impl Last {
    /// The flags of the first `count` names.
    #[inline(always)]
    fn flags(&mut self, names: &[ID; 8], count: usize) -> Flags {
        // Unused entries are zero in both. All are compared without branches, and read one by one: they were just written, and
        // a wider load would stall on store forwarding.
        let other = (names.iter().zip(&self.names)).fold(0, |other, (one, two)| {
            // SAFETY: a reference to what was written.
            other | (unsafe { std::ptr::read_volatile(one) } ^ two)
        });
        if other != 0 {
            self.learn(names, count);
        }
        self.flags
    }

    #[inline(never)]
    fn learn(&mut self, names: &[ID; 8], count: usize) {
        let mut known = Names { ids: ids(), next: 0 };
        self.flags = Flags::default();
        for name in names.iter().take(count) {
            self.flags.0 |= known.flag(*name).0;
        }
        self.names = *names;
    }
}

/// The GC's data on `object`.
///
/// # Safety
/// `object` is a slot that holds an object, and no GC runs.
#[inline(always)]
pub unsafe fn of(last: &mut Last, object: VALUE) -> Collector {
    let mut collector = Collector::default();
    if let Some(gc_flags) = symbols().gc_flags {
        let mut set: [ID; 8] = [0; 8];
        // SAFETY: an object, as the caller vouches; writes at most as many names as there is room for.
        let count = unsafe { gc_flags(object, set.as_mut_ptr(), set.len()) };
        collector.flags = last.flags(&set, count.min(set.len()));
    } else if let Some(gc_metadata) = symbols().gc_metadata {
        // SAFETY: an object, as the caller vouches; the array is static, and ends with a name that is 0.
        let mut entry = unsafe { gc_metadata(object) };
        let mut names = Names { ids: ids(), next: 0 };
        loop {
            // SAFETY: as above.
            let (name, value) = unsafe { *entry };
            match name {
                0 => break,
                _ if name == names.ids.age => collector.age = Some((value >> 1) as u8),
                _ if name == names.ids.object_id => collector.object_id = Some(value >> 1),
                _ => collector.flags.0 |= names.flag(name).0,
            }
            // SAFETY: not the last entry.
            entry = unsafe { entry.add(1) };
        }
    }
    collector
}

/// The VM returns flags in the order of these names, so each is searched after the previous one.
struct Names {
    ids: &'static Ids,
    next: usize,
}

impl Names {
    #[inline]
    fn flag(&mut self, name: ID) -> Flags {
        let known = self.ids.flags.len();
        for step in 0..known {
            let at = (self.next + step) % known;
            if self.ids.flags[at].0 == name {
                self.next = at + 1;
                return self.ids.flags[at].1;
            }
        }
        Flags::default()
    }
}
