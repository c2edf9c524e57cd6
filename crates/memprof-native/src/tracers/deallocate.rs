//! How a PostgreSQL statement uses prepared ones: `DEALLOCATE` and `DISCARD ALL` deallocate, `EXECUTE` executes.

use super::sql::behind_comments;

/// The deallocated statements.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Deallocated {
    All,
    /// The statement with this name.
    One(Vec<u8>),
}

/// None if the statement does something else. One that follows another in the same text is not found.
pub(super) fn deallocated(sql: &[u8]) -> Option<Deallocated> {
    let (verb, rest) = word(sql)?;
    let (name, rest) = word(rest)?;
    match verb.as_slice() {
        b"discard" if name == b"all" => Some(Deallocated::All),
        b"deallocate" => match word(rest) {
            Some((after, _)) if name == b"prepare" => Some(one_or_all(after)),
            _ => Some(one_or_all(name)),
        },
        _ => None,
    }
}

/// Whether the statement executes a prepared one.
pub(super) fn executes(sql: &[u8]) -> bool {
    word(sql).is_some_and(|(verb, _)| verb == b"execute")
}

/// `"all"` in quotes, which is a name, is taken for the keyword: that only makes more kinds unknown than necessary.
fn one_or_all(name: Vec<u8>) -> Deallocated {
    if name == b"all" { Deallocated::All } else { Deallocated::One(name) }
}

/// The next word as the server sees it, in lower case unless quoted, and the rest after it.
fn word(sql: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let sql = behind_comments(sql);
    if let [b'"', quoted @ ..] = sql {
        return quoted_word(quoted);
    }
    let is_part =
        |byte: &&u8| byte.is_ascii_alphanumeric() || b"_$".contains(byte) || !byte.is_ascii();
    let size = sql.iter().take_while(is_part).count();
    let (word, rest) = sql.split_at(size);
    (size > 0).then(|| (word.to_ascii_lowercase(), rest))
}

/// Reads up to the quote that is not doubled.
fn quoted_word(mut sql: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let mut word = Vec::new();
    loop {
        match sql {
            [b'"', b'"', rest @ ..] => {
                word.push(b'"');
                sql = rest;
            }
            [b'"', rest @ ..] => return Some((word, rest)),
            [byte, rest @ ..] => {
                word.push(*byte);
                sql = rest;
            }
            [] => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_that_deallocate() {
        let one = |name: &str| Some(Deallocated::One(name.into()));
        for (sql, expected) in [
            ("DEALLOCATE a1", one("a1")),
            ("deallocate prepare A1 ;", one("a1")),
            ("/* x */ DEALLOCATE \"A \"\"1\"", one("A \"1")),
            ("deallocate prepare", one("prepare")),
            ("deallocate ALL", Some(Deallocated::All)),
            ("DEALLOCATE PREPARE all", Some(Deallocated::All)),
            ("discard all", Some(Deallocated::All)),
            ("discard plans", None),
            ("deallocate", None),
            ("deallocate \"a", None),
            ("deallocates a", None),
            ("set a = 1", None),
            ("", None),
        ] {
            assert_eq!(deallocated(sql.as_bytes()), expected, "{sql:?}");
        }
    }
}
