//! The GC's flags, under the key `flags` in all JSON line formats.

use super::super::record::Flags;
use super::Fallible;
use super::keys::keys;
use super::window::Window;

keys! {
    WbProtected "wb_protected"
    Old "old"
    Uncollectible "uncollectible"
    Marking "marking"
    Marked "marked"
    Pinned "pinned"
    Remembered "remembered"
    Shareable "shareable"
    Finalize "finalize"
    Age "age"
    ObjectId "object_id"
}

/// The content of `flags`.
#[derive(Clone, Copy, Default)]
pub(super) struct Collector {
    pub flags: Flags,
    pub age: Option<u8>,
    pub object_id: Option<u64>,
}

/// Number of cached flag texts: a heap has few distinct ones.
const REMEMBERED: usize = 8;

/// Length of the longest cached text.
const LONGEST: usize = 160;

/// Reads flags.
#[derive(Default)]
pub(super) struct Reader {
    known: Vec<(Vec<u8>, Collector)>,
    next: usize,
    key: Vec<u8>,
}

impl Reader {
    #[inline]
    pub fn read(&mut self, window: &mut Window<'_>) -> Fallible<Collector> {
        window.ensure()?;
        for (text, collector) in &self.known {
            if window.starts_with(text) {
                let collector = *collector;
                window.skip(text.len());
                return Ok(collector);
            }
        }
        let rest = window.rest();
        let text = &rest[..rest.len().min(LONGEST)];
        let text = memchr::memchr(b'}', text).map(|end| text[..=end].to_vec());
        let collector = self.each(window)?;
        // An object's own number makes its text unique.
        if let (Some(text), None) = (text, collector.object_id) {
            if text.iter().filter(|byte| **byte == b'{').count() == 1 {
                self.remember(text, collector);
            }
        }
        Ok(collector)
    }

    fn remember(&mut self, text: Vec<u8>, collector: Collector) {
        if self.known.len() < REMEMBERED {
            self.known.push((text, collector));
        } else {
            self.known[self.next] = (text, collector);
            self.next = (self.next + 1) % REMEMBERED;
        }
    }

    fn each(&mut self, window: &mut Window<'_>) -> Fallible<Collector> {
        let mut collector = Collector::default();
        if !window.open(b'{', b'}')? {
            return Ok(collector);
        }
        loop {
            let key = window.key(&mut self.key)?;
            let flag = match Known::of(key.word) {
                Known::WbProtected => Flags::WB_PROTECTED,
                Known::Old => Flags::OLD,
                Known::Uncollectible => Flags::UNCOLLECTIBLE,
                Known::Marking => Flags::MARKING,
                Known::Marked => Flags::MARKED,
                Known::Pinned => Flags::PINNED,
                Known::Remembered => Flags::REMEMBERED,
                Known::Shareable => Flags::SHAREABLE,
                Known::Finalize => Flags::FINALIZE,
                Known::Age => {
                    collector.age = window.count()?;
                    Flags(0)
                }
                Known::ObjectId => {
                    collector.object_id = window.count()?;
                    Flags(0)
                }
                Known::Other => {
                    window.skip_value()?;
                    Flags(0)
                }
            };
            if flag != Flags(0) && window.is_true()? {
                collector.flags.set(flag, true);
            }
            if !window.more(b'}')? {
                return Ok(collector);
            }
        }
    }
}
