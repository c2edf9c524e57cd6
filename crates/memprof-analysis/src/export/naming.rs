//! Names of objects and references for people.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io;

use memprof_dump::record::{Flags, Kind};
use memprof_heap::{Heap, Label, NONE, Packed, Stored, TextReader};

/// Maximum length of a text in a title, in characters.
const SHOWN: usize = 64;

/// Names of nodes and labels of references.
pub(super) struct Naming<'h> {
    heap: &'h Heap,
    groups: &'h [u32],
    flags: &'h [u32],
    lengths: &'h [u32],
    places: &'h [u32],
    labels: &'h [u32],
    reader: TextReader<'h>,
}

impl<'h> Naming<'h> {
    pub fn new(heap: &'h Heap) -> io::Result<Naming<'h>> {
        Ok(Naming {
            heap,
            groups: heap.group_numbers()?,
            flags: heap.flag_words()?,
            lengths: heap.lengths()?,
            places: heap.text_places()?,
            labels: heap.labels()?,
            reader: heap.texts().reader(),
        })
    }

    /// Type of an object.
    pub fn kind(&self, id: u32) -> Kind {
        self.groups
            .get(id as usize)
            .map_or(Kind::NONE, |&group| self.heap.groups()[group as usize].kind)
    }

    /// Name of the type; `root` for a root.
    pub fn kind_name(&self, node: u32) -> &'static str {
        if node < self.heap.len() { self.kind(node).name() } else { "root" }
    }

    /// Name of the class or a substitute; for a root, its category.
    pub fn class(&self, node: u32) -> &'h str {
        match self.groups.get(node as usize) {
            Some(&group) => {
                let class = self.heap.groups()[group as usize].shown;
                self.heap.name(self.heap.classes()[class as usize].name)
            }
            None => self.heap.category(node).map_or("", |category| &category.name),
        }
    }

    /// Number of the class among those of the heap.
    pub fn class_number(&self, id: u32) -> u32 {
        self.groups.get(id as usize).map_or(0, |&group| self.heap.groups()[group as usize].shown)
    }

    /// Number of elements, or bytes of a text.
    pub fn length(&self, id: u32) -> Option<u32> {
        self.lengths.get(id as usize).copied().filter(|&length| length != NONE)
    }

    /// The text of an object, as far as it is stored; fast if objects are requested in order.
    pub fn text(&mut self, id: u32) -> io::Result<Option<Stored>> {
        match self.places.get(id as usize) {
            None | Some(&NONE) => Ok(None),
            Some(&place) => self.reader.get(place).map(Some),
        }
    }

    /// The same for objects in any order.
    fn any_text(&self, id: u32) -> io::Result<Option<Stored>> {
        match self.places.get(id as usize) {
            None | Some(&NONE) => Ok(None),
            Some(&place) => self.heap.texts().get(place).map(Some),
        }
    }

    /// A node in a few words: `String "user:42"`, `Array (3)`, `class Cache`, `root vm`. It is short and has no invisible
    /// characters.
    pub fn title(&self, node: u32) -> io::Result<String> {
        self.title_with(node, self.any_text(node)?)
    }

    /// The same; faster if objects are requested in order.
    pub fn title_in_order(&mut self, node: u32) -> io::Result<String> {
        let text = self.text(node)?;
        self.title_with(node, text)
    }

    fn title_with(&self, node: u32, text: Option<Stored>) -> io::Result<String> {
        let class = self.class(node);
        if node >= self.heap.len() {
            return Ok(format!("root {}", shown(class)).trim_end().to_owned());
        }
        let kind = self.kind(node);
        match kind {
            Kind::CLASS | Kind::MODULE | Kind::ICLASS => {
                Ok(shown(&self.class_title(node)).into_owned())
            }
            Kind::STRING | Kind::SYMBOL | Kind::REGEXP | Kind::BIGNUM => {
                let mut title = shown(class).into_owned();
                if let Some(text) = text.as_ref().and_then(beginning) {
                    match kind {
                        Kind::STRING => write!(title, " \"{}\"", shown(&text)),
                        Kind::SYMBOL => write!(title, " :{}", shown(&text)),
                        Kind::REGEXP => write!(title, " /{}/", shown(&text)),
                        _ => write!(title, " {}", shown(&text)),
                    }
                    .expect("a string takes all that is written to it");
                }
                Ok(title)
            }
            _ => Ok(match self.length(node) {
                Some(length) => format!("{} ({length})", shown(class)),
                None => shown(class).into_owned(),
            }),
        }
    }

    /// A class or module with its name: `class Cache`, `class of Cache` for its singleton class.
    pub fn class_title(&self, id: u32) -> String {
        let kind = if self.kind(id) == Kind::CLASS { "class" } else { self.kind_name(id) };
        let singleton =
            self.flags.get(id as usize).is_some_and(|word| word & Flags::SINGLETON.0 != 0);
        let name = self.heap.class_object(id).and_then(|class| class.name);
        let name = match name {
            Some(name) => Cow::Borrowed(self.heap.name(name)),
            None => Cow::Owned(format!("{:#x}", self.heap.addresses().of(id))),
        };
        if singleton { format!("singleton class {name}") } else { format!("{kind} {name}") }
    }

    /// The label of the edge at this position of the graph's targets.
    pub fn label(&self, edge: usize) -> Label {
        self.labels.get(edge).map_or(Label::None, |&label| Packed(label).label())
    }

    /// The same as a person would write it: `@user`, `["user:42"]`, `[3]`; empty without a name. `before` is the target
    /// of the previous edge.
    pub fn label_text(&self, edge: usize, before: Option<u32>) -> io::Result<Cow<'h, str>> {
        match (self.label(edge), before) {
            (Label::Entry, Some(key)) => Ok(Cow::Owned(self.key(key)?)),
            (label, _) => Ok(self.text_of(label)),
        }
    }

    /// A label as a person would write it, as far as it does not depend on other edges.
    pub fn text_of(&self, label: Label) -> Cow<'h, str> {
        let name = |name| self.heap.name(name);
        match label {
            Label::None | Label::Entry => Cow::Borrowed(""),
            Label::Index(index) => Cow::Owned(format!("[{index}]")),
            Label::Key => Cow::Borrowed("key"),
            Label::Under(key) => Cow::Owned(format!("[{}]", name(key))),
            Label::Ivar(id)
            | Label::ClassVariable(id)
            | Label::Constant(id)
            | Label::Global(id)
            | Label::Role(id) => Cow::Borrowed(name(id)),
            Label::Member(id) => Cow::Owned(format!(".{}", name(id))),
            Label::Local(id) => Cow::Owned(format!("local {}", name(id))),
            Label::Method(id) => Cow::Owned(format!("#{}", name(id))),
        }
    }

    fn key(&self, key: u32) -> io::Result<String> {
        if self.kind(key) == Kind::STRING {
            if let Some(text) = self.any_text(key)?.as_ref().and_then(beginning) {
                return Ok(format!("[\"{}\"]", shown(&text)));
            }
        }
        Ok(format!("[{:#x}]", self.heap.addresses().of(key)))
    }
}

