//! All requests of a file, for pages that query them repeatedly: their costs and names are in memory, their lines in the file.

use std::io::{self, Read};
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::entry::Entry;
use crate::kinds::Kinds;
use crate::line::Line;
use crate::number::Number;
use crate::requests::{self, Place};
use crate::statements::Numbers;
use crate::summary::By;

/// Requests in the order of their lines.
#[derive(Default)]
pub struct Log {
    pub(crate) requests: Vec<Request>,
    pub(crate) kinds: Kinds,
    /// Kinds and costs of all requests, concatenated.
    cost_kinds: Vec<u16>,
    costs: Vec<Number>,
    /// SQL statements of all requests, concatenated.
    statements: Vec<Sent>,
    /// Allocating lines of all requests, concatenated.
    allocations: Vec<Allocated>,
    names: Names,
    pub(crate) broken: u64,
    pub(crate) first_broken: Option<u64>,
}

/// One request.
pub(crate) struct Request {
    pub place: Place,
    /// Microseconds since the epoch.
    pub start: Option<i64>,
    action: u32,
    path: u32,
    status: u32,
    exception: u32,
    first_cost: usize,
    first_statement: usize,
    first_allocation: usize,
}

/// A statement sent by a request; text and caller are numbers of names.
#[derive(Clone, Copy)]
pub(crate) struct Sent {
    pub sql: u32,
    pub caller: Option<u32>,
    pub numbers: Numbers,
}

/// A line that allocated objects in a request; location and class are numbers of names.
#[derive(Clone, Copy)]
pub(crate) struct Allocated {
    pub location: u32,
    pub class: u32,
    pub objects: Number,
    pub bytes: Number,
}

