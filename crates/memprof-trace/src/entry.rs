//! A traced request, job or block: its name and its costs.
//!
//! Files of memprof 0.3.8 and later count in whole milliseconds, older ones in seconds. `start` tells them apart: it is in
//! milliseconds or microseconds since the epoch, and a value below [`YOUNGEST`] can't be microseconds, unless the request is
//! from 1973.

use std::borrow::Cow;

use crate::allocations::Allocation;
use crate::line::Line;
use crate::number::Number;
use crate::statements::Statement;
use crate::value::Value;

const YOUNGEST: f64 = 1e14;
/// Microseconds from the epoch to the end of the year 9999.
const LATEST: f64 = 253_402_300_800e6;
/// Costs can't be larger.
const LARGEST: f64 = 1e18;

/// A line with its costs.
pub struct Entry<'a> {
    line: Line<'a>,
    /// Costs by kind.
    pub costs: Vec<(Cow<'a, str>, Number)>,
    /// Microseconds since the epoch.
    pub start: Option<i64>,
    /// Statements from the tracer `sql`.
    pub statements: Vec<Statement>,
    /// Lines from the tracer `objects`.
    pub allocations: Vec<Allocation>,
}

impl<'a> Entry<'a> {
    /// The entry of a line; `None` if it has numbers impossible for a request.
    pub fn of(mut line: Line<'a>) -> Option<Entry<'a>> {
        let start = match line.start {
            Some(start) => Some(microseconds(start)?),
            None => None,
        };
        let (mut statements, mut allocations) = (Vec::new(), Vec::new());
        for (name, tracer) in &mut line.tracers {
            match &**name {
                "sql" => statements = std::mem::take(&mut tracer.statements),
                "objects" => allocations = std::mem::take(&mut tracer.allocations),
                _ => {}
            }
        }
        let costs = costs(&mut line);
        let possible = |number: &Number| number.float().abs() <= LARGEST;
        costs.iter().all(|(_, number)| possible(number)).then_some(Entry {
            line,
            costs,
            start,
            statements,
            allocations,
        })
    }

    /// The class of a job, or controller and action, or otherwise method and path without ids.
    pub fn action(&self) -> String {
        if let Some(class) = &self.line.job.class {
            return class.clone();
        }
        match &self.line.rails.controller {
            Some(controller) => {
                let action = self.line.rails.action.as_deref().unwrap_or_default();
                format!("{controller}#{action}")
            }
            None => without_ids(self.path()),
        }
    }

    /// Method and path, or the class of a job.
    pub fn path(&self) -> String {
        if let Some(class) = &self.line.job.class {
            return class.clone();
        }
        let request = &self.line.request;
        let path = request.path.as_ref();
        let path = path.or(request.request_path.as_ref()).or(request.uri.as_ref());
        let Some(path) = path else {
            return self.line.command.clone().unwrap_or_else(|| "block".to_owned());
        };
        let path = path.split('?').next().unwrap_or_default();
        match &request.method {
            Some(method) => format!("{method} {path}"),
            None => path.to_owned(),
        }
    }

    /// The response code.
    pub fn status(&self) -> String {
        match &self.line.response.code {
            Some(code) => code.clone().unwrap_or_default(),
            None => "none".to_owned(),
        }
    }

    /// The class of the exception, with the underlying error code of the database: a class such as Mysql2::Error covers many
    /// errors.
    pub fn exception(&self) -> String {
        let Some(class) = &self.line.exception else {
            return "none".to_owned();
        };
        let code = &self.line.exception_code;
        match (&code.error_number, &code.sqlstate) {
            (Some(number), _) => format!("{class} ({number})"),
            (None, Some(state)) => format!("{class} ({state})"),
            (None, None) => class.clone(),
        }
    }
}

/// `/orders/17` becomes `/orders/:id`.
fn without_ids(path: String) -> String {
    let mut parts = path.split('/');
    let mut grouped = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (stem, ending) = match part.split_once('.') {
            Some((stem, ending)) if is_format(ending) => (stem, &part[stem.len()..]),
            _ => (part, ""),
        };
        grouped.push('/');
        grouped.push_str(if is_id(stem) { ":id" } else { stem });
        grouped.push_str(ending);
    }
    grouped
}