/// The beginning of a text, with an ellipsis if there is more; invalid bytes become U+FFFD.
pub(super) fn beginning(stored: &Stored) -> Option<String> {
    let bytes = stored.bytes()?;
    // One character more than is shown, to detect that there is more.
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(4 * (SHOWN + 1))]);
    let mut text = shortened(&text, SHOWN).into_owned();
    if stored.length > bytes.len() as u64 && !text.ends_with('…') {
        text.push('…');
    }
    Some(text)
}

/// At most `most` characters of a text, the last of them an ellipsis if there are more.
pub(super) fn shortened(text: &str, most: usize) -> Cow<'_, str> {
    if text.len() <= most {
        return Cow::Borrowed(text);
    }
    match text.char_indices().nth(most) {
        None => Cow::Borrowed(text),
        Some(_) => {
            let end = text.char_indices().nth(most - 1).map_or(0, |(index, _)| index);
            Cow::Owned(format!("{}…", &text[..end]))
        }
    }
}

/// A text on one line with visible characters and limited length.
pub(super) fn shown(text: &str) -> Cow<'_, str> {
    let text = shortened(text, 2 * SHOWN);
    if !text.chars().any(is_hidden) {
        return text;
    }
    let mut visible = String::with_capacity(text.len() + 8);
    for character in text.chars() {
        match character {
            '\n' => visible.push_str("\\n"),
            '\t' => visible.push_str("\\t"),
            '\r' => visible.push_str("\\r"),
            _ if is_hidden(character) => {
                write!(visible, "\\x{:02x}", u32::from(character)).expect("a string takes all");
            }
            _ => visible.push(character),
        }
    }
    Cow::Owned(visible)
}

/// Control characters, line ends, bidirectional marks and noncharacters.
fn is_hidden(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
        || u32::from(character) & 0xfffe == 0xfffe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shortens_by_characters() {
        assert_eq!(shortened("äöü", 3), "äöü");
        assert_eq!(shortened("äöüx", 3), "äö…");
        assert_eq!(shortened("", 3), "");
    }

    #[test]
    fn shows_what_cannot_be_seen() {
        assert_eq!(shown("a\nb\0\u{202e}\u{ffff}é"), "a\\nb\\x00\\x202e\\xffffé");
        assert_eq!(shown(&"x".repeat(1 << 20)).chars().count(), 128);
    }
}