impl Log {
    /// Reads a file to its end.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn read(input: impl Read) -> io::Result<Log> {
        let mut log = Log::default();
        requests::each(
            input,
            |_| (),
            |place, entry| {
                if !entry.is_some_and(|entry| log.take(place, &entry)) {
                    log.broken += 1;
                    log.first_broken.get_or_insert(place.line);
                }
                Ok(())
            },
        )?;
        log.names.by_text = FxHashMap::default();
        Ok(log)
    }

    /// Position of a request's line in the file; `None` if that line is not a request.
    #[must_use]
    pub fn place(&self, line: u64) -> Option<(u64, usize)> {
        let place = self.requests[self.find(line)?].place;
        Some((place.offset, usize::try_from(place.length).ok()?))
    }

    /// Whether the text is the line as it was read: the file may have been written to since.
    #[must_use]
    pub fn has(&self, line: u64, text: &str) -> bool {
        let Some(entry) = Line::read(text).and_then(Entry::of) else {
            return false;
        };
        self.find(line).is_some_and(|request| {
            let known = self.costs(request);
            let costs = entry.costs.iter().map(|(kind, cost)| (&**kind, *cost));
            self.requests[request].start == entry.start && known.eq(costs)
        })
    }

    /// Memory size in bytes.
    #[must_use]
    pub fn memsize(&self) -> usize {
        self.requests.capacity() * size_of::<Request>()
            + self.costs.capacity() * size_of::<Number>()
            + self.cost_kinds.capacity() * size_of::<u16>()
            + self.statements.capacity() * size_of::<Sent>()
            + self.allocations.capacity() * size_of::<Allocated>()
            + self.names.bytes
    }

    /// Index of the request on a line.
    pub(crate) fn find(&self, line: u64) -> Option<usize> {
        let by_line = |request: &Request| request.place.line;
        self.requests.binary_search_by_key(&line, by_line).ok()
    }

    /// Costs of a request, by kind.
    pub(crate) fn costs(&self, request: usize) -> impl Iterator<Item = (&str, Number)> {
        let costs = self.numbered_costs(request);
        costs.map(|(kind, cost)| (self.kinds.name(kind), cost))
    }

    /// The same, with kinds by number.
    pub(crate) fn numbered_costs(&self, request: usize) -> impl Iterator<Item = (u32, Number)> {
        let next = self.requests.get(request + 1);
        let end = next.map_or(self.costs.len(), |next| next.first_cost);
        let range = self.requests[request].first_cost..end;
        let kinds = self.cost_kinds[range.clone()].iter();
        kinds.map(|&kind| u32::from(kind)).zip(self.costs[range].iter().copied())
    }

    /// Cost of a request for one kind.
    pub(crate) fn cost(&self, request: usize, kind: Option<u32>) -> Number {
        let mut costs = self.numbered_costs(request);
        let found = costs.find(|&(one, _)| Some(one) == kind);
        found.map_or(Number::Int(0), |(_, cost)| cost)
    }

    pub(crate) fn name(&self, request: usize, by: By) -> &str {
        self.text(self.group(request, by))
    }

    /// A name by its number.
    pub(crate) fn text(&self, number: u32) -> &str {
        &self.names.texts[number as usize]
    }

    /// The SQL statements of a request.
    pub(crate) fn statements(&self, request: usize) -> &[Sent] {
        let next = self.requests.get(request + 1);
        let end = next.map_or(self.statements.len(), |next| next.first_statement);
        &self.statements[self.requests[request].first_statement..end]
    }

    /// The allocating lines of a request.
    pub(crate) fn allocations(&self, request: usize) -> &[Allocated] {
        let next = self.requests.get(request + 1);
        let end = next.map_or(self.allocations.len(), |next| next.first_allocation);
        &self.allocations[self.requests[request].first_allocation..end]
    }

    /// The number of the request's group name.
    pub(crate) fn group(&self, request: usize, by: By) -> u32 {
        let request = &self.requests[request];
        match by {
            By::Action => request.action,
            By::Path => request.path,
            By::Status => request.status,
            By::Exception => request.exception,
        }
    }

    /// False if there would be too many kinds of costs.
    fn take(&mut self, place: Place, entry: &Entry<'_>) -> bool {
        let known = |kind: &str| self.kinds.find(kind).is_some();
        let new = entry.costs.iter().filter(|(kind, _)| !known(kind)).count();
        if !self.kinds.has_room(new) {
            return false;
        }
        self.requests.push(Request {
            place,
            start: entry.start,
            action: self.names.number(entry.action()),
            path: self.names.number(entry.path()),
            status: self.names.number(entry.status()),
            exception: self.names.number(entry.exception()),
            first_cost: self.costs.len(),
            first_statement: self.statements.len(),
            first_allocation: self.allocations.len(),
        });
        for line in &entry.allocations {
            self.allocations.push(Allocated {
                location: self.names.number(line.location.clone()),
                class: self.names.number(line.class.clone()),
                objects: line.objects,
                bytes: line.bytes,
            });
        }
        for statement in &entry.statements {
            let caller = statement.caller.clone();
            self.statements.push(Sent {
                sql: self.names.number(statement.sql.clone()),
                caller: caller.map(|caller| self.names.number(caller)),
                numbers: statement.numbers,
            });
        }
        for (kind, cost) in &entry.costs {
            self.cost_kinds.push(self.kinds.number(kind) as u16);
            self.costs.push(*cost);
        }
        true
    }
}

/// Names, each once.
#[derive(Default)]
struct Names {
    texts: Vec<Arc<str>>,
    by_text: FxHashMap<Arc<str>, u32>,
    bytes: usize,
}

impl Names {
    fn number(&mut self, text: String) -> u32 {
        if let Some(&number) = self.by_text.get(text.as_str()) {
            return number;
        }
        let number = self.texts.len() as u32;
        self.bytes += text.len() + 4 * size_of::<usize>();
        let text: Arc<str> = text.into();
        self.texts.push(Arc::clone(&text));
        self.by_text.insert(text, number);
        number
    }
}
