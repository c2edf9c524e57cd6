//! Names of the classes of new objects, each with a number, by which the objects are counted.

use std::sync::Arc;

use rb_sys::VALUE;
use rustc_hash::FxHashMap;

use super::gc_moment::Moment;
use crate::vm::classes;
use crate::vm::ruby_object::{self, Flags};

/// Classes that are remembered between traces.
const KEPT: usize = 1000;

/// Classes of objects, numbered. Kept from one trace to the next, as a server makes one for each request, and its requests
/// use the same classes: to name them all takes longer than to count them.
pub struct ClassNames {
    /// Since when addresses have been taken down.
    since: Moment,
    /// By number. A trace keeps those that it counted: all may be forgotten before its report is written.
    pub names: Vec<Arc<str>>,
    by_name: FxHashMap<Arc<str>, u32>,
    /// By class word, as long as the class is where it is.
    by_address: FxHashMap<u64, u32>,
    /// The latest: most objects come in rows.
    last: Option<(u64, u32)>,
}

impl ClassNames {
    /// None yet.
    pub fn new(since: Moment) -> Self {
        ClassNames {
            since,
            names: Vec::new(),
            by_name: FxHashMap::default(),
            by_address: FxHashMap::default(),
            last: None,
        }
    }

    /// Whether they may be kept while no trace counts, and so nothing notices that a class takes the place of another.
    pub fn is_reusable(&self) -> bool {
        self.names.len() <= KEPT && self.since.has_all_alive()
    }

    /// Number of the class of a new object.
    #[inline]
    pub fn number(&mut self, flags: Flags, class: VALUE) -> u32 {
        let key = classes::key(flags, class);
        if let Some((last, number)) = self.last {
            if last == key {
                return number;
            }
        }
        let number = match self.by_address.get(&key) {
            Some(number) => *number,
            None => self.name(flags, key),
        };
        self.last = Some((key, number));
        number
    }

    /// Names are copied when they are first seen: a class may be gone at the end.
    #[cold]
    fn name(&mut self, flags: Flags, key: u64) -> u32 {
        // What stands for a class where there is none is smaller than any address.
        let named = (key >= 0x1000).then(|| classes::display_name(key as VALUE));
        let name = named
            .flatten()
            .unwrap_or_else(|| ruby_object::internal_name(flags));
        let next = self.names.len() as u32;
        let number = *(self.by_name.entry(name.into())).or_insert_with_key(|name| {
            self.names.push(Arc::clone(name));
            next
        });
        self.by_address.insert(key, number);
        number
    }

    /// Classes were moved.
    pub fn forget_all(&mut self) {
        self.by_address.clear();
        self.last = None;
    }

    /// Another class may be there now.
    pub fn forget(&mut self, address: VALUE) {
        if self.by_address.remove(&{ address }).is_some() {
            self.last = None;
        }
    }
}
