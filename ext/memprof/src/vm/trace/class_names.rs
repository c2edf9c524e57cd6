//! Names of the classes of new objects, with a number for counting.

use std::sync::Arc;

use rb_sys::VALUE;
use rustc_hash::FxHashMap;

use super::gc_moment::Moment;
use crate::vm::classes;
use crate::vm::ruby_object::{self, Flags};

/// Maximum number of classes kept between traces.
const KEPT: usize = 1000;

/// Numbered classes of objects. Kept between traces, as a server traces each request, and requests use the same classes: naming
/// them all takes longer than counting.
pub struct ClassNames {
    /// Time of the first recorded address.
    since: Moment,
    /// By number. A trace keeps those that it counted: the table may be cleared before its report is written.
    pub names: Vec<Arc<str>>,
    by_name: FxHashMap<Arc<str>, u32>,
    /// By class word, while the class is at this address.
    by_address: FxHashMap<u64, u32>,
    /// The last one: most objects come in runs of one class.
    last: Option<(u64, u32)>,
}

impl ClassNames {
    /// An empty table.
    pub fn new(since: Moment) -> Self {
        ClassNames {
            since,
            names: Vec::new(),
            by_name: FxHashMap::default(),
            by_address: FxHashMap::default(),
            last: None,
        }
    }

    /// Whether the names remain valid between traces, when nothing notices that an address is reused for another class.
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

    /// Names are copied when they are first seen: a class may be freed before the end.
    #[cold]
    fn name(&mut self, flags: Flags, key: u64) -> u32 {
        // The substitute for a missing class is smaller than any address.
        let named = (key >= 0x1000).then(|| classes::display_name(key as VALUE));
        let name = named.flatten().unwrap_or_else(|| ruby_object::internal_name(flags));
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

    /// The address may be reused for another class.
    pub fn forget(&mut self, address: VALUE) {
        if self.by_address.remove(&{ address }).is_some() {
            self.last = None;
        }
    }
}
