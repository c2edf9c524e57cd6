//! Objects, as a query sees them.

use std::borrow::Cow;

use super::expression::{Comparison, Condition, Expression, TextTest};
use super::field::{Field, Kind};
use super::part::Part;

/// One object.
///
/// Each method is called only for fields of its [`Kind`], and returns `None` if the object's value is unknown, or
/// objects of that type do not have the field.
pub trait Row {
    /// A number, size or address.
    fn number(&self, field: Field) -> Option<u64>;

    /// A text. [`Field::Type`] is in upper case, without `T_`; names in [`Field::Root`] are separated by commas.
    fn text(&self, field: Field) -> Option<Cow<'_, str>>;

    /// The result of a test of a text ([`Row::text`]), which avoids copying the text.
    fn says(&self, field: Field, test: impl FnOnce(&str) -> bool) -> Option<bool> {
        self.text(field).map(|text| test(&text))
    }

    /// Whether a text contains another one. Rows that have bytes can override it to avoid creating a text.
    fn contains(&self, field: Field, part: &Part) -> Option<bool> {
        self.says(field, |text| part.is_in(text))
    }

    /// True or false.
    fn truth(&self, field: Field) -> Option<bool>;

    /// The object's position among all, for queries that are prepared with places
    /// ([`Query::prepare_with`](super::Query::prepare_with)).
    #[inline]
    fn place(&self) -> u32 {
        0
    }

    /// A number that identifies the text, if it is interned: within a field, equal numbers mean equal texts. It should
    /// be small, as it is an index into a table.
    #[inline]
    fn text_key(&self, field: Field) -> Option<u32> {
        let _ = field;
        None
    }
}

impl Expression {
    /// True if the object matches.
    pub fn matches<R: Row>(&self, row: &R) -> bool {
        match self {
            Expression::And(parts) => parts.iter().all(|part| part.matches(row)),
            Expression::Or(parts) => parts.iter().any(|part| part.matches(row)),
            Expression::Not(inner) => !inner.matches(row),
            Expression::Comparison(comparison) => comparison.matches(row),
        }
    }
}

impl Comparison {
    /// True if the object matches.
    #[inline]
    pub fn matches<R: Row>(&self, row: &R) -> bool {
        let field = self.field;
        match &self.condition {
            Condition::Number(order, number) => {
                row.number(field).is_some_and(|value| order.holds(value, *number))
            }
            Condition::Truth(truth) => row.truth(field) == Some(*truth),
            Condition::Range { first, last, wanted } => {
                row.number(field).is_some_and(|value| (*first..=*last).contains(&value) == *wanted)
            }
            Condition::Numbers { numbers, wanted } => row
                .number(field)
                .is_some_and(|value| numbers.binary_search(&value).is_ok() == *wanted),
            Condition::Known(known) => is_known(row, field) == *known,
            Condition::Text { test: TextTest::Contains(part), wanted } if !field.is_list() => {
                row.contains(field, part) == Some(*wanted)
            }
            Condition::Text { test, wanted } => {
                row.says(field, |text| says(test, field, text)) == Some(*wanted)
            }
        }
    }
}

/// The result of the test for the field's text.
fn says(test: &TextTest, field: Field, text: &str) -> bool {
    if field.is_list() {
        text.split(',').any(|name| test.holds(name.trim()))
    } else {
        test.holds(text)
    }
}

fn is_known<R: Row>(row: &R, field: Field) -> bool {
    match field.kind() {
        Kind::Bool => row.truth(field).is_some(),
        Kind::Text => row.text_key(field).is_some() || row.says(field, |_| true).is_some(),
        Kind::Number | Kind::Size | Kind::Address => row.number(field).is_some(),
    }
}
