//! One line: a traced request, or a traced block.

use std::borrow::Cow;

use serde::de::MapAccess;

use crate::number::Number;
use crate::tracer::{Item, Tracer};
use crate::value::{Maps, Name, Read, Value};

/// The tracers of a line, in order.
pub type Tracers<'a> = Vec<(Cow<'a, str>, Tracer)>;

/// Attributes of the request.
#[derive(Default)]
pub struct Texts {
    pub controller: Option<String>,
    pub action: Option<String>,
    /// Of a job.
    pub class: Option<String>,
    pub method: Option<String>,
    pub path: Option<String>,
    pub request_path: Option<String>,
    pub uri: Option<String>,
    /// The response code; `Some(None)` if it is explicitly absent.
    pub code: Option<Option<String>>,
    /// A database's own error code.
    pub error_number: Option<String>,
    pub sqlstate: Option<String>,
}

impl Texts {
    fn take(&mut self, key: &str, value: Value) {
        match key {
            "controller" => self.controller = value.text(),
            "action" => self.action = value.text(),
            "class" => self.class = value.text(),
            "REQUEST_METHOD" => self.method = value.text(),
            "PATH_INFO" => self.path = value.text(),
            "REQUEST_PATH" => self.request_path = value.text(),
            "REQUEST_URI" => self.uri = value.text(),
            "code" => self.code = Some(value.text()),
            "error_number" => self.error_number = value.text(),
            "sqlstate" => self.sqlstate = value.text(),
            _ => {}
        }
    }
}

/// A top-level value of a line.
enum Top {
    Map(Box<(Tracer, Texts)>),
    Value(Value),
}

impl<'de> Maps<'de> for Top {
    fn of_map<A: MapAccess<'de>>(mut map: A) -> Result<Self, A::Error> {
        let mut both: Box<(Tracer, Texts)> = Box::default();
        while let Some(Name(key)) = map.next_key()? {
            let Read(mut item) = map.next_value::<Read<Item>>()?;
            both.0.take(&key, &mut item);
            if let Item::Value(value) = item {
                both.1.take(&key, value);
            }
        }
        Ok(Top::Map(both))
    }

    fn of_value(value: Value) -> Self {
        Top::Value(value)
    }
}

/// The map of tracers, if it is one.
struct All<'a>(Option<Tracers<'a>>);

impl<'de> Maps<'de> for All<'de> {
    fn of_map<A: MapAccess<'de>>(mut map: A) -> Result<Self, A::Error> {
        let mut all = Vec::new();
        while let Some(Name(name)) = map.next_key()? {
            let Read(tracer) = map.next_value::<Read<Option<Tracer>>>()?;
            put(&mut all, name, tracer);
        }
        Ok(All(Some(all)))
    }

    fn of_value(_: Value) -> Self {
        All(None)
    }
}

/// Of two tracers with the same name, the last one wins, in the place of the first.
fn put<'a>(all: &mut Tracers<'a>, name: Cow<'a, str>, tracer: Option<Tracer>) {
    let place = all.iter().position(|(known, _)| *known == name);
    match (place, tracer) {
        (Some(place), Some(tracer)) => all[place].1 = tracer,
        (Some(place), None) => drop(all.remove(place)),
        (None, Some(tracer)) => all.push((name, tracer)),
        (None, None) => {}
    }
}

/// The contents of a line.
#[derive(Default)]
pub struct Line<'a> {
    pub tracers: Tracers<'a>,
    pub start: Option<Number>,
    pub time: Option<Value>,
    pub rails: Texts,
    pub job: Texts,
    pub request: Texts,
    pub response: Texts,
    /// The class of the exception, and its code.
    pub exception: Option<String>,
    pub exception_code: Texts,
    pub command: Option<String>,
}

impl Line<'_> {
    /// Reads a line; `None` if it is neither a request nor a report.
    pub fn read(text: &str) -> Option<Line<'_>> {
        let Read(line) = serde_json::from_str::<Read<Option<Line<'_>>>>(text).ok()?;
        line
    }
}

impl<'de> Maps<'de> for Option<Line<'de>> {
    fn of_map<A: MapAccess<'de>>(mut map: A) -> Result<Self, A::Error> {
        let mut line = Line::default();
        let mut tracers = None;
        let mut plain = true; // only maps so far
        let mut own = Vec::new(); // the report of a block has its tracers at the top level
        while let Some(Name(key)) = map.next_key()? {
            if key == "tracers" {
                tracers = Some(map.next_value::<Read<All<'de>>>()?.0.0);
                continue;
            }
            let Read(top) = map.next_value::<Read<Top>>()?;
            match top {
                Top::Map(both) => {
                    let (tracer, texts) = *both;
                    match &*key {
                        "rails" => line.rails = texts,
                        "job" => line.job = texts,
                        "request" => line.request = texts,
                        "response" => line.response = texts,
                        "exception_code" => line.exception_code = texts,
                        "time" => line.time = Some(Value::Nested),
                        _ => {}
                    }
                    put(&mut own, key, Some(tracer));
                }
                Top::Value(value) => {
                    plain = false;
                    match &*key {
                        "start" => line.start = value.number(),
                        "time" => line.time = Some(value),
                        "command" => line.command = value.text(),
                        "exception" => line.exception = value.text(),
                        _ => {}
                    }
                }
            }
        }
        line.tracers = match tracers {
            Some(Some(tracers)) => tracers,
            None if plain && !own.is_empty() => own,
            _ => return Ok(None),
        };
        Ok(Some(line))
    }

    fn of_value(_: Value) -> Self {
        None
    }
}
