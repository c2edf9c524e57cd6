//! The format of <https://github.com/google/pprof>: a compressed protocol buffer, see `proto/profile.proto` there.
//!
//! Value types have the names of Go's heap profiles (`alloc_objects`, `alloc_space`, `inuse_objects`, `inuse_space`), which
//! viewers know. The class of the objects is the label `class`: `pprof -tagleaf class` shows it as the innermost frame,
//! `-tagfocus class=String` selects one.

use std::io::{self, Write};

use super::{Ids, Value};
use crate::group::Names;
use crate::profile::Profile;
use crate::running_total;
use flate2::{Compression, GzBuilder};
use rustc_hash::FxHashMap;

/// Value types in the order of Go's heap profiles.
const TYPES: [(&str, &str, Value); 4] = [
    ("alloc_objects", "count", Value::AllocatedObjects),
    ("alloc_space", "bytes", Value::AllocatedBytes),
    ("inuse_objects", "count", Value::RetainedObjects),
    ("inuse_space", "bytes", Value::RetainedBytes),
];

/// The only mapping: the program.
const MAPPING: u64 = 1;

/// Writes all four values of a profile.
///
/// # Errors
/// Errors of `out`.
pub fn write(profile: &Profile, out: &mut impl Write) -> io::Result<()> {
    let names = Names::new(profile);
    let rows = names.rows();
    let samples = rows.iter().map(|row| Sample {
        stack: row.stack,
        class: row.class,
        values: TYPES.map(|(_, _, value)| value.of(row) as i64),
    });
    compress(&encode(profile, &names, samples, "inuse_space", &[]), out)
}

/// What a server of continuous profiles adds to one.
#[derive(Clone, Copy, Debug)]
pub struct Served<'s> {
    /// The value type that viewers show first: `inuse_space`, or `alloc_space`.
    pub default_type: &'s str,
    /// An earlier profile of the same process, whose values are subtracted. What is in use may decrease: the format has signed
    /// values.
    pub earlier: Option<&'s Profile>,
    /// Facts about the process.
    pub comments: &'s [String],
}

/// Writes a profile as Go's `net/http/pprof` serves it: its time is that of its end.
///
/// # Errors
/// Errors of `out`.
pub fn write_served(profile: &Profile, served: Served<'_>, out: &mut impl Write) -> io::Result<()> {
    let end = |profile: &Profile| profile.meta.started_at + profile.meta.duration;
    let mut joined = profile.clone();
    joined.meta.started_at = end(profile);
    if let Some(earlier) = served.earlier {
        running_total::append(&mut joined, earlier);
        joined.meta.duration = (end(profile) - end(earlier)).max(0.0);
    }
    let names = Names::new(&joined);
    let mut samples: Vec<Sample> = Vec::new();
    let mut places = FxHashMap::default();
    for (index, row) in joined.rows.iter().enumerate() {
        let sign = if index < profile.rows.len() { 1 } else { -1 };
        let stack = names.stack_id(row.stack);
        let place = *places.entry((stack, names.class(row.class))).or_insert(samples.len());
        if place == samples.len() {
            samples.push(Sample { stack, class: row.class, values: [0; 4] });
        }
        for (sum, (_, _, value)) in samples[place].values.iter_mut().zip(TYPES) {
            *sum += sign * value.of(row) as i64;
        }
    }
    samples.retain(|sample| sample.values != [0; 4]);
    let message =
        encode(&joined, &names, samples.into_iter(), served.default_type, served.comments);
    compress(&message, out)
}

/// The header has neither time nor operating system, so that equal profiles give equal bytes.
fn compress(message: &[u8], out: &mut impl Write) -> io::Result<()> {
    let header = GzBuilder::new().mtime(0).operating_system(255);
    let mut gzip = header.write(out, Compression::default());
    gzip.write_all(message)?;
    gzip.finish()?;
    Ok(())
}

/// The objects of a class and a stack.
struct Sample {
    stack: u32,
    class: u32,
    values: [i64; 4],
}

/// The message `Profile`.
fn encode<'p>(
    profile: &'p Profile,
    names: &'p Names<'p>,
    samples: impl Iterator<Item = Sample>,
    default_type: &'p str,
    more_comments: &'p [String],
) -> Vec<u8> {
    let version = format!("memprof {}", profile.meta.memprof);
    let mut encoder = Encoder::new(profile, names);
    let mut message = Message::default();
    for (kind, unit, _) in TYPES {
        message.message(1, encoder.value_type(kind, unit));
    }
    let class_key = encoder.string("class");
    for row in samples {
        let mut sample = Message::default();
        let locations: Vec<u64> =
            names.path(row.stack).map(|node| encoder.location(node)).collect();
        sample.packed(1, &locations);
        // Negative numbers are written as their two's complement.
        sample.packed(2, &row.values.map(|value| value as u64));
        let mut label = Message::default();
        label.number(1, class_key);
        label.number(2, encoder.string(names.class(row.class)));
        sample.message(3, label);
        message.message(2, sample);
    }
    let meta = &profile.meta;
    let mut mapping = Message::default();
    mapping.number(1, MAPPING);
    mapping.number(5, encoder.string(&meta.command));
    // Functions, files and lines are known: there is nothing to look up in a binary.
    for field in [7, 8, 9] {
        mapping.number(field, 1);
    }
    message.message(3, mapping);
    let period_type = encoder.value_type("space", "bytes");
    let default_type = encoder.string(default_type);
    let estimates = meta.estimates();
    let comments = [meta.runtime.as_str(), &version].into_iter();
    let comments = comments.chain(estimates.as_deref());
    let comments = comments.chain(more_comments.iter().map(String::as_str));
    let comments: Vec<u64> = comments.map(|text| encoder.string(text)).collect();
    message.bytes(&encoder.locations.bytes);
    message.bytes(&encoder.functions.bytes);
    for text in &encoder.strings.keys {
        message.text(6, text);
    }
    message.number(9, (meta.started_at * 1e9) as u64);
    message.number(10, (meta.duration * 1e9) as u64);
    message.message(11, period_type);
    message.number(12, period(profile));
    message.packed(13, &comments);
    message.number(14, default_type);
    message.bytes
}

