//! Values written by the heap_dump gem. They are ambiguous: a number may be an Integer or an id, a text may be a Symbol or a
//! short String.

use crate::read::strings::Names;
use crate::read::tokens::Token;
use crate::read::window::Window;
use crate::read::{Fallible, Stop};
use crate::record::{Tables, Value};

/// Smaller numbers are not ids: no heap starts there.
const LEAST: i64 = 0x1_0000;

/// The address of an id, which is twice the id; `None` if the number cannot be an id. Objects are aligned to eight bytes.
pub(super) fn address(id: i64) -> Option<u64> {
    (id >= LEAST && id % 4 == 0).then(|| 2 * id as u64)
}

/// A value, converted from its meaning in a dump written by memprof.
pub(super) fn value(value: Value, tables: &mut Tables) -> Value {
    match value {
        Value::Int(number) => address(number).map_or(value, Value::Address),
        Value::Name(name) if tables.name(name) == "(undef)" => Value::Undef,
        // These were plain texts.
        Value::Symbol(name) => {
            let text = format!(":{}", tables.name(name));
            Value::Name(tables.intern(&text))
        }
        Value::Address(address) => Value::Name(tables.intern(&format!("{address:#x}"))),
        _ => value,
    }
}

/// The key of an entry, from its text.
pub(super) fn key(text: &[u8], tables: &mut Tables, names: &mut Names) -> Value {
    if text == b"___null_key___" {
        return Value::Nil;
    }
    let id = text.strip_prefix(b"__id_");
    let id = id.and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok());
    match id.and_then(address) {
        Some(address) => Value::Address(address),
        None => Value::Name(names.intern(tables, text)),
    }
}

impl Window<'_> {
    /// Skips a value and calls `each` with every integer in it.
    pub fn numbers(&mut self, mut each: impl FnMut(i64)) -> Fallible<()> {
        self.walk_value(|token| {
            if let Token::Scalar(text) = token {
                let number = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok());
                number.into_iter().for_each(&mut each);
            }
        })
    }

    /// An id.
    pub fn id(&mut self) -> Fallible<u64> {
        if self.byte() == b'"' {
            return self.address_or_none();
        }
        let mut found = None;
        self.numbers(|number| found = found.or(u64::try_from(number).ok()))?;
        let id = found.unwrap_or(0);
        id.checked_mul(2).ok_or(Stop::Broken)
    }
}
