//! Names of classes and labels. Those that only differ in digits are alike.

use rustc_hash::FxHashMap;

use memprof_dump::record::{NameId, Tables};

/// Names by number.
#[derive(Default)]
pub(super) struct Names {
    tables: Tables,
    /// The only name of a pattern, as long as there is only one: people know `I18n`, not `I#n`.
    only: FxHashMap<NameId, Option<NameId>>,
}

impl Names {
    /// A name that is unlike all others.
    pub fn intern(&mut self, text: &str) -> NameId {
        self.tables.intern(text)
    }

    /// `Row17` and `Row18` have the same number, and so have all anonymous classes.
    pub fn alike(&mut self, text: &str) -> NameId {
        let text = without_address(text);
        let pattern = self.tables.intern(&without_digits(&text));
        let text = self.tables.intern(&text);
        let only = self.only.entry(pattern).or_insert(Some(text));
        if *only != Some(text) {
            *only = None;
        }
        pattern
    }

    /// The name for a person.
    pub fn name(&self, id: NameId) -> &str {
        let only = self.only.get(&id).copied().flatten();
        self.tables.name(only.unwrap_or(id))
    }
}

/// Anonymous classes only differ by their addresses.
pub(super) fn without_address(text: &str) -> String {
    match text.split_once(":0x") {
        Some((before, rest)) => {
            let rest = rest.trim_start_matches(|digit: char| digit.is_ascii_hexdigit());
            format!("{before}{rest}")
        }
        None => text.to_owned(),
    }
}

fn without_digits(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for one in text.chars() {
        match one {
            '0'..='9' if shown.ends_with('#') => {}
            '0'..='9' => shown.push('#'),
            _ => shown.push(one),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_differ_in_digits_are_alike_and_a_single_one_is_shown() {
        let mut names = Names::default();
        let (i18n, row) = (names.alike("I18n"), names.alike("Row17"));
        assert_eq!(names.name(i18n), "I18n");
        assert_eq!(names.alike("Row18"), row);
        assert_eq!(names.alike("I18n"), i18n);
        assert_eq!((names.name(row), names.name(i18n)), ("Row#", "I18n"));
        let class = names.alike("#<Class:0x00007f01>");
        assert_eq!(names.alike("#<Class:0x00007f02>"), class);
        assert_eq!(names.name(class), "#<Class>");
    }
}
