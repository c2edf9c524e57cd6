//! Objects that match a query, which may also ask for changes.
//!
//! A query knows one heap and no changes. So it runs once for each kind of change, with the comparisons of `change`
//! replaced by their results.

use std::ops::Deref;

use super::Diff;
use super::changes::objects;
use crate::query::{Comparison, Condition, Expression, Field, Query};
use crate::questions::{Error, Selection, error};
use memprof_heap::Heap;
use memprof_heap::graph::BitSet;

const STATE: &str = "a comparison has used malloc blocks only; \
    for free and cached ones, query the state in each heap";

/// Matching objects of both heaps.
pub(super) struct Chosen {
    pub before: BitSet,
    pub after: BitSet,
}

/// The rest of a query.
enum Rest {
    All,
    None,
    Some(Expression),
}

impl Chosen {
    /// Called once for all questions with the same query ([`Diff::chosen`]).
    pub fn of<H: Deref<Target = Heap>>(
        diff: &Diff<H>,
        query: Option<&str>,
    ) -> Result<Chosen, Error> {
        let query = query.map(error::parse).transpose()?;
        if query.as_ref().is_some_and(|query| query.fields().contains(Field::State)) {
            return Err(Error::Question(STATE.to_owned()));
        }
        let query = query.as_ref().map(Query::expression);
        let mut survived = diff.changes.new.clone();
        match &diff.survived {
            Some(set) => survived.intersect(set),
            None => survived.clear(),
        }
        let mut new = diff.changes.new.clone();
        new.subtract(&survived);
        let kept = |heap: &Heap, changed: &BitSet| -> Result<BitSet, Error> {
            let mut kept = objects(heap)?;
            kept.subtract(changed);
            Ok(kept)
        };
        let (before, after): (&Heap, &Heap) = (&diff.before, &diff.after);
        let after_sets = [
            (&["kept"][..], kept(after, &diff.changes.new)?),
            (&["new"][..], new),
            (&["new", "survived"][..], survived),
        ];
        let before_sets = [
            (&["kept"][..], kept(before, &diff.changes.gone)?),
            (&["gone"][..], diff.changes.gone.clone()),
        ];
        Ok(Chosen {
            before: chosen(before, query, before_sets)?,
            after: chosen(after, query, after_sets)?,
        })
    }
}

fn chosen<const N: usize>(
    heap: &Heap,
    query: Option<&Expression>,
    sets: [(&[&str], BitSet); N],
) -> Result<BitSet, Error> {
    let mut all = BitSet::new(heap.len() as usize);
    // Nearly always, the same rest remains for all changes.
    let mut last: Option<(String, BitSet)> = None;
    for (changes, mut set) in sets {
        let rest = query.map_or(Rest::All, |query| rest(query, changes));
        match rest {
            Rest::All => {}
            Rest::None => continue,
            Rest::Some(_) if set.is_empty() => continue,
            Rest::Some(expression) => {
                let query = expression.to_string();
                let known = last.take().filter(|(known, _)| *known == query);
                let (query, selected) = match known {
                    Some(known) => known,
                    None => {
                        let selected = Selection::new(heap, Some(&query))?.into_set();
                        (query, selected)
                    }
                };
                set.intersect(&selected);
                last = Some((query, selected));
            }
        }
        all.unite(&set);
    }
    Ok(all)
}

/// The rest of a query for objects with these changes.
fn rest(query: &Expression, changes: &[&str]) -> Rest {
    match query {
        Expression::And(parts) => {
            let mut open = Vec::new();
            for part in parts {
                match rest(part, changes) {
                    Rest::All => {}
                    Rest::None => return Rest::None,
                    Rest::Some(part) => open.push(part),
                }
            }
            joined(open, Rest::All, Expression::And)
        }
        Expression::Or(parts) => {
            let mut open = Vec::new();
            for part in parts {
                match rest(part, changes) {
                    Rest::All => return Rest::All,
                    Rest::None => {}
                    Rest::Some(part) => open.push(part),
                }
            }
            joined(open, Rest::None, Expression::Or)
        }
        Expression::Not(inner) => match rest(inner, changes) {
            Rest::All => Rest::None,
            Rest::None => Rest::All,
            Rest::Some(inner) => Rest::Some(Expression::Not(Box::new(inner))),
        },
        Expression::Comparison(comparison) if comparison.field == Field::Change => {
            if holds(comparison, changes) { Rest::All } else { Rest::None }
        }
        Expression::Comparison(_) => Rest::Some(query.clone()),
    }
}

fn joined(
    mut open: Vec<Expression>,
    empty: Rest,
    join: impl Fn(Vec<Expression>) -> Expression,
) -> Rest {
    match open.len() {
        0 => empty,
        1 => Rest::Some(open.remove(0)),
        _ => Rest::Some(join(open)),
    }
}

fn holds(comparison: &Comparison, changes: &[&str]) -> bool {
    match &comparison.condition {
        Condition::Known(known) => *known,
        Condition::Text { test, wanted } => {
            changes.iter().any(|change| test.holds(change)) == *wanted
        }
        _ => false,
    }
}
