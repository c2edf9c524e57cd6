//! A query as data.

use super::field::{Field, Fields};
use super::part::Part;
use super::pattern::Pattern;

/// A condition on an object.
#[derive(Clone, Debug, PartialEq)]
pub enum Expression {
    /// All of these hold; two or more.
    And(Vec<Expression>),
    /// One of these holds; two or more.
    Or(Vec<Expression>),
    /// This does not hold.
    Not(Box<Expression>),
    /// A comparison of one field.
    Comparison(Comparison),
}

/// A condition on one field. If an object's field is unknown, only [`Condition::Known`] can hold.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// The field.
    pub field: Field,
    /// The condition; it fits the field's [`kind`](Field::kind).
    pub condition: Condition,
}

/// A condition on the value of a field.
///
/// `wanted` is the expected result of the test: true for `=`, `~`, `=~`, `in`; false for `!=`, `!~`, `not in`.
#[derive(Clone, Debug, PartialEq)]
pub enum Condition {
    /// `is not none` (true), `is none` (false).
    Known(bool),
    /// A truth value.
    Truth(bool),
    /// Comparison with a number.
    Number(Order, u64),
    /// `in (1, 2)`.
    Numbers {
        /// In ascending order, each once.
        numbers: Vec<u64>,
        /// The expected result.
        wanted: bool,
    },
    /// `in 3..7`.
    Range {
        /// The smallest number.
        first: u64,
        /// The largest; not less than the first.
        last: u64,
        /// The expected result.
        wanted: bool,
    },
    /// Comparison with a text.
    Text {
        /// The test.
        test: TextTest,
        /// The expected result.
        wanted: bool,
    },
}

/// How two numbers are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// `=`
    Equal,
    /// `!=`
    Unequal,
    /// `<`
    Less,
    /// `<=`
    AtMost,
    /// `>`
    More,
    /// `>=`
    AtLeast,
}

/// A test of a text. The texts of [`Field::Type`] are in upper case, without `T_`.
#[derive(Clone, Debug, PartialEq)]
pub enum TextTest {
    /// `= "text"`: is the same.
    Equal(String),
    /// `in ("a", "b")`: is one of these, which are in ascending order, each once.
    Among(Vec<String>),
    /// `~ "text"`: contains it.
    Contains(Part),
    /// `=~ /text/`: the regexp matches somewhere.
    Matches(Pattern),
}

impl Order {
    /// Compares.
    #[inline]
    pub fn holds(self, left: u64, right: u64) -> bool {
        match self {
            Order::Equal => left == right,
            Order::Unequal => left != right,
            Order::Less => left < right,
            Order::AtMost => left <= right,
            Order::More => left > right,
            Order::AtLeast => left >= right,
        }
    }
}

impl TextTest {
    /// True if the text passes the test.
    pub fn holds(&self, text: &str) -> bool {
        match self {
            TextTest::Equal(other) => text == other,
            TextTest::Among(texts) => texts.binary_search_by(|other| (**other).cmp(text)).is_ok(),
            TextTest::Contains(part) => part.is_in(text),
            TextTest::Matches(pattern) => pattern.matches(text),
        }
    }
}

impl Expression {
    /// The fields that it uses.
    pub fn fields(&self) -> Fields {
        let mut fields = Fields::default();
        self.collect_fields(&mut fields);
        fields
    }

    /// Adds the fields that it uses.
    fn collect_fields(&self, fields: &mut Fields) {
        match self {
            Expression::And(parts) | Expression::Or(parts) => {
                parts.iter().for_each(|part| part.collect_fields(fields));
            }
            Expression::Not(inner) => inner.collect_fields(fields),
            Expression::Comparison(comparison) => fields.insert(comparison.field),
        }
    }
}
