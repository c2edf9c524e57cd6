//! The canonical text of a query: parsing it gives the same query.

use std::fmt::{self, Display, Formatter};

use super::expression::{Comparison, Condition, Expression, Order, TextTest};
use super::field::{Field, Kind};
use super::number::write_size;
use super::quoted::{write_regexp, write_text};

impl Display for Expression {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Expression::And(parts) => {
                let joined = |part: &_| matches!(part, Expression::And(_) | Expression::Or(_));
                write_parts(formatter, parts, " and ", joined)
            }
            Expression::Or(parts) => {
                let joined = |part: &_| matches!(part, Expression::Or(_));
                write_parts(formatter, parts, " or ", joined)
            }
            Expression::Not(inner) => match **inner {
                Expression::And(_) | Expression::Or(_) => write!(formatter, "not ({inner})"),
                _ => write!(formatter, "not {inner}"),
            },
            Expression::Comparison(comparison) => comparison.fmt(formatter),
        }
    }
}

fn write_parts(
    formatter: &mut Formatter<'_>,
    parts: &[Expression],
    word: &str,
    needs_parentheses: impl Fn(&Expression) -> bool,
) -> fmt::Result {
    for (index, part) in parts.iter().enumerate() {
        if index > 0 {
            formatter.write_str(word)?;
        }
        if needs_parentheses(part) {
            write!(formatter, "({part})")?;
        } else {
            part.fmt(formatter)?;
        }
    }
    Ok(())
}

impl Display for Comparison {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let field = self.field;
        formatter.write_str(field.name())?;
        match &self.condition {
            Condition::Known(true) => formatter.write_str(" is not none"),
            Condition::Known(false) => formatter.write_str(" is none"),
            Condition::Truth(true) => Ok(()),
            Condition::Truth(false) => formatter.write_str(" = false"),
            Condition::Number(order, number) => {
                write!(formatter, " {} ", symbol(*order))?;
                write_number(formatter, field, *number)
            }
            Condition::Numbers { numbers, wanted } => {
                formatter.write_str(within(*wanted))?;
                let number = |formatter: &mut Formatter<'_>, number: &_| {
                    write_number(formatter, field, *number)
                };
                write_list(formatter, numbers, number)
            }
            Condition::Range { first, last, wanted } => {
                formatter.write_str(within(*wanted))?;
                write_number(formatter, field, *first)?;
                formatter.write_str("..")?;
                write_number(formatter, field, *last)
            }
            Condition::Text { test, wanted } => write_test(formatter, test, *wanted),
        }
    }
}

fn write_test(formatter: &mut Formatter<'_>, test: &TextTest, wanted: bool) -> fmt::Result {
    match test {
        TextTest::Equal(text) => {
            formatter.write_str(if wanted { " = " } else { " != " })?;
            write_text(formatter, text)
        }
        TextTest::Among(texts) => {
            formatter.write_str(within(wanted))?;
            write_list(formatter, texts, |formatter, text| write_text(formatter, text))
        }
        TextTest::Contains(part) => {
            formatter.write_str(if wanted { " ~ " } else { " !~ " })?;
            write_text(formatter, part.as_str())
        }
        TextTest::Matches(pattern) => {
            formatter.write_str(if wanted { " =~ " } else { " !~ " })?;
            write_regexp(formatter, pattern.source(), pattern.ignores_case())
        }
    }
}

fn write_list<T>(
    formatter: &mut Formatter<'_>,
    elements: &[T],
    write: impl Fn(&mut Formatter<'_>, &T) -> fmt::Result,
) -> fmt::Result {
    formatter.write_str("(")?;
    for (index, element) in elements.iter().enumerate() {
        if index > 0 {
            formatter.write_str(", ")?;
        }
        write(formatter, element)?;
    }
    formatter.write_str(")")
}

fn write_number(formatter: &mut Formatter<'_>, field: Field, number: u64) -> fmt::Result {
    match field.kind() {
        Kind::Size => write_size(formatter, number),
        Kind::Address => write!(formatter, "{number:#x}"),
        _ => write!(formatter, "{number}"),
    }
}

fn within(wanted: bool) -> &'static str {
    if wanted { " in " } else { " not in " }
}

fn symbol(order: Order) -> &'static str {
    match order {
        Order::Equal => "=",
        Order::Unequal => "!=",
        Order::Less => "<",
        Order::AtMost => "<=",
        Order::More => ">",
        Order::AtLeast => ">=",
    }
}
