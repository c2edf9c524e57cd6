//! Whether two objects at the same address are the same object.

use rustc_hash::FxHashMap;

use crate::questions::Error;
use memprof_heap::{Class, Heap, NONE};

/// The compared properties of one heap's objects.
pub(super) struct Side<'h> {
    pub heap: &'h Heap,
    groups: &'h [u32],
    generations: &'h [u32],
    sites: &'h [u32],
}

impl<'h> Side<'h> {
    pub fn new(heap: &'h Heap) -> Result<Side<'h>, Error> {
        Ok(Side {
            heap,
            groups: heap.group_numbers()?,
            generations: heap.generations()?,
            sites: heap.site_numbers()?,
        })
    }

    /// True if any object's generation is known.
    pub fn is_tracked(&self) -> bool {
        self.generations.iter().any(|&generation| generation != NONE)
    }

    fn class(&self, group: u32) -> Option<&'h Class> {
        let group = self.heap.groups().get(group as usize)?;
        self.heap.classes().get(group.shown as usize)
    }

    fn class_name(&self, class: &Class) -> &'h str {
        self.heap.name(class.name)
    }
}

/// Compares objects of two heaps. Names are compared once: equal ones in both heaps have the same key.
pub(super) struct Identity<'h> {
    before: &'h Side<'h>,
    after: &'h Side<'h>,
    /// Key of each group: type and class.
    groups: [Vec<u32>; 2],
    /// Key of each site: file and line.
    sites: [Vec<u32>; 2],
}

impl<'h> Identity<'h> {
    pub fn of(before: &'h Side<'h>, after: &'h Side<'h>) -> Identity<'h> {
        let sides = [before, after];
        let mut keys = FxHashMap::default();
        let groups = sides.map(|side| {
            let groups = (0..).zip(side.heap.groups());
            let of_group = groups.map(|(number, group)| {
                let name = side.class(number).map_or("", |class| side.class_name(class));
                let next = keys.len() as u32;
                *keys.entry((group.kind, name)).or_insert(next)
            });
            of_group.collect()
        });
        let mut keys = FxHashMap::default();
        let sites = sides.map(|side| {
            let of_site = side.heap.sites().iter().map(|site| {
                let next = keys.len() as u32;
                *keys.entry((side.heap.name(site.file), site.line)).or_insert(next)
            });
            of_site.collect()
        });
        Identity { before, after, groups, sites }
    }

    /// True if an object before and one after are the same, as far as is known.
    pub fn same(&self, old: u32, new: u32) -> bool {
        let (before, after) = (self.before, self.after);
        let known = |column: &[u32], id: u32| {
            column.get(id as usize).copied().filter(|&value| value != NONE)
        };
        let made = match (known(before.generations, old), known(after.generations, new)) {
            (Some(left), Some(right)) => {
                let site = |side: usize, number: Option<u32>| known(&self.sites[side], number?);
                let sites = (site(0, known(before.sites, old)), site(1, known(after.sites, new)));
                left == right && !matches!(sites, (Some(left), Some(right)) if left != right)
            }
            (None, None) => true,
            _ => false,
        };
        made && self.same_class(old, new) && self.same_object_id(old, new)
    }

    fn same_class(&self, old: u32, new: u32) -> bool {
        let (Some(&left), Some(&right)) =
            (self.before.groups.get(old as usize), self.after.groups.get(new as usize))
        else {
            return false;
        };
        self.groups[0].get(left as usize) == self.groups[1].get(right as usize)
            || self.named_since(left, right)
    }

    /// An anonymous class may have been named meanwhile: then its address is unchanged.
    fn named_since(&self, left: u32, right: u32) -> bool {
        let (before, after) = (self.before, self.after);
        let kind = |side: &Side<'_>, group: u32| {
            side.heap.groups().get(group as usize).map(|group| group.kind)
        };
        let (Some(old), Some(new)) = (before.class(left), after.class(right)) else {
            return false;
        };
        let address = |side: &Side<'_>, class: &Class| match class.object {
            NONE => None,
            object => Some(side.heap.addresses().of(object)),
        };
        kind(before, left) == kind(after, right)
            && before.class_name(old).starts_with("#<")
            && address(before, old).is_some()
            && address(before, old) == address(after, new)
    }

    fn same_object_id(&self, old: u32, new: u32) -> bool {
        match (self.before.heap.object_id(old), self.after.heap.object_id(new)) {
            (Some(left), Some(right)) => left == right,
            _ => true,
        }
    }
}
