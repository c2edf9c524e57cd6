//! Large objects, and failing writes.

use std::fs::File;
use std::io::{self, Write};

use super::{BINARY, MEMPROF, OBJSPACE, assert_same, converted, text};
use crate::format::{Compression, Format, Options, create};
use crate::record::{Detail, Edge, Flags, Kind, Label, Object, Tables, Value};
use crate::sink::Sink;
use crate::testing::{make, written};
use crate::values::Policy;
use crate::writer::Writer;

/// An array whose line in memprof's format takes at least 41 MB.
fn large_array(writer: &mut dyn Writer) -> io::Result<()> {
    const LENGTH: u32 = 1_100_000;
    let tables = Tables::default();
    let object = Object {
        address: 0x7f00_0000_0000,
        kind: Kind::ARRAY,
        class: 0x7f00_0000_1000,
        class_name: None,
        slot_size: 40,
        memsize: 40 + 8 * u64::from(LENGTH),
        shape_id: None,
        flags: Flags(0),
        age: None,
        object_id: None,
        detail: Detail::Length(LENGTH.into()),
        fields: &[],
        allocation: None,
    };
    writer.object(&tables, &object)?;
    let indices: Vec<u32> = (0..LENGTH).collect();
    for indices in indices.chunks(10_000) {
        let edges: Vec<Edge<'_>> = indices
            .iter()
            .map(|index| Edge {
                label: Label::Index(*index),
                value: match index % 7 {
                    0 => Value::Int((*index).into()),
                    _ => Value::Address(0x7f00_0100_0000 + 40 * u64::from(*index)),
                },
                preview: None,
            })
            .collect();
        writer.edges(&tables, &edges)?;
    }
    writer.end(&tables)?;
    writer.finish(&tables, true).map(drop)
}

#[test]
fn a_line_of_41_megabytes_is_as_any_other() {
    let lines = written(MEMPROF, large_array);
    assert!(lines.len() > 41_100_000);
    let line: serde_json::Value =
        serde_json::from_str(text(&lines).lines().next().unwrap()).unwrap();
    assert_eq!(line["data"].as_array().unwrap().len(), 1_100_000);
    assert_eq!(line["references"][1], line["data"][2]);
    assert_eq!(line["labels"][1], "[2]");
    let (same, _) = converted(&lines, MEMPROF, Policy::Full);
    assert!(lines == same);
    let binary = written(BINARY, large_array);
    assert!(binary.len() < 4_000_000);
    let (back, _) = converted(&binary, MEMPROF, Policy::Full);
    assert!(lines == back);
    let objspace = written(OBJSPACE, large_array);
    let (same, _) = converted(&objspace, OBJSPACE, Policy::Full);
    assert_same(&objspace, &same);
}

/// Two ends of a connection.
fn pipe() -> (std::os::unix::net::UnixStream, File) {
    let (reader, writer) = std::os::unix::net::UnixStream::pair().unwrap();
    (reader, File::from(std::os::fd::OwnedFd::from(writer)))
}

fn all() -> impl Iterator<Item = Options> {
    let formats = [Format::Memprof, Format::Objspace, Format::Binary];
    let options = |format, compression| Options { format, compression, ruby: (3, 4) };
    let plain = formats.map(|format| options(format, Compression::None));
    let packed = [Compression::Gzip, Compression::Zstd];
    let packed = packed.map(|compression| options(Format::Memprof, compression));
    plain.into_iter().chain(packed)
}

#[test]
fn a_full_disk_is_an_error() {
    for options in all() {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let written = create(full, options).and_then(|mut dump| {
            make(&mut dump, 1, 20_000)?;
            dump.finish(&Tables::default(), true)
        });
        let error = written.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull, "{options:?}");
    }
}

#[test]
fn the_error_of_the_second_thread_is_raised_again() {
    let full = File::options().write(true).open("/dev/full").unwrap();
    let mut sink = Sink::new(full, Compression::None).unwrap();
    let piece = vec![b'x'; 300_000];
    let first = (0..100).find_map(|_| sink.write(&piece).err()).unwrap();
    assert_eq!(first.kind(), io::ErrorKind::StorageFull);
    assert_eq!(sink.finish().unwrap_err().kind(), io::ErrorKind::StorageFull);
}

#[test]
fn a_closed_pipe_is_an_error() {
    let (reader, writer) = pipe();
    drop(reader);
    let mut dump = create(writer, MEMPROF).unwrap();
    let made = make(&mut dump, 1, 20_000);
    let finished = dump.finish(&Tables::default(), true);
    let error = made.and(finished.map(drop)).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
}

#[test]
fn a_dump_that_is_given_up_waits_for_nothing() {
    let (reader, writer) = pipe();
    let mut dump = create(writer, MEMPROF).unwrap();
    let line = "{}";
    let note = crate::record::NoteKind::Ps;
    dump.note(&Tables::default(), note, line).unwrap();
    drop(dump);
    drop(reader);
}
