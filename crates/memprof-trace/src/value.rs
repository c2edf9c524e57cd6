//! JSON values of which only a number or a text is needed.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::number::Number;

/// A map key, borrowed from the line if it has no escapes.
pub struct Name<'de>(pub Cow<'de, str>);

impl<'de> Deserialize<'de> for Name<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl<'de> Visitor<'de> for Text {
            type Value = Name<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Name<'de>, E> {
                Ok(Name(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<Name<'de>, E> {
                Ok(Name(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_str(Text)
    }
}

/// A scalar value, or an ignored nested one.
#[derive(Debug, PartialEq)]
pub enum Value {
    Null,
    False,
    True,
    Number(Number),
    Text(String),
    /// A list or a map.
    Nested,
}

impl Value {
    pub fn number(&self) -> Option<Number> {
        match self {
            Value::Number(number) => Some(*number),
            _ => None,
        }
    }

    /// The text as in Ruby; `None` if Ruby treats the value as absent.
    pub fn text(self) -> Option<String> {
        match self {
            Value::Null | Value::False | Value::Nested => None,
            Value::True => Some("true".to_owned()),
            Value::Number(Number::Int(value)) => Some(value.to_string()),
            Value::Number(Number::Float(value)) => Some(format!("{value:?}")),
            Value::Text(text) => Some(text),
        }
    }
}

/// Reads a value, and the contents of a map: `M` selects what is needed of it.
pub trait Maps<'de>: Sized {
    fn of_map<A: MapAccess<'de>>(map: A) -> Result<Self, A::Error>;
    fn of_value(value: Value) -> Self;

    /// By default, the contents of a list are ignored.
    fn of_list<A: SeqAccess<'de>>(mut list: A) -> Result<Self, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Self::of_value(Value::Nested))
    }
}

impl<'de> Maps<'de> for Value {
    fn of_map<A: MapAccess<'de>>(mut map: A) -> Result<Self, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Value::Nested)
    }

    fn of_value(value: Value) -> Self {
        value
    }
}

/// A value read by way of [`Maps`].
pub struct Read<M>(pub M);

impl<'de, M: Maps<'de>> Deserialize<'de> for Read<M> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Any(std::marker::PhantomData))
    }
}

struct Any<M>(std::marker::PhantomData<M>);

impl<'de, M: Maps<'de>> Visitor<'de> for Any<M> {
    type Value = Read<M>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Read<M>, E> {
        Ok(Read(M::of_value(Value::Null)))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Read<M>, E> {
        let value = if value { Value::True } else { Value::False };
        Ok(Read(M::of_value(value)))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Read<M>, E> {
        Ok(Read(M::of_value(Value::Number(Number::Int(value)))))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Read<M>, E> {
        let number = i64::try_from(value).map_or(Number::Float(value as f64), Number::Int);
        Ok(Read(M::of_value(Value::Number(number))))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Read<M>, E> {
        Ok(Read(M::of_value(Value::Number(Number::Float(value)))))
    }

    fn visit_str<E>(self, text: &str) -> Result<Read<M>, E> {
        Ok(Read(M::of_value(Value::Text(text.to_owned()))))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Read<M>, A::Error> {
        M::of_list(list).map(Read)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Read<M>, A::Error> {
        M::of_map(map).map(Read)
    }
}
