//! A query, prepared for many objects.

use std::ops::Range;

use super::expression::{Comparison, Condition, Expression, TextTest};
use super::field::Field;
use super::row::Row;
use crate::order;

/// A query that caches its results for texts and evaluates cheap conditions first.
///
/// The keys of texts ([`Row::text_key`]) must mean the same for all objects that it sees, so each heap and each thread
/// needs its own.
#[derive(Clone, Debug)]
pub struct Prepared<'q> {
    node: Node<'q>,
}

/// The places at which a comparison holds, in ascending order, if they are known without asking objects.
pub type Locate<'l, 'q> = &'l dyn Fn(&'q Comparison) -> Option<Vec<Range<u32>>>;

#[derive(Clone, Debug)]
enum Node<'q> {
    And(Vec<Node<'q>>),
    Or(Vec<Node<'q>>),
    Not(Box<Node<'q>>),
    Plain(&'q Comparison),
    /// Holds at these places, in ascending order.
    Places(Vec<Range<u32>>),
    Text(&'q Comparison, Memo),
}

impl<'q> Prepared<'q> {
    pub(super) fn new(expression: &'q Expression, locate: Locate<'_, 'q>) -> Prepared<'q> {
        let (node, _) = Node::new(expression, locate);
        Prepared { node }
    }

    /// True if the object matches.
    #[inline]
    pub fn matches<R: Row>(&mut self, row: &R) -> bool {
        self.node.matches(row)
    }
}

impl<'q> Node<'q> {
    /// The node for an expression, and the cost of its evaluation.
    fn new(expression: &'q Expression, locate: Locate<'_, 'q>) -> (Node<'q>, u32) {
        match expression {
            Expression::And(parts) => {
                let (nodes, cost) = cheapest_first(parts, locate);
                (Node::And(nodes), cost)
            }
            Expression::Or(parts) => {
                let (nodes, cost) = cheapest_first(parts, locate);
                (Node::Or(nodes), cost)
            }
            Expression::Not(inner) => {
                let (node, cost) = Node::new(inner, locate);
                (Node::Not(Box::new(node)), cost)
            }
            Expression::Comparison(comparison) => {
                if let Some(places) = locate(comparison) {
                    return (Node::Places(places), 0);
                }
                let node = match comparison.condition {
                    Condition::Text { .. } => Node::Text(comparison, Memo::default()),
                    _ => Node::Plain(comparison),
                };
                (node, cost(comparison))
            }
        }
    }

    fn matches<R: Row>(&mut self, row: &R) -> bool {
        match self {
            Node::Plain(comparison) => comparison.matches(row),
            Node::Places(places) => is_in(places, row.place()),
            Node::Text(comparison, memo) => match row.text_key(comparison.field) {
                Some(key) => memo.recall(key, || comparison.matches(row)),
                None => comparison.matches(row),
            },
            Node::And(nodes) => nodes.iter_mut().all(|node| node.matches(row)),
            Node::Or(nodes) => nodes.iter_mut().any(|node| node.matches(row)),
            Node::Not(node) => !node.matches(row),
        }
    }
}

/// Reordering operands does not change the result, as evaluation has no side effects.
fn cheapest_first<'q>(parts: &'q [Expression], locate: Locate<'_, 'q>) -> (Vec<Node<'q>>, u32) {
    let mut nodes: Vec<_> = parts.iter().map(|part| Node::new(part, locate)).collect();
    order::sort_by_key(&mut nodes, |(_, cost)| *cost);
    let cost = nodes.iter().fold(0u32, |sum, (_, cost)| sum.saturating_add(*cost));
    (nodes.into_iter().map(|(node, _)| node).collect(), cost)
}

#[inline]
fn is_in(places: &[Range<u32>], place: u32) -> bool {
    if places.len() > 2 {
        let next = places.partition_point(|range| range.end <= place);
        return places.get(next).is_some_and(|range| range.start <= place);
    }
    places.iter().any(|range| range.contains(&place))
}

/// The cost of a comparison; that of numbers is 1. Few texts of values and sites are interned.
fn cost(comparison: &Comparison) -> u32 {
    let Condition::Text { test, .. } = &comparison.condition else {
        return 1;
    };
    let text = match comparison.field {
        Field::Value => 40,
        Field::Site | Field::Application => 20,
        Field::Name => 10,
        _ => 2,
    };
    match test {
        TextTest::Matches(_) => 2 * text,
        _ => text,
    }
}

/// Cached results, by the key of the text. The table has as many bytes as the largest key.
#[derive(Clone, Debug, Default)]
struct Memo {
    answers: Vec<Answer>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    Unasked,
    No,
    Yes,
}

/// Results for keys from this one on are not cached.
const MOST_KEYS: usize = 1 << 24;

impl Memo {
    #[inline]
    fn recall(&mut self, key: u32, find: impl FnOnce() -> bool) -> bool {
        match self.answers.get(key as usize) {
            Some(Answer::Yes) => true,
            Some(Answer::No) => false,
            _ => self.remember(key as usize, find()),
        }
    }

    #[cold]
    fn remember(&mut self, key: usize, answer: bool) -> bool {
        if key < MOST_KEYS {
            if key >= self.answers.len() {
                let length = (key + 1).next_power_of_two().max(1024);
                self.answers.resize(length, Answer::Unasked);
            }
            self.answers[key] = if answer { Answer::Yes } else { Answer::No };
        }
        answer
    }
}
