//! Labels of references, packed into four bytes.

use memprof_dump::record::NameId;

/// A label as stored in the column of labels: the kind in the upper five bits, a number below.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Packed(pub u32);

/// The label of a reference. Names are those of the heap ([`super::Heap::name`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Label {
    /// Ruby has no name for it, or the dump does not contain it.
    None,
    /// Element of an array.
    Index(u32),
    /// Key of a hash.
    Key,
    /// Value of a hash, under the key that the preceding edge leads to.
    Entry,
    /// Value of a hash, under a key that is not an object, as Ruby writes it (`:id`, `42`).
    Under(NameId),
    /// Instance variable, with its `@`.
    Ivar(NameId),
    /// Class variable, with its `@@`.
    ClassVariable(NameId),
    /// Constant.
    Constant(NameId),
    /// Member of a struct.
    Member(NameId),
    /// Captured local variable.
    Local(NameId),
    /// Global variable, with its `$`.
    Global(NameId),
    /// Method of a class or module.
    Method(NameId),
    /// A reference of the VM, such as `super`, `self`, `default`.
    Role(NameId),
}

const BITS: u32 = 27;
const MASK: u32 = (1 << BITS) - 1;

impl Packed {
    /// No label.
    pub const NONE: Packed = Packed(0);

    /// Drops a label whose number is too large.
    pub(super) fn new(label: Label) -> Packed {
        let (kind, number) = match label {
            Label::None => (0, 0),
            Label::Index(index) => (1, index),
            Label::Key => (2, 0),
            Label::Entry => (3, 0),
            Label::Under(name) => (4, name.0),
            Label::Ivar(name) => (5, name.0),
            Label::ClassVariable(name) => (6, name.0),
            Label::Constant(name) => (7, name.0),
            Label::Member(name) => (8, name.0),
            Label::Local(name) => (9, name.0),
            Label::Global(name) => (10, name.0),
            Label::Method(name) => (11, name.0),
            Label::Role(name) => (12, name.0),
        };
        if number > MASK {
            return Packed::NONE;
        }
        Packed(kind << BITS | number)
    }

    /// The label.
    #[inline]
    pub fn label(self) -> Label {
        let number = self.0 & MASK;
        let name = NameId(number);
        match self.0 >> BITS {
            1 => Label::Index(number),
            2 => Label::Key,
            3 => Label::Entry,
            4 => Label::Under(name),
            5 => Label::Ivar(name),
            6 => Label::ClassVariable(name),
            7 => Label::Constant(name),
            8 => Label::Member(name),
            9 => Label::Local(name),
            10 => Label::Global(name),
            11 => Label::Method(name),
            12 => Label::Role(name),
            _ => Label::None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unpacks_what_was_packed() {
        let name = NameId(0x7ff_ffff);
        let labels = [
            Label::None,
            Label::Index(0),
            Label::Index(MASK),
            Label::Key,
            Label::Entry,
            Label::Under(name),
            Label::Ivar(name),
            Label::ClassVariable(NameId(0)),
            Label::Constant(name),
            Label::Member(name),
            Label::Local(name),
            Label::Global(name),
            Label::Method(name),
            Label::Role(name),
        ];
        for label in labels {
            assert_eq!(Packed::new(label).label(), label);
        }
        assert_eq!(Packed::new(Label::Index(MASK + 1)), Packed::NONE);
    }
}
