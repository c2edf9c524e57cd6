//! Facts about single objects without a column, such as the line that defines a proc.

use super::NONE;
use super::builder::Fact;
use memprof_dump::record::{NameId, Value};

/// Facts in order of their objects.
#[derive(Default)]
pub struct Facts {
    /// Object, name, kind of value: three numbers each.
    pub(super) keys: Vec<[u32; 3]>,
    pub(super) values: Vec<u64>,
}

const KINDS: u32 = 9;

fn packed(value: Value) -> (u32, u64) {
    match value {
        Value::Nil => (0, 0),
        Value::True => (1, 0),
        Value::False => (2, 0),
        Value::Undef => (3, 0),
        Value::Int(number) => (4, number as u64),
        Value::Float(number) => (5, number.to_bits()),
        Value::Symbol(name) => (6, u64::from(name.0)),
        Value::Address(address) => (7, address),
        Value::Name(name) => (8, u64::from(name.0)),
        Value::Json(name) => (KINDS, u64::from(name.0)),
    }
}

fn unpacked(kind: u32, value: u64) -> Value {
    match kind {
        0 => Value::Nil,
        1 => Value::True,
        2 => Value::False,
        4 => Value::Int(value as i64),
        5 => Value::Float(f64::from_bits(value)),
        6 => Value::Symbol(NameId(value as u32)),
        7 => Value::Address(value),
        8 => Value::Name(NameId(value as u32)),
        KINDS => Value::Json(NameId(value as u32)),
        _ => Value::Undef,
    }
}

impl Facts {
    /// Facts of numbered objects, in order.
    pub(super) fn new(facts: Vec<Fact>) -> Facts {
        let mut all = Facts::default();
        for fact in facts.into_iter().filter(|fact| fact.object != NONE) {
            let (kind, value) = packed(fact.value);
            all.keys.push([fact.object, fact.name.0, kind]);
            all.values.push(value);
        }
        all
    }

    /// Name and value of each fact about an object.
    pub fn of(&self, object: u32) -> impl Iterator<Item = (NameId, Value)> {
        let begin = self.keys.partition_point(|key| key[0] < object);
        let keys = self.keys[begin..].iter().zip(self.values.get(begin..).unwrap_or(&[]));
        keys.take_while(move |(key, _)| key[0] == object)
            .map(|(key, &value)| (NameId(key[1]), unpacked(key[2], value)))
    }

    /// Each object with this fact, and its value.
    pub fn named(&self, name: NameId) -> impl Iterator<Item = (u32, Value)> {
        let facts = self.keys.iter().zip(&self.values);
        facts
            .filter(move |(key, _)| key[1] == name.0)
            .map(|(key, &value)| (key[0], unpacked(key[2], value)))
    }

    /// One fact about an object.
    pub fn get(&self, object: u32, name: NameId) -> Option<Value> {
        self.of(object).find(|(known, _)| *known == name).map(|(_, value)| value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gives_back_the_facts_of_each_object() {
        let values = [
            Value::Nil,
            Value::True,
            Value::False,
            Value::Undef,
            Value::Int(-5),
            Value::Float(1.5),
            Value::Symbol(NameId(3)),
            Value::Address(u64::MAX),
            Value::Name(NameId(4)),
            Value::Json(NameId(5)),
        ];
        let facts = values.iter().enumerate().map(|(index, &value)| Fact {
            object: index as u32 / 3,
            name: NameId(index as u32),
            value,
        });
        let facts = Facts::new(facts.collect());
        for (index, value) in values.into_iter().enumerate() {
            assert_eq!(facts.get(index as u32 / 3, NameId(index as u32)), Some(value));
        }
        assert_eq!(facts.of(3).count(), 1);
        assert_eq!(facts.get(9, NameId(0)), None);
    }
}
