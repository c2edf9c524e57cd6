//! Maximum number of rows in a list, rows to skip, and how many rows follow.

use serde::Deserialize;

/// Maximum number of rows in an answer (default: `N`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(from = "Option<usize>")]
pub struct Limit<const N: usize>(pub usize);

impl<const N: usize> Default for Limit<N> {
    fn default() -> Limit<N> {
        Limit(N)
    }
}

impl<const N: usize> From<Option<usize>> for Limit<N> {
    fn from(given: Option<usize>) -> Limit<N> {
        given.map(Limit).unwrap_or_default()
    }
}

impl<const N: usize> Limit<N> {
    /// The end of the shown rows if `offset` rows are skipped: rows after it need not be computed or sorted.
    pub(super) fn end(self, offset: usize) -> usize {
        offset.saturating_add(self.0)
    }

    /// The rows that are shown if `offset` rows are skipped, and how many follow.
    pub(super) fn page<T>(self, mut rows: Vec<T>, offset: usize) -> (Vec<T>, usize) {
        let more = rows.len().saturating_sub(self.end(offset));
        rows.truncate(rows.len() - more);
        rows.drain(..offset.min(rows.len()));
        (rows, more)
    }
}

/// Sorts the rows before `end` and leaves the rest unsorted: an answer shows few of many rows.
pub(super) fn sort_first<T, K: Ord>(rows: &mut [T], end: usize, mut key: impl FnMut(&T) -> K) {
    let end = end.min(rows.len());
    if end > 0 && end < rows.len() {
        rows.select_nth_unstable_by_key(end - 1, &mut key);
    }
    rows[..end].sort_unstable_by_key(key);
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[derive(Debug, Default, PartialEq, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    struct Question {
        limit: Limit<3>,
        offset: usize,
    }

    #[test]
    fn has_its_default_without_a_number() {
        let limit = |json| serde_json::from_value::<Question>(json).map(|read| read.limit.0);
        for (json, expected) in [
            (json!({}), 3),
            (json!({ "limit": null }), 3),
            (json!({ "limit": 0 }), 0),
            (json!({ "limit": 7, "offset": 1 }), 7),
            (json!({ "limit": usize::MAX }), usize::MAX),
        ] {
            assert_eq!(limit(json.clone()).expect("a question"), expected, "{json}");
        }
        for wrong in [json!("3"), json!(-1), json!(1.5), json!([])] {
            assert!(limit(json!({ "limit": wrong })).is_err(), "{wrong}");
        }
        assert_eq!(Question::default().limit, Limit(3));
    }

    #[test]
    fn parts_rows_in_those_shown_and_those_behind() {
        let page = |limit, offset| Limit::<3>(limit).page((0..5).collect(), offset);
        for (limit, offset, shown, more) in [
            (2, 0, 0..2, 3),
            (2, 2, 2..4, 1),
            (2, 4, 4..5, 0),
            (5, 0, 0..5, 0),
            (0, 0, 0..0, 5),
            (0, 2, 2..2, 3),
            (2, 5, 5..5, 0),
            (2, 9, 5..5, 0),
            (usize::MAX, 0, 0..5, 0),
            (usize::MAX, 3, 3..5, 0),
            (usize::MAX, usize::MAX, 5..5, 0),
        ] {
            let expected = (shown.collect::<Vec<_>>(), more);
            assert_eq!(page(limit, offset), expected, "{limit} {offset}");
        }
        assert_eq!(Limit::<3>(1).end(usize::MAX), usize::MAX);
    }

    #[test]
    fn sorts_what_is_shown() {
        let rows: Vec<usize> = (0..50).map(|index| index * 37 % 50).collect();
        for end in [0, 1, 2, 20, 49, 50, 51, usize::MAX] {
            let mut sorted = rows.clone();
            sort_first(&mut sorted, end, |&row| row);
            let first: Vec<usize> = (0..end.min(rows.len())).collect();
            assert_eq!(sorted[..first.len()], first, "{end}");
            sorted.sort_unstable();
            assert!(sorted.into_iter().eq(0..50), "{end}");
        }
    }
}
