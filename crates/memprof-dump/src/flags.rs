//! Boolean facts about an object.

/// Names of flags.
const FLAGS: [(Flags, &str); 17] = [
    (Flags::FROZEN, "frozen"),
    (Flags::EMBEDDED, "embedded"),
    (Flags::SHARED, "shared"),
    (Flags::FSTRING, "fstring"),
    (Flags::CHILLED, "chilled"),
    (Flags::BROKEN, "broken"),
    (Flags::SINGLETON, "singleton"),
    (Flags::TOO_COMPLEX, "too_complex"),
    (Flags::WB_PROTECTED, "wb_protected"),
    (Flags::OLD, "old"),
    (Flags::UNCOLLECTIBLE, "uncollectible"),
    (Flags::MARKING, "marking"),
    (Flags::MARKED, "marked"),
    (Flags::PINNED, "pinned"),
    (Flags::REMEMBERED, "remembered"),
    (Flags::SHAREABLE, "shareable"),
    (Flags::FINALIZE, "finalize"),
];

/// Boolean facts, one bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(pub u32);

#[allow(missing_docs)]
impl Flags {
    pub const FROZEN: Flags = Flags(1);
    pub const EMBEDDED: Flags = Flags(1 << 1);
    pub const SHARED: Flags = Flags(1 << 2);
    pub const FSTRING: Flags = Flags(1 << 3);
    pub const CHILLED: Flags = Flags(1 << 4);
    pub const BROKEN: Flags = Flags(1 << 5);
    pub const SINGLETON: Flags = Flags(1 << 6);
    pub const TOO_COMPLEX: Flags = Flags(1 << 7);
    /// The GC's flags, in objspace's order: wb_protected, (age), old, uncollectible, marking, marked, pinned, remembered,
    /// (object_id), shareable.
    pub const WB_PROTECTED: Flags = Flags(1 << 8);
    pub const OLD: Flags = Flags(1 << 9);
    pub const UNCOLLECTIBLE: Flags = Flags(1 << 10);
    pub const MARKING: Flags = Flags(1 << 11);
    pub const MARKED: Flags = Flags(1 << 12);
    pub const PINNED: Flags = Flags(1 << 13);
    pub const REMEMBERED: Flags = Flags(1 << 14);
    pub const SHAREABLE: Flags = Flags(1 << 15);
    /// Has a finalizer.
    pub const FINALIZE: Flags = Flags(1 << 16);

    /// The names of the set flags, such as `frozen`.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        let set = FLAGS.into_iter().filter(move |&(flag, _)| self.has(flag));
        set.map(|(_, name)| name)
    }

    /// True if all bits of `other` are set.
    #[inline]
    pub fn has(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }

    /// Sets the bits of `other` if `condition` holds.
    #[inline]
    pub fn set(&mut self, other: Flags, condition: bool) {
        if condition {
            self.0 |= other.0;
        }
    }
}
