//! Maximum number of rows in a list.

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
    pub(in super::super) fn end(self, offset: usize) -> usize {
        offset.saturating_add(self.0)
    }

    /// The first of rows that are in order, and how many follow.
    pub(in super::super) fn cut<T>(self, mut rows: Vec<T>) -> (Vec<T>, usize) {
        let more = rows.len().saturating_sub(self.0);
        rows.truncate(self.0);
        (rows, more)
    }
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
}
