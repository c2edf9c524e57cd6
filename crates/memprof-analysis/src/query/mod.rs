//! The language that chooses objects: `class =~ /Session/ and retained > 1MiB`.
//!
//! [`Query::parse`] parses a text into a [`Query`], or returns an [`Error`] with its position. A query is data
//! ([`Expression`]), and is independent of heaps: it asks a [`Row`] for [`Field`]s.
//!
//! ```
//! use memprof_analysis::query::{Field, Query, Row};
//! use std::borrow::Cow;
//!
//! struct Text(&'static str);
//!
//! impl Row for Text {
//!     fn number(&self, field: Field) -> Option<u64> {
//!         (field == Field::Length).then_some(self.0.len() as u64)
//!     }
//!     fn text(&self, field: Field) -> Option<Cow<'_, str>> {
//!         (field == Field::Value).then_some(Cow::Borrowed(self.0))
//!     }
//!     fn truth(&self, _: Field) -> Option<bool> {
//!         None
//!     }
//! }
//!
//! let query = Query::parse("length > 3 && value ~ 'o'")?;
//! assert!(query.matches(&Text("book")));
//! assert!(!query.matches(&Text("box")));
//! assert_eq!(query.to_string(), "length > 3 and value ~ \"o\"");
//!
//! let error = Query::parse("lenght > 3").unwrap_err();
//! assert_eq!(error.pointing("lenght > 3"), "lenght > 3\n^^^^^^");
//! # Ok::<(), memprof_analysis::query::Error>(())
//! ```

mod condition;
mod display;
mod expression;
mod field;
mod nearest;
mod number;
mod parser;
mod part;
mod pattern;
mod prepared;
mod query_error;
mod quoted;
mod row;
mod token;

use std::fmt;
use std::str::FromStr;

pub use expression::{Comparison, Condition, Expression, Order, TextTest};
pub use field::{Field, Fields, Kind};
pub use part::Part;
pub use pattern::Pattern;
pub use prepared::{Locate, Prepared};
pub use query_error::Error;
pub use row::Row;

/// A condition on objects. Its [`Display`](fmt::Display) is a text that parses to the same query.
#[derive(Clone, Debug, PartialEq)]
pub struct Query {
    expression: Expression,
}

impl Query {
    /// Parses a query.
    ///
    /// # Errors
    /// The first error in the query, with its position.
    pub fn parse(query: &str) -> Result<Query, Error> {
        let expression = parser::parse(query)?;
        Ok(Query { expression })
    }

    /// The query as data.
    pub fn expression(&self) -> &Expression {
        &self.expression
    }

    /// The fields that it uses; it asks objects for no others.
    pub fn fields(&self) -> Fields {
        self.expression.fields()
    }

    /// True if the object matches.
    pub fn matches<R: Row>(&self, row: &R) -> bool {
        self.expression.matches(row)
    }

    /// The query, prepared for many objects.
    pub fn prepare(&self) -> Prepared<'_> {
        self.prepare_with(&|_| None)
    }

    /// The same for objects that have a place ([`Row::place`]): `locate` returns the places at which a comparison
    /// holds, in ascending order, if they are known beforehand. Such a comparison does not ask the objects.
    pub fn prepare_with<'q>(&'q self, locate: Locate<'_, 'q>) -> Prepared<'q> {
        Prepared::new(&self.expression, locate)
    }
}

impl FromStr for Query {
    type Err = Error;

    fn from_str(query: &str) -> Result<Query, Error> {
        Query::parse(query)
    }
}

impl fmt::Display for Query {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.expression.fmt(formatter)
    }
}

#[cfg(test)]
mod tests;
