//! Objects, as a query sees them.

use std::borrow::Cow;

use super::expression::{Comparison, Condition, Expression, TextTest};
use super::field::{Field, Kind};
use super::part::Part;

/// One object.
///
/// Each method is asked only for fields of its [`Kind`], and answers `None` if the field is not known of the object, or
/// objects of that type do not have it.
pub trait Row {
    /// A number, size or address.
    fn number(&self, field: Field) -> Option<u64>;

    /// A text. [`Field::Type`] is in upper case, without `T_`; names in [`Field::Root`] have commas between them.
    fn text(&self, field: Field) -> Option<Cow<'_, str>>;

    /// What a test says of a text ([`Row::text`]), which need not be copied for that.
    fn says(&self, field: Field, test: impl FnOnce(&str) -> bool) -> Option<bool> {
        self.text(field).map(|text| test(&text))
    }

    /// Whether a text contains another one. Who has bytes need not make a text of them.
    fn contains(&self, field: Field, part: &Part) -> Option<bool> {
        self.says(field, |text| part.is_in(text))
    }

    /// True or false.
    fn truth(&self, field: Field) -> Option<bool>;

    /// The object's place among all, where queries are prepared with places
    /// ([`Query::prepare_with`](super::Query::prepare_with)).
    #[inline]
    fn place(&self) -> u32 {
        0
    }

    /// A number that stands for the text, if it is interned: in one field, texts with the same number are the same.
    /// Small numbers are best, as there will be a table of them.
    #[inline]
    fn text_key(&self, field: Field) -> Option<u32> {
        let _ = field;
        None
    }
}

impl Expression {
    /// True if the object is what is asked for.
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
    /// True if the object is what is asked for.
    #[inline]
    pub fn matches<R: Row>(&self, row: &R) -> bool {
        let field = self.field;
        match &self.condition {
            Condition::Number(order, number) => row
                .number(field)
                .is_some_and(|value| order.holds(value, *number)),
            Condition::Truth(truth) => row.truth(field) == Some(*truth),
            Condition::Range {
                first,
                last,
                wanted,
            } => row
                .number(field)
                .is_some_and(|value| (*first..=*last).contains(&value) == *wanted),
            Condition::Numbers { numbers, wanted } => row
                .number(field)
                .is_some_and(|value| numbers.binary_search(&value).is_ok() == *wanted),
            Condition::Known(known) => is_known(row, field) == *known,
            Condition::Text {
                test: TextTest::Contains(part),
                wanted,
            } if !field.is_list() => row.contains(field, part) == Some(*wanted),
            Condition::Text { test, wanted } => {
                row.says(field, |text| says(test, field, text)) == Some(*wanted)
            }
        }
    }
}

/// What the test says of the field's text.
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
