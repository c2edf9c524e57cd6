//! Counts written records.

use super::record::{Counts, Edge, Label, Object, Value};

/// The counts so far, and the class of the current object.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub counts: Counts,
    class: u64,
}

impl Tally {
    /// Begins an object.
    #[inline]
    pub fn object(&mut self, object: &Object<'_>) {
        self.counts.objects += 1;
        self.counts.memsize += object.memsize;
        self.class = object.class;
    }

    /// The address of a reference from the current object. The VM also reports an object's class; it does not count here,
    /// since the object's line already names it.
    #[inline]
    pub fn reference(&mut self, edge: &Edge<'_>) -> Option<u64> {
        match edge.value {
            Value::Address(address) if address != self.class || edge.label != Label::None => {
                self.counts.references += 1;
                Some(address)
            }
            _ => None,
        }
    }

    /// The address of a reference from a root.
    #[inline]
    pub fn root(&mut self, edge: &Edge<'_>) -> Option<u64> {
        match edge.value {
            Value::Address(address) => {
                self.counts.roots += 1;
                Some(address)
            }
            _ => None,
        }
    }
}
