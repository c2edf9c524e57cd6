//! Labels of references.

use super::edge_reader::Held;
use crate::read::strings::Names;
use crate::read::window::Window;
use crate::read::word::Memory;
use crate::read::{Fallible, Stop};
use crate::record::{Label, Tables};

/// Reads labels.
pub(super) struct Labels {
    words: Memory<Label>,
    text: Vec<u8>,
}

impl Labels {
    pub fn new() -> Labels {
        Labels { words: Memory::new(Label::None), text: Vec::new() }
    }

    /// The value of `labels`.
    pub fn read(
        &mut self,
        window: &mut Window<'_>,
        tables: &mut Tables,
        names: &mut Names,
        held: &mut Held,
    ) -> Fallible<()> {
        if !window.open(b'[', b']')? {
            return Ok(());
        }
        loop {
            window.ensure()?;
            self.one(window, tables, names, held)?;
            if !window.more(b']')? {
                return Ok(());
            }
        }
    }

    #[inline(always)]
    fn one(
        &mut self,
        window: &mut Window<'_>,
        tables: &mut Tables,
        names: &mut Names,
        held: &mut Held,
    ) -> Fallible<()> {
        if window.byte() != b'"' {
            return match window.is_null() {
                true => {
                    held.label(Label::None);
                    Ok(())
                }
                false => Err(Stop::Broken),
            };
        }
        if let Some(index) = index(window) {
            held.label(Label::Index(index));
            return Ok(());
        }
        let word = window.word();
        if let Some((word, length)) = word {
            if let Some(known) = self.words.get(word) {
                window.skip(length);
                held.label(known);
                return Ok(());
            }
        }
        self.text.clear();
        window.string(&mut self.text)?;
        if self.text.starts_with(b"[") && self.text.ends_with(b"]") {
            held.entry(&self.text);
            return Ok(());
        }
        let label = named(tables, names, &self.text);
        if let (Some((word, _)), false) = (word, self.text.contains(&0)) {
            self.words.set(word, label);
        }
        held.label(label);
        Ok(())
    }
}

/// Reads `"[3]"`, if that comes next.
#[inline(always)]
fn index(window: &mut Window<'_>) -> Option<u32> {
    let text = window.bytes::<16>()?.strip_prefix(b"\"[")?;
    let digits = text.iter().position(|byte| !byte.is_ascii_digit())?;
    if digits == 0 || digits > 10 || !text[digits..].starts_with(b"]\"") {
        return None;
    }
    let add = |index: u32, digit: &u8| {
        let index = index.checked_mul(10)?;
        index.checked_add(u32::from(digit - b'0'))
    };
    let index = text[..digits].iter().try_fold(0, add)?;
    window.skip(digits + 4);
    Some(index)
}

/// The label with this text, if it has a name.
pub(super) fn named(tables: &mut Tables, names: &mut Names, text: &[u8]) -> Label {
    let mut rest = |prefix: &[u8]| {
        let name = text.strip_prefix(prefix)?;
        Some(names.intern(tables, name))
    };
    if let Some(name) = rest(b"#") {
        return Label::Method(name);
    }
    if let Some(name) = rest(b".") {
        return Label::Member(name);
    }
    if let Some(name) = rest(b"local ") {
        return Label::Local(name);
    }
    let name = names.intern(tables, text);
    match text {
        [b'@', b'@', ..] => Label::ClassVariable(name),
        [b'@', ..] => Label::Ivar(name),
        [b'$', ..] => Label::Global(name),
        _ if tables.name(name).starts_with(char::is_uppercase) => Label::Constant(name),
        _ => Label::Role(name),
    }
}

/// The start of a key that is a string, from its entry's label.
pub(super) fn preview(label: &[u8]) -> Option<std::ops::Range<usize>> {
    let end = label.len().checked_sub(2)?;
    (label.starts_with(b"[\"") && label.ends_with(b"\"]") && end >= 2).then_some(2..end)
}
