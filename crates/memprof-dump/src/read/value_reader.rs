//! Values inside of containers, as written by memprof.

use super::super::record::{NameId, Tables, Value};
use super::strings::Names;
use super::window::{AHEAD, Window};
use super::word::Memory;
use super::{Fallible, Stop};

/// Reads values.
pub(super) struct Values {
    words: Memory<Value>,
    text: Vec<u8>,
}

impl Values {
    pub fn new() -> Values {
        Values { words: Memory::new(Value::Nil), text: Vec::new() }
    }

    /// The next value.
    #[inline]
    pub fn read(
        &mut self,
        window: &mut Window<'_>,
        tables: &mut Tables,
        names: &mut Names,
    ) -> Fallible<Value> {
        window.ensure()?;
        match window.byte() {
            b'"' => {
                if window.starts_with(b"\"0x") {
                    if let Ok(address) = window.address() {
                        return Ok(Value::Address(address));
                    }
                }
                self.string(window, tables, names)
            }
            b'{' | b'[' => json(window, tables, &mut self.text).map(Value::Json),
            b'n' => literal(window, "null", Value::Nil),
            b't' => literal(window, "true", Value::True),
            b'f' => literal(window, "false", Value::False),
            _ => number(window),
        }
    }

    fn string(
        &mut self,
        window: &mut Window<'_>,
        tables: &mut Tables,
        names: &mut Names,
    ) -> Fallible<Value> {
        let word = window.word();
        if let Some((word, length)) = word {
            if let Some(known) = self.words.get(word) {
                window.skip(length);
                return Ok(known);
            }
        }
        self.text.clear();
        window.string(&mut self.text)?;
        let value = match self.text.strip_prefix(b":") {
            Some(name) => Value::Symbol(names.intern(tables, name)),
            None => match not_finite(&self.text) {
                Some(number) => Value::Float(number),
                None => Value::Name(names.intern(tables, &self.text)),
            },
        };
        if let (Some((word, _)), false) = (word, self.text.contains(&0)) {
            self.words.set(word, value);
        }
        Ok(value)
    }
}

fn literal(window: &mut Window<'_>, text: &str, value: Value) -> Fallible<Value> {
    if !window.starts_with(text.as_bytes()) {
        return Err(Stop::Broken);
    }
    window.skip(text.len());
    Ok(value)
}

/// A Float without a JSON number.
pub(super) fn not_finite(text: &[u8]) -> Option<f64> {
    Some(match text {
        b"NaN" => f64::NAN,
        b"Infinity" => f64::INFINITY,
        b"-Infinity" => f64::NEG_INFINITY,
        _ => return None,
    })
}

/// A number: an Integer if it is a small enough integer.
fn number(window: &mut Window<'_>) -> Fallible<Value> {
    let is_part = |byte: &&u8| byte.is_ascii_digit() || b"-+.eE".contains(byte);
    let length = window.rest().iter().take_while(is_part).count();
    if length == 0 || length >= AHEAD {
        return Err(Stop::Broken);
    }
    let text = std::str::from_utf8(window.slice(0, length)).map_err(|_| Stop::Broken)?;
    let value = match text.parse() {
        Ok(number) => Value::Int(number),
        Err(_) => Value::Float(serde_json::from_str(text).map_err(|_| Stop::Broken)?),
    };
    window.skip(length);
    Ok(value)
}

/// A list or object as text, verified to be JSON.
fn json(window: &mut Window<'_>, tables: &mut Tables, text: &mut Vec<u8>) -> Fallible<NameId> {
    text.clear();
    window.copy_value(text)?;
    Ok(tables.intern(checked(text)?))
}

/// Text verified to be JSON.
pub(in super::super) fn checked(text: &[u8]) -> Fallible<&str> {
    let text = std::str::from_utf8(text).map_err(|_| Stop::Broken)?;
    match serde_json::from_str::<serde::de::IgnoredAny>(text) {
        Ok(_) => Ok(text),
        Err(_) => Err(Stop::Broken),
    }
}

impl Window<'_> {
    /// Appends a list or object verbatim.
    fn copy_value(&mut self, out: &mut Vec<u8>) -> Fallible<()> {
        let mut depth = 0_u64;
        let mut quoted = false;
        loop {
            self.ensure()?;
            let byte = self.byte();
            match byte {
                b'\n' => return Err(Stop::Broken),
                b'"' => quoted = !quoted,
                b'\\' => {
                    out.push(byte);
                    self.skip(1);
                    if self.byte() == b'\n' {
                        return Err(Stop::Broken);
                    }
                }
                b'{' | b'[' if !quoted => depth += 1,
                b'}' | b']' if !quoted => depth = depth.saturating_sub(1),
                _ => {}
            }
            out.push(self.byte());
            self.skip(1);
            if depth == 0 && !quoted {
                return Ok(());
            }
        }
    }
}