fn is_format(ending: &str) -> bool {
    let letters = ending.strip_suffix(|last: char| last.is_ascii_digit());
    let letters = letters.unwrap_or(ending);
    !letters.is_empty() && letters.bytes().all(|byte| byte.is_ascii_alphabetic())
}

/// A number, a UUID, or at least 8 hexadecimal digits including a decimal one.
fn is_id(part: &str) -> bool {
    let bytes = part.as_bytes();
    let hexadecimal = |bytes: &[u8]| bytes.iter().all(u8::is_ascii_hexdigit);
    if hexadecimal(bytes) && bytes.iter().any(u8::is_ascii_digit) {
        return bytes.len() >= 8 || bytes.iter().all(u8::is_ascii_digit);
    }
    let sizes = part.split('-').map(str::len);
    sizes.eq([8, 4, 4, 4, 12]) && part.split('-').all(|group| hexadecimal(group.as_bytes()))
}

fn microseconds(start: Number) -> Option<i64> {
    let whole = start.float().trunc();
    let unit = if start.float() < YOUNGEST { 1000.0 } else { 1.0 };
    ((whole * unit).abs() < LATEST).then(|| match start {
        Number::Int(value) => value * unit as i64,
        Number::Float(_) => whole as i64 * unit as i64,
    })
}

fn in_milliseconds(line: &Line<'_>) -> bool {
    if let Some(start) = line.start {
        return start.float() < YOUNGEST;
    }
    let gc = || {
        let gc = line.tracers.iter().find(|(name, _)| name == "gc");
        gc.and_then(|(_, tracer)| tracer.time)
    };
    let time = match &line.time {
        None | Some(Value::Null | Value::False) => gc(),
        Some(value) => value.number(),
    };
    matches!(time, Some(Number::Int(time)) if time > 0)
}

fn costs<'a>(line: &mut Line<'a>) -> Vec<(Cow<'a, str>, Number)> {
    let old = in_milliseconds(line);
    let time = line.time.as_ref().and_then(Value::number);
    let mut costs = Costs(Vec::with_capacity(2 * line.tracers.len() + 2));
    costs.set("time", time.map_or(Number::Int(0), |time| time.seconds(old)));
    for (name, tracer) in line.tracers.drain(..) {
        match &*name {
            "objects" => {
                costs.set("objects", tracer.created);
                costs.set("object_bytes", tracer.bytes);
            }
            "memory" => {
                let (bytes, calls) = tracer.memory();
                costs.set("memory", bytes);
                costs.set("memory_calls", calls);
            }
            "resources" => {
                let both = plus(tracer.utime.seconds(old), tracer.stime.seconds(old));
                costs.set("cpu", both);
            }
            "threads" => {
                costs.set("gvl_wait", tracer.gvl_wait_time.seconds(old));
                costs.set("gvl_waits", tracer.gvl_waits);
            }
            _ => {
                let (calls, time) = tracer.calls_and_time(old);
                let calls_kind = calls_kind(&name);
                costs.set(name, time);
                costs.set(calls_kind, calls);
            }
        }
    }
    costs.0
}

fn calls_kind<'a>(tracer: &str) -> Cow<'a, str> {
    Cow::Borrowed(match tracer {
        "gc" => "gc_calls",
        "fd" => "fd_calls",
        "dns" => "dns_calls",
        "mysql" => "mysql_calls",
        "postgres" => "postgres_calls",
        "sqlite" => "sqlite_calls",
        "memcache" => "memcache_calls",
        "redis" => "redis_calls",
        "http" => "http_calls",
        _ => return Cow::Owned(format!("{tracer}_calls")),
    })
}

fn plus(one: Number, other: Number) -> Number {
    match (one, other) {
        (Number::Int(one), Number::Int(other)) => {
            one.checked_add(other).map_or(Number::Float(one as f64 + other as f64), Number::Int)
        }
        _ => Number::Float(one.float() + other.float()),
    }
}

struct Costs<'a>(Vec<(Cow<'a, str>, Number)>);

impl<'a> Costs<'a> {
    fn set(&mut self, kind: impl Into<Cow<'a, str>>, cost: Number) {
        let kind = kind.into();
        match self.0.iter_mut().find(|(known, _)| *known == kind) {
            Some(known) => known.1 = cost,
            None => self.0.push((kind, cost)),
        }
    }
}
