//! The data of one tracer in a line: a map of numbers, and of such maps for each function or kind.

use serde::de::{MapAccess, SeqAccess};

use crate::allocations::Allocation;
use crate::listed::Listed;
use crate::number::{Number, Sum};
use crate::statements::Statement;
use crate::value::{Maps, Name, Read, Value};

/// A sum of times in both units, milliseconds and seconds: only the end of a line may tell which it is.
#[derive(Clone, Copy, Debug, Default)]
pub struct Times {
    milliseconds: Sum,
    seconds: Sum,
}

impl Times {
    fn add(&mut self, time: Number) {
        self.milliseconds.add(time.seconds(true));
        self.seconds.add(time);
    }

    pub fn total(&self, milliseconds: bool) -> Number {
        if milliseconds { self.milliseconds.total() } else { self.seconds.total() }
    }
}

/// The numbers of a tracer that costs are computed from; missing ones are 0.
#[derive(Debug, Default)]
pub struct Tracer {
    pub created: Number,
    pub bytes: Number,
    pub utime: Number,
    pub stime: Number,
    pub gvl_wait_time: Number,
    pub gvl_waits: Number,
    pub time: Option<Number>,
    pub statements: Vec<Statement>,
    pub allocations: Vec<Allocation>,
    calls: Option<Number>,
    queries: Option<Number>,
    parts: Parts,
}

/// Sums over the nested maps of a tracer.
#[derive(Clone, Copy, Debug, Default)]
struct Parts {
    times: Times,
    calls: Sum,
    calls_and_queries: Sum,
    requested: Sum,
}

/// The numbers of one function.
#[derive(Clone, Copy, Debug, Default)]
pub struct Part {
    time: Number,
    calls: Number,
    queries: Number,
    requested: Number,
}

impl Tracer {
    /// Calls and time, which a tracer counts itself or for each function.
    pub fn calls_and_time(&self, milliseconds: bool) -> (Number, Number) {
        if self.calls.is_none() && self.queries.is_none() {
            let parts = &self.parts;
            return (parts.calls_and_queries.total(), parts.times.total(milliseconds));
        }
        let own = [self.calls, self.queries];
        let calls: Sum = own.into_iter().map(Option::unwrap_or_default).collect();
        (calls.total(), self.time.unwrap_or_default().seconds(milliseconds))
    }

    /// Requested bytes, and number of requests.
    pub fn memory(&self) -> (Number, Number) {
        (self.parts.requested.total(), self.parts.calls.total())
    }

    /// Adds an entry of the map.
    pub fn take(&mut self, key: &str, item: &mut Item) {
        let number = match item {
            Item::Part(part) => return self.parts.add(part),
            Item::Value(value) => value.number(),
            Item::List(listed) => {
                match key {
                    "statements" => self.statements = std::mem::take(&mut listed.statements),
                    "lines" => self.allocations = std::mem::take(&mut listed.allocations),
                    _ => {}
                }
                None
            }
        };
        match key {
            "created" => self.created = number.unwrap_or_default(),
            "bytes" => self.bytes = number.unwrap_or_default(),
            "utime" => self.utime = number.unwrap_or_default(),
            "stime" => self.stime = number.unwrap_or_default(),
            "gvl_wait_time" => self.gvl_wait_time = number.unwrap_or_default(),
            "gvl_waits" => self.gvl_waits = number.unwrap_or_default(),
            "time" => self.time = number,
            "calls" => self.calls = number,
            "queries" => self.queries = number,
            _ => {}
        }
    }
}

impl Parts {
    fn add(&mut self, part: &Part) {
        self.times.add(part.time);
        self.calls.add(part.calls);
        let both: Sum = [part.calls, part.queries].into_iter().collect();
        self.calls_and_queries.add(both.total());
        self.requested.add(part.requested);
    }
}

/// An entry of a tracer's map.
pub enum Item {
    Part(Part),
    Value(Value),
    List(Listed),
}

impl<'de> Maps<'de> for Item {
    fn of_map<A: MapAccess<'de>>(mut map: A) -> Result<Self, A::Error> {
        let mut part = Part::default();
        while let Some(Name(key)) = map.next_key()? {
            let Read(value) = map.next_value::<Read<Value>>()?;
            let number = value.number().unwrap_or_default();
            match &*key {
                "time" => part.time = number,
                "calls" => part.calls = number,
                "queries" => part.queries = number,
                "requested" => part.requested = number,
                _ => {}
            }
        }
        Ok(Item::Part(part))
    }

    fn of_value(value: Value) -> Self {
        Item::Value(value)
    }

    fn of_list<A: SeqAccess<'de>>(list: A) -> Result<Self, A::Error> {
        Listed::of_list(list).map(Item::List)
    }
}

impl<'de> Maps<'de> for Option<Tracer> {
    fn of_map<A: MapAccess<'de>>(mut map: A) -> Result<Self, A::Error> {
        let mut tracer = Tracer::default();
        while let Some(Name(key)) = map.next_key()? {
            let Read(mut item) = map.next_value()?;
            tracer.take(&key, &mut item);
        }
        Ok(Some(tracer))
    }

    fn of_value(_: Value) -> Self {
        None
    }
}