/// Mean number of bytes between two recorded objects. Values are already scaled up; 1 means that all were recorded.
fn period(profile: &Profile) -> u64 {
    if let Some(period) = profile.meta.malloc_sample {
        return period;
    }
    let allocated = profile.totals().allocated;
    if profile.meta.sample <= 1 || allocated.objects == 0 {
        return 1;
    }
    (u64::from(profile.meta.sample) * allocated.bytes / allocated.objects).max(1)
}

/// Tables that samples refer to, filled on demand.
struct Encoder<'p> {
    profile: &'p Profile,
    names: &'p Names<'p>,
    strings: Ids<&'p str>,
    functions: Message,
    function_ids: Ids<u32>,
    locations: Message,
    location_ids: Ids<(u32, u32)>,
}

impl<'p> Encoder<'p> {
    fn new(profile: &'p Profile, names: &'p Names<'p>) -> Self {
        let mut encoder = Encoder {
            profile,
            names,
            strings: Ids::new(),
            functions: Message::default(),
            function_ids: Ids::new(),
            locations: Message::default(),
            location_ids: Ids::new(),
        };
        // The format requires the empty string first.
        encoder.string("");
        encoder
    }

    fn string(&mut self, text: &'p str) -> u64 {
        u64::from(self.strings.get(text).0)
    }

    fn value_type(&mut self, kind: &'static str, unit: &'static str) -> Message {
        let mut message = Message::default();
        message.number(1, self.string(kind));
        message.number(2, self.string(unit));
        message
    }

    /// Id of the message `Location` of a line of a method. Ids begin with 1.
    fn location(&mut self, node: u32) -> u64 {
        let key = (self.names.frame_id(node), self.profile.stacks[node as usize].line);
        let (id, new) = self.location_ids.get(key);
        let id = u64::from(id) + 1;
        if !new {
            return id;
        }
        let mut line = Message::default();
        line.number(1, self.function(node));
        line.number(2, u64::from(key.1));
        let mut location = Message::default();
        location.number(1, id);
        location.number(2, MAPPING);
        location.message(4, line);
        self.locations.message(4, location);
        id
    }

    /// Id of the message `Function` of a method. Ids begin with 1.
    fn function(&mut self, node: u32) -> u64 {
        let (id, new) = self.function_ids.get(self.names.frame_id(node));
        let id = u64::from(id) + 1;
        if !new {
            return id;
        }
        let frame = self.profile.frame(node as usize);
        let name = self.string(self.names.method(node));
        let mut function = Message::default();
        function.number(1, id);
        // No system name: if it equals the name, pprof takes it for C++ and drops `<main>` as a template argument.
        function.number(2, name);
        if !frame.native {
            let file = self.string(self.profile.file_name(frame));
            function.number(4, file);
            function.number(5, u64::from(frame.first_line));
        }
        self.functions.message(5, function);
        id
    }
}

/// A protocol buffer message of numeric and length-delimited fields.
#[derive(Default)]
struct Message {
    bytes: Vec<u8>,
}

impl Message {
    /// A numeric field; zero is the default and is omitted.
    fn number(&mut self, field: u64, number: u64) {
        if number != 0 {
            self.varint(field << 3);
            self.varint(number);
        }
    }

    /// A packed field of several numbers.
    fn packed(&mut self, field: u64, numbers: &[u64]) {
        let mut packed = Message::default();
        for &number in numbers {
            packed.varint(number);
        }
        self.message(field, packed);
    }

    fn message(&mut self, field: u64, message: Message) {
        self.delimited(field, &message.bytes);
    }

    fn text(&mut self, field: u64, text: &str) {
        self.delimited(field, text.as_bytes());
    }

    fn delimited(&mut self, field: u64, bytes: &[u8]) {
        self.varint(field << 3 | 2);
        self.varint(bytes.len() as u64);
        self.bytes(bytes);
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Seven bits a byte, lowest first; the eighth means that more follow.
    fn varint(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.bytes.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.bytes.push(number as u8);
    }
}
