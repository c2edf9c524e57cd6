//! The texts of a snapshot, each once.

use std::borrow::Cow;
use std::hash::Hasher;

use rustc_hash::{FxHashMap, FxHasher};

use super::super::naming::shown;
use super::super::out::json;
use memprof_dump::record::NameId;
use memprof_heap::NONE;

/// Texts as JSON, concatenated, and their numbers.
#[derive(Default)]
pub(super) struct Strings {
    json: Vec<u8>,
    /// End of each text.
    ends: Vec<usize>,
    by_hash: FxHashMap<u64, u32>,
    names: Vec<u32>,
    classes: Vec<u32>,
}

impl Strings {
    /// The number of a text.
    pub fn text(&mut self, text: &str) -> u32 {
        let begin = self.json.len();
        json(&mut self.json, text);
        let mut hasher = FxHasher::default();
        hasher.write(&self.json[begin..]);
        let next = self.ends.len() as u32;
        let number = *self.by_hash.entry(hasher.finish()).or_insert(next);
        if number != next {
            // Two different texts may have the same hash: then the second one is written each time.
            let known = self.begin(number)..self.ends[number as usize];
            if self.json[known] == self.json[begin..] {
                self.json.truncate(begin);
                return number;
            }
        }
        self.ends.push(self.json.len());
        next
    }

    /// The number of an interned text.
    #[inline]
    pub fn name(&mut self, name: NameId, text: &str) -> u32 {
        self.remembered(|strings| &mut strings.names, name.0, || shown(text))
    }

    /// The number of the name of a class.
    #[inline]
    pub fn class<'t>(&mut self, class: u32, text: impl FnOnce() -> Cow<'t, str>) -> u32 {
        self.remembered(|strings| &mut strings.classes, class, text)
    }

    fn remembered<'t>(
        &mut self,
        table: impl Fn(&mut Strings) -> &mut Vec<u32>,
        key: u32,
        text: impl FnOnce() -> Cow<'t, str>,
    ) -> u32 {
        let key = key as usize;
        match table(self).get(key) {
            Some(&known) if known != NONE => return known,
            Some(_) => {}
            None => table(self).resize(key + 1, NONE),
        }
        let number = self.text(&text());
        table(self)[key] = number;
        number
    }

    /// All texts in order.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.ends.len()).map(|number| &self.json[self.begin(number as u32)..self.ends[number]])
    }

    fn begin(&self, number: u32) -> usize {
        (number as usize).checked_sub(1).map_or(0, |before| self.ends[before])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn has_each_text_once() {
        let mut strings = Strings::default();
        assert_eq!((strings.text("a"), strings.text("\"\n"), strings.text("a")), (0, 1, 0));
        assert_eq!(strings.name(NameId(7), "a"), 0);
        assert_eq!(strings.class(3, || "b".into()), 2);
        assert_eq!(strings.class(3, || "not asked".into()), 2);
        assert_eq!(strings.iter().collect::<Vec<_>>(), [&b"\"a\""[..], b"\"\\\"\\n\"", b"\"b\""]);
    }
}
