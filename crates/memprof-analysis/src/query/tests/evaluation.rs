//! Compares the results with those of a naive interpreter.

use super::random::{Random, Values};
use crate::query::{Comparison, Condition, Expression, Field, Order, Query, TextTest};

/// Counts instead of short-circuiting, and looks at each element of a list.
fn naive(expression: &Expression, row: &Values) -> bool {
    let count = |parts: &[Expression]| parts.iter().filter(|part| naive(part, row)).count();
    match expression {
        Expression::And(parts) => count(parts) == parts.len(),
        Expression::Or(parts) => count(parts) != 0,
        Expression::Not(inner) => !naive(inner, row),
        Expression::Comparison(comparison) => compare(comparison, row),
    }
}

fn compare(comparison: &Comparison, row: &Values) -> bool {
    let Comparison { field, condition } = comparison;
    let number = row.numbers.get(field).copied();
    let truth = row.truths.get(field).copied();
    let text = row.texts.get(field);
    let known = number.is_some() || truth.is_some() || text.is_some();
    if let Condition::Known(wanted) = condition {
        return known == *wanted;
    }
    if !known {
        return false;
    }
    match condition {
        Condition::Known(_) => unreachable!(),
        Condition::Truth(wanted) => truth.unwrap() == *wanted,
        Condition::Number(order, other) => {
            let ordering = number.unwrap().cmp(other);
            match order {
                Order::Equal => ordering.is_eq(),
                Order::Unequal => ordering.is_ne(),
                Order::Less => ordering.is_lt(),
                Order::AtMost => ordering.is_le(),
                Order::More => ordering.is_gt(),
                Order::AtLeast => ordering.is_ge(),
            }
        }
        Condition::Numbers { numbers, wanted } => numbers.contains(&number.unwrap()) == *wanted,
        Condition::Range { first, last, wanted } => {
            let number = number.unwrap();
            (number >= *first && number <= *last) == *wanted
        }
        Condition::Text { test, wanted } => {
            let text = text.unwrap();
            let names: Vec<&str> = match field {
                Field::Root => text.split(',').map(str::trim).collect(),
                _ => vec![text],
            };
            let said = names.iter().filter(|name| match test {
                TextTest::Equal(other) => *name == other,
                TextTest::Among(others) => others.iter().any(|other| other == *name),
                TextTest::Contains(part) => name.matches(part.as_str()).next().is_some(),
                TextTest::Matches(pattern) => pattern.matches(name),
            });
            (said.count() > 0) == *wanted
        }
    }
}

#[test]
fn are_those_of_a_simple_interpreter() {
    let mut random = Random(0x1234_5678_9abc_def1);
    let rows: Vec<Values> = (0..100).map(|_| random.row()).collect();
    let mut yes = 0;
    for _ in 0..2000 {
        let text = random.expression(3).to_string();
        let query = Query::parse(&text).unwrap();
        let mut prepared = query.prepare();
        for row in &rows {
            let expected = naive(query.expression(), row);
            yes += u32::from(expected);
            assert_eq!(query.matches(row), expected, "{query} {row:?}");
            assert_eq!(prepared.matches(row), expected, "{query} {row:?}");
            // The cached result.
            assert_eq!(prepared.matches(row), expected, "{query} {row:?}");
        }
    }
    assert!((20_000..180_000).contains(&yes), "{yes}");
}

fn answers(query: &str, row: &Values) -> bool {
    let query = Query::parse(query).unwrap();
    let answer = query.matches(row);
    assert_eq!(query.prepare().matches(row), answer);
    answer
}

#[test]
fn of_what_is_not_known_nothing_holds() {
    let row = Values::default();
    for query in [
        "file = a",
        "file != a",
        "file ~ a",
        "file !~ a",
        "file =~ /a/",
        "file !~ /a/",
        "file in (a)",
        "file not in (a)",
        "file is not none",
        "line = 0",
        "line != 0",
        "line in 1..2",
        "line not in 1..2",
        "line not in (1, 2)",
        "frozen",
        "frozen = false",
        "frozen is not none",
    ] {
        assert!(!answers(query, &row), "{query}");
        assert!(answers(&format!("not {query}"), &row), "{query}");
    }
    for query in ["file is none", "line = none", "frozen is none"] {
        assert!(answers(query, &row), "{query}");
    }
}

#[test]
fn and_binds_tighter_than_or() {
    let mut row = Values::default();
    row.truths.insert(Field::Frozen, true);
    assert!(answers("frozen or old and shared", &row));
    assert!(!answers("(frozen or old) and shared", &row));
    assert!(!answers("not frozen and old", &row));
    assert!(answers("not (frozen and old)", &row));
}

#[test]
fn lines_and_case_are_as_in_ruby() {
    let mut row = Values::default();
    let text = "one\nTwo\nthree".to_owned();
    row.texts.insert(Field::Value, text);
    row.texts.insert(Field::Type, "STRING".to_owned());
    for query in [
        "value =~ /^Two$/",
        r"value =~ /\Aone/",
        r"value =~ /three\z/",
        "value =~ /TWO/i",
        "value !~ /TWO/",
        "value !~ /one.Two/",
        "value !~ \"two\"",
        "type = string and type = T_STRING and type =~ /str/ and type ~ 'str'",
    ] {
        assert!(answers(query, &row), "{query}");
    }
}

#[test]
fn each_root_category_is_asked_by_itself() {
    let mut row = Values::default();
    let text = "vm,machine_context".to_owned();
    row.texts.insert(Field::Root, text);
    assert!(answers("root = vm and root = machine_context", &row));
    assert!(answers("root =~ /^machine/ and root in (x, vm)", &row));
    assert!(!answers("root != vm", &row));
    assert!(!answers("root ~ ','", &row));
    assert!(answers("root != finalizers", &row));
}
