//! A line of JSON as keys and values that are looked at only when asked for.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::super::record::{Tables, Value};
use super::{Fallible, Stop};

/// A key with its value.
pub(super) type Pair<'a> = (Cow<'a, str>, &'a RawValue);

/// One JSON object. Values have been checked to be JSON.
pub(super) struct Object<'a> {
    pairs: Vec<Pair<'a>>,
}

/// A string without copying it if it has no escapes.
#[derive(serde::Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'a> Object<'a> {
    pub fn new(json: &'a str) -> Fallible<Object<'a>> {
        let mut pairs = Vec::new();
        each_pair(json, |key, value| {
            pairs.push((key, value));
            Ok(())
        })?;
        Ok(Object { pairs })
    }

    pub fn pairs(&self) -> &[Pair<'a>] {
        &self.pairs
    }

    #[inline]
    pub fn get(&self, key: &str) -> Option<&'a str> {
        let mut pairs = self.pairs.iter();
        // Most keys differ in length or in their first letter; to compare all of them is a call.
        let ends = |key: &str| (key.len(), key.as_bytes().first().copied());
        let sought = ends(key);
        let pair = pairs.find(|(name, _)| ends(name) == sought && name == key);
        pair.map(|(_, value)| value.get())
    }

    pub fn has(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    pub fn is_true(&self, key: &str) -> bool {
        self.get(key) == Some("true")
    }

    /// A string; `None` if there is none, or `null`.
    pub fn text(&self, key: &str) -> Fallible<Option<Cow<'a, str>>> {
        match self.get(key) {
            None | Some("null") => Ok(None),
            Some(json) => text(json).map(Some),
        }
    }

    pub fn number<T: std::str::FromStr>(&self, key: &str) -> Fallible<Option<T>> {
        match self.get(key) {
            None | Some("null") => Ok(None),
            Some(json) => json.parse().map(Some).map_err(|_| Stop::Broken),
        }
    }

    /// `"0x..."`; `None` if there is none, or something else.
    pub fn address(&self, key: &str) -> Option<u64> {
        self.get(key).and_then(address)
    }
}

/// The contents of a JSON string.
pub(super) fn text(json: &str) -> Fallible<Cow<'_, str>> {
    if let Some(inside) = json
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'))
    {
        if !inside.contains('\\') {
            return Ok(Cow::Borrowed(inside));
        }
    }
    let text: Text<'_> = serde_json::from_str(json).map_err(|_| Stop::Broken)?;
    Ok(text.0)
}

/// The address that a JSON string is.
pub(super) fn address(json: &str) -> Option<u64> {
    hex(json.strip_prefix('"')?.strip_suffix('"')?)
}

/// The address that a text is.
pub(super) fn hex(text: &str) -> Option<u64> {
    let digits = text.strip_prefix("0x")?;
    let signed = digits.starts_with(['+', '-']);
    u64::from_str_radix(digits, 16).ok().filter(|_| !signed)
}

/// A value as memprof writes it inside a container.
pub(super) fn value(tables: &mut Tables, json: &str) -> Fallible<Value> {
    Ok(match json.as_bytes().first() {
        Some(b'n') => Value::Nil,
        Some(b't') => Value::True,
        Some(b'f') => Value::False,
        Some(b'"') => {
            if let Some(address) = address(json) {
                return Ok(Value::Address(address));
            }
            let text = text(json)?;
            match text.strip_prefix(':') {
                Some(name) => Value::Symbol(tables.intern(name)),
                None => float_name(&text).unwrap_or_else(|| Value::Name(tables.intern(&text))),
            }
        }
        Some(b'{' | b'[') => Value::Json(tables.intern(json)),
        _ => match json.parse() {
            Ok(number) => Value::Int(number),
            Err(_) => Value::Float(serde_json::from_str(json).map_err(|_| Stop::Broken)?),
        },
    })
}

fn float_name(text: &str) -> Option<Value> {
    Some(Value::Float(match text {
        "NaN" => f64::NAN,
        "Infinity" => f64::INFINITY,
        "-Infinity" => f64::NEG_INFINITY,
        _ => return None,
    }))
}

/// Calls `each` with every element of a list.
pub(super) fn each_element<'a>(
    json: &'a str,
    each: impl FnMut(&'a RawValue) -> Fallible<()>,
) -> Fallible<()> {
    let mut visitor = Each { each, stop: None };
    let mut deserializer = serde_json::Deserializer::from_str(json);
    let result = deserializer.deserialize_seq(&mut visitor);
    let Each { stop, .. } = visitor;
    outcome(stop, result.and_then(|()| deserializer.end()))
}

/// Calls `each` with every key and value of an object.
pub(super) fn each_pair<'a>(
    json: &'a str,
    mut each: impl FnMut(Cow<'a, str>, &'a RawValue) -> Fallible<()>,
) -> Fallible<()> {
    let mut visitor = Each {
        each: |(key, value): Pair<'a>| each(key, value),
        stop: None,
    };
    let mut deserializer = serde_json::Deserializer::from_str(json);
    let result = deserializer.deserialize_map(PairVisitor(&mut visitor));
    let Each { stop, .. } = visitor;
    outcome(stop, result.and_then(|()| deserializer.end()))
}

fn outcome(stop: Option<Stop>, result: serde_json::Result<()>) -> Fallible<()> {
    match (stop, result) {
        (Some(stop), _) => Err(stop),
        (None, Err(_)) => Err(Stop::Broken),
        (None, Ok(())) => Ok(()),
    }
}

/// A closure as serde wants it.
struct Each<F> {
    each: F,
    stop: Option<Stop>,
}

struct PairVisitor<'v, F>(&'v mut Each<F>);

impl<'de, F: FnMut(&'de RawValue) -> Fallible<()>> Visitor<'de> for &mut Each<F> {
    type Value = ();

    fn expecting(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
        text.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while let Some(value) = list.next_element()? {
            if let Err(stop) = (self.each)(value) {
                self.stop = Some(stop);
                return Err(A::Error::custom("stopped"));
            }
        }
        Ok(())
    }
}

impl<'de, F: FnMut(Pair<'de>) -> Fallible<()>> Visitor<'de> for PairVisitor<'_, F> {
    type Value = ();

    fn expecting(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
        text.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some((Text(key), value)) = map.next_entry()? {
            if let Err(stop) = (self.0.each)((key, value)) {
                self.0.stop = Some(stop);
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                return Err(A::Error::custom("stopped"));
            }
        }
        Ok(())
    }
}
