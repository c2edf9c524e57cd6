//! The format of <https://github.com/google/pprof>: a compressed protocol buffer, see `proto/profile.proto` there.
//!
//! Value types have the names of Go's heap profiles (`alloc_objects`, `alloc_space`, `inuse_objects`, `inuse_space`), which
//! viewers know. The class of the objects is the label `class`: `pprof -tagleaf class` shows it as the innermost frame,
//! `-tagfocus class=String` selects one.

use std::io::{self, Write};

use super::{Ids, Value};
use crate::group::Names;
use crate::profile::Profile;
use flate2::{Compression, GzBuilder};

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
    // The header has neither time nor operating system, so that equal profiles give equal bytes.
    let header = GzBuilder::new().mtime(0).operating_system(255);
    let mut gzip = header.write(out, Compression::default());
    gzip.write_all(&encode(profile))?;
    gzip.finish()?;
    Ok(())
}

/// The message `Profile`.
fn encode(profile: &Profile) -> Vec<u8> {
    let names = Names::new(profile);
    let version = format!("memprof {}", profile.meta.memprof);
    let mut encoder = Encoder::new(profile, &names);
    let mut message = Message::default();
    for (kind, unit, _) in TYPES {
        message.message(1, encoder.value_type(kind, unit));
    }
    let class_key = encoder.string("class");
    for row in names.rows() {
        let mut sample = Message::default();
        let locations: Vec<u64> =
            names.path(row.stack).map(|node| encoder.location(node)).collect();
        sample.packed(1, &locations);
        sample.packed(2, &TYPES.map(|(_, _, value)| value.of(&row)));
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
    let default_type = encoder.string("inuse_space");
    let estimates = meta.estimates();
    let comments = [meta.runtime.as_str(), &version].into_iter();
    let comments = comments.chain(estimates.as_deref());
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
