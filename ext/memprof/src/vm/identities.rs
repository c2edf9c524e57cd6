//! Distinguishes anonymous classes, whose objects are otherwise counted together under the name of the superclass.
//!
//! Only while a session requests it: a program may create a class per request, and each would be a site.

use rb_sys::{VALUE, ruby_value_type};
use rustc_hash::FxHashMap;

use super::ruby_object::{self, Flags};

/// Anonymous classes by number. Numbers are never reused.
#[derive(Default)]
pub struct Identities {
    wanted: bool,
    last: u32,
    living: FxHashMap<u64, u32>,
    /// Addresses of each class and its ancestors, in the order of `Module#ancestors` if the last occurrence of an address
    /// counts; 0 for freed ones. They outlive the class, as its objects are counted later.
    ancestors: FxHashMap<u32, Vec<u64>>,
}

impl Identities {
    /// Whether some session distinguishes anonymous classes. Clears them all when none does.
    pub fn set_wanted(&mut self, wanted: bool) {
        self.wanted = wanted;
        if !wanted {
            self.living = FxHashMap::default();
            self.ancestors = FxHashMap::default();
        }
    }

    /// The number of an anonymous class, which is alive; 0 if no session needs it. Called in an allocation hook.
    pub fn of(&mut self, class: VALUE) -> u32 {
        if !self.wanted {
            return 0;
        }
        if let Some(identity) = self.living.get(&{ class }) {
            return *identity;
        }
        self.last = self.last.wrapping_add(1).max(1);
        self.living.insert(class, self.last);
        self.ancestors.insert(self.last, ancestors(class));
        self.last
    }

    /// Which of `modules`, which are alive, is nearest to the class with this number: itself, or the first in method resolution
    /// order. If `exact`, only the class itself.
    pub fn nearest(&self, identity: u32, modules: &[VALUE], exact: bool) -> Option<usize> {
        let ancestors = self.ancestors.get(&identity)?;
        let ancestors = if exact { ancestors.get(..1)? } else { ancestors };
        let steps = |module: VALUE| ancestors.iter().rposition(|address| *address == module);
        (modules.iter().enumerate())
            .filter_map(|(index, module)| Some((steps(*module)?, index)))
            .min()
            .map(|(_, index)| index)
    }

    /// The class or module at this address was freed or replaced.
    pub fn forget(&mut self, address: VALUE) {
        self.living.remove(&{ address });
        for known in self.ancestors.values_mut().flatten() {
            if *known == address {
                *known = 0;
            }
        }
    }

    /// Frees in the meantime are unknown.
    pub fn forget_addresses(&mut self) {
        self.living.clear();
        self.ancestors.clear();
    }

    /// Classes and modules moved in memory.
    pub fn relocate(&mut self, moved: impl Fn(u64) -> Option<u64>) {
        let living = std::mem::take(&mut self.living);
        self.living = living
            .into_iter()
            .filter_map(|(address, identity)| Some((moved(address)?, identity)))
            .collect();
        for known in self.ancestors.values_mut().flatten() {
            if *known != 0 {
                *known = moved(*known).unwrap_or(0);
            }
        }
    }
}

/// The class and its ancestors. Modules replace the iclasses that include them, and the class itself replaces its origin
/// iclass, which follows the modules it prepends.
fn ancestors(mut class: VALUE) -> Vec<u64> {
    let mut ancestors = Vec::new();
    while class != 0 {
        // SAFETY: a class that is alive: that of a new object, or above that.
        let (flags, word) = unsafe { (Flags::of(class), ruby_object::class_word(class)) };
        let included = flags.is(ruby_value_type::RUBY_T_ICLASS);
        ancestors.push(if included { word } else { class });
        // SAFETY: as above; follows a superclass pointer.
        class = unsafe { rb_sys::rb_class_get_superclass(class) };
    }
    ancestors
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identities(ancestors: &[u64]) -> Identities {
        let mut identities = Identities::default();
        identities.set_wanted(true);
        identities.living.insert(ancestors[0], 1);
        identities.ancestors.insert(1, ancestors.to_vec());
        identities
    }

    #[test]
    fn the_nearest_ancestor_takes_an_object() {
        // A class at 80, which prepends the module at 160, inherits from 240.
        let identities = identities(&[80, 160, 80, 240]);
        assert_eq!(identities.nearest(1, &[240, 80], false), Some(1));
        assert_eq!(identities.nearest(1, &[80, 160], false), Some(1));
        assert_eq!(identities.nearest(1, &[240, 320], false), Some(0));
        assert_eq!(identities.nearest(1, &[320], false), None);
        assert_eq!(identities.nearest(1, &[240], true), None);
        assert_eq!(identities.nearest(1, &[240, 80], true), Some(1));
        assert_eq!(identities.nearest(2, &[80], false), None);
    }

    #[test]
    fn a_freed_class_lends_its_number_to_no_other() {
        let mut identities = identities(&[80, 240]);
        identities.forget(80);
        assert_eq!(identities.nearest(1, &[80], false), None);
        assert_eq!(identities.nearest(1, &[240], false), Some(0));
        assert!(identities.living.is_empty());
    }

    #[test]
    fn classes_keep_their_number_when_they_move() {
        let mut identities = identities(&[80, 240]);
        identities.relocate(|address| (address == 80).then_some(160));
        assert_eq!(identities.living.get(&160), Some(&1));
        assert_eq!(identities.nearest(1, &[160, 240], false), Some(0));
        assert_eq!(identities.nearest(1, &[240], false), None);
    }

    #[test]
    fn nothing_is_known_when_nobody_wants_it() {
        let mut identities = identities(&[80]);
        identities.set_wanted(false);
        assert!(identities.living.is_empty());
        assert_eq!(identities.nearest(1, &[80], false), None);
    }
}
