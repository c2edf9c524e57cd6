//! A set of fields.

use super::field::Field;

/// The fields that a query uses, which must be loaded or computed before it runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fields(u64);

// One bit per field.
const _: () = assert!(Field::ALL.len() <= 64);

impl Fields {
    /// Adds a field.
    pub fn insert(&mut self, field: Field) {
        self.0 |= Fields::bit(field);
    }

    /// True if it is in the set.
    pub fn contains(self, field: Field) -> bool {
        self.0 & Fields::bit(field) != 0
    }

    /// True if the set is empty.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The fields, in the order of [`Field::ALL`].
    pub fn iter(self) -> impl Iterator<Item = Field> {
        let fields = Field::ALL.iter().copied();
        fields.filter(move |field| self.contains(*field))
    }

    fn bit(field: Field) -> u64 {
        1 << field as u32
    }
}

impl FromIterator<Field> for Fields {
    fn from_iter<I: IntoIterator<Item = Field>>(fields: I) -> Fields {
        let mut set = Fields::default();
        fields.into_iter().for_each(|field| set.insert(field));
        set
    }
}
