//! Lists in the results of a tracer: SQL statements, and allocating lines.

use serde::de::{MapAccess, SeqAccess};

use crate::allocations::Allocation;
use crate::statements::Statement;
use crate::value::{Maps, Name, Read, Value};

/// Maximum number of elements read from one list.
const MOST: usize = 1000;
/// Numbers can't be larger.
const LARGEST: f64 = 1e18;

/// The contents of a list. Other elements are skipped.
#[derive(Debug, Default)]
pub struct Listed {
    pub statements: Vec<Statement>,
    pub allocations: Vec<Allocation>,
}

impl Listed {
    /// Reads a list.
    pub fn of_list<'de, A: SeqAccess<'de>>(mut list: A) -> Result<Self, A::Error> {
        let mut listed = Listed::default();
        while let Some(Read(element)) = list.next_element::<Read<Element>>()? {
            match element {
                Element::Statement(statement) if listed.statements.len() < MOST => {
                    listed.statements.push(statement);
                }
                Element::Allocation(line) if listed.allocations.len() < MOST => {
                    listed.allocations.push(line);
                }
                _ => {}
            }
        }
        Ok(listed)
    }
}

enum Element {
    Statement(Statement),
    Allocation(Allocation),
    Other,
}

impl<'de> Maps<'de> for Element {
    fn of_map<A: MapAccess<'de>>(mut map: A) -> Result<Self, A::Error> {
        let (mut sql, mut location) = (None, None);
        let mut statement = Statement::default();
        let mut allocation = Allocation::default();
        let mut possible = true;
        while let Some(Name(key)) = map.next_key()? {
            let Read(value) = map.next_value::<Read<Value>>()?;
            let mut number = || {
                let number = value.number().unwrap_or_default();
                possible &= number.float().abs() <= LARGEST;
                number
            };
            match &*key {
                "queries" => statement.numbers.queries = number(),
                "time" => statement.numbers.time = number(),
                "slowest" => statement.numbers.slowest = number(),
                "n_plus_one" => statement.numbers.n_plus_one = value == Value::True,
                "sql" => sql = text(value),
                "caller" => statement.caller = text(value),
                "count" => allocation.objects = number(),
                "bytes" => allocation.bytes = number(),
                "location" => location = text(value),
                "class" => allocation.class = text(value).unwrap_or_default(),
                _ => {}
            }
        }
        Ok(match (sql, location) {
            _ if !possible => Element::Other,
            (Some(sql), _) => Element::Statement(Statement { sql, ..statement }),
            (None, Some(location)) => Element::Allocation(Allocation { location, ..allocation }),
            (None, None) => Element::Other,
        })
    }

    fn of_value(_: Value) -> Self {
        Element::Other
    }
}

fn text(value: Value) -> Option<String> {
    match value {
        Value::Text(text) => Some(text),
        _ => None,
    }
}
