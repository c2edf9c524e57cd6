//! Compares written files, as the parquet crate reads them, with the columns of the heap.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Cursor};

use memprof_dump::record::Flags;
use memprof_heap::{Heap, NONE};
use memprof_heap_parquet::{Options, write};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;

/// More than fit into one row group.
const ELEMENTS: usize = 125_000;

/// A session with rows, some objects with few fields, and one without referrers.
fn dump() -> String {
    let header = r#"{"_id":"header","type":"header","format":"memprof","version":1,"hostname":"web \"1\"","pid":7,"time_us":1700000000000000}"#;
    let lines = [
        header,
        r#"{"_id":"root:vm","type":"root","root":"vm","references":["0x1000","0x2000"]}"#,
        r#"{"_id":"0x1000","type":"class","class_name":"Class","name":"Séance","super":null,"memsize":600,"slot_size":160,"references":[]}"#,
        r#"{"_id":"0x2000","type":"object","class":"0x1000","class_name":"Séance","file":"app/a.rb","line":3,"generation":4,"ivar_count":1,"ivars":{"@rows":"0x3000"},"memsize":40,"slot_size":40,"frozen":true,"references":["0x3000"],"labels":["@rows"]}"#,
        r#"{"_id":"0x4000","type":"string","class_name":"String","length":3,"data":"a\"b","memsize":40,"slot_size":40,"references":[]}"#,
        r#"{"_id":"0x5000","type":"imemo","imemo_type":"iseq","file":"app/b.rb","generation":0,"memsize":80,"slot_size":40,"references":["0x4000"]}"#,
    ];
    let mut dump = lines.join("\n");
    dump.push_str("\n{\"_id\":\"0x3000\",\"type\":\"array\",\"class_name\":\"Array\",");
    let elements = vec!["\"0x4000\""; ELEMENTS].join(",");
    let labels: Vec<String> = (0..ELEMENTS).map(|index| format!("\"[{index}]\"")).collect();
    writeln!(
        dump,
        "\"length\":{ELEMENTS},\"data\":[{elements}],\"memsize\":5000000000,\"slot_size\":40,\"references\":[{elements}],\"labels\":[{}]}}",
        labels.join(",")
    )
    .expect("room");
    dump.push_str("{\"_id\":\"footer\",\"type\":\"footer\"}\n");
    dump
}

/// All rows of a file, and its number of row groups.
fn read(file: File) -> (Vec<Vec<(String, Field)>>, usize) {
    let reader = SerializedFileReader::new(file).expect("a file of Parquet");
    let rows = reader.get_row_iter(None).expect("rows").map(|row| {
        let row = row.expect("a row");
        let cells = row.get_column_iter();
        cells.map(|(name, value)| (name.clone(), value.clone())).collect()
    });
    (rows.collect(), reader.metadata().num_row_groups())
}

fn known(column: &[u32], id: u32) -> Option<u32> {
    let value = column.get(id as usize).copied();
    value.filter(|&value| value != NONE)
}

fn long(number: Option<impl Into<i64>>) -> Field {
    number.map_or(Field::Null, |number| Field::Long(number.into()))
}

fn text(text: &str) -> Field {
    Field::Str(text.to_owned())
}

/// An object's row, from the columns of the heap.
fn object(heap: &Heap, id: u32) -> io::Result<Vec<(&'static str, Field)>> {
    let site = known(heap.site_numbers()?, id).map(|site| heap.sites()[site as usize]);
    let dominator = heap.dominators()?.parent_of(id);
    let flags = Flags(heap.flag_words()?[id as usize] & 0x1ffff);
    let flags: Vec<&str> = flags.names().collect();
    let amount = |amount: u64| Field::Long(amount.try_into().expect("63 bits"));
    Ok(vec![
        ("id", long(Some(id))),
        ("address", amount(heap.addresses().of(id))),
        ("type", text(heap.kind(id)?.expect("an object").name())),
        ("class", text(heap.class_name(id)?)),
        ("size", amount(heap.memsizes()?.get(id))),
        ("retained", amount(heap.retained()?.get(id))),
        ("dominator", long(dominator.filter(|&node| node < heap.len()))),
        ("generation", long(known(heap.generations()?, id))),
        ("file", site.map_or(Field::Null, |site| text(heap.name(site.file)))),
        ("line", long(site.map(|site| site.line).filter(|&line| line > 0))),
        ("flags", text(&flags.join(" "))),
        ("length", long(known(heap.lengths()?, id))),
        ("dump_id", text("monday")),
        ("host", text("web \"1\"")),
        ("pid", Field::Long(7)),
        ("time", Field::TimestampMicros(1_700_000_000_000_000)),
    ])
}

#[test]
fn what_is_written_is_read_back() -> io::Result<()> {
    let heap = Heap::read(Box::new(Cursor::new(dump())), None, &memprof_heap::Options::default())?;
    let (objects, edges) = (tempfile::tempfile()?, tempfile::tempfile()?);
    let options = Options { dump_id: Some("monday"), ..Options::default() };
    let counts = write(&heap, &options, objects.try_clone()?, edges.try_clone()?)?;

    let (rows, groups) = read(objects);
    assert_eq!((counts.objects, rows.len(), groups), (5, heap.len() as usize, 1));
    for (row, id) in rows.into_iter().zip(0..) {
        let expected = object(&heap, id)?;
        let row: Vec<(&str, Field)> =
            row.iter().map(|(name, value)| (&**name, value.clone())).collect();
        assert_eq!(row, expected);
    }
    // The heap itself matches the dump.
    let session = object(&heap, 1)?;
    assert_eq!(session[3].1, text("Séance"));
    assert_eq!(session[9].1, Field::Long(3));
    assert_eq!(session[10].1, text("frozen"));

    let (rows, groups) = read(edges);
    let classes = heap.group_classes();
    let graph = heap.graph(&classes)?;
    let expected: Vec<(u32, u32)> =
        (0..heap.len()).flat_map(|from| graph.edges(from).map(move |to| (from, to))).collect();
    assert_eq!((counts.references as usize, rows.len(), groups), (expected.len(), ELEMENTS + 3, 2));
    let mut index = 0;
    for (row, (from, to)) in rows.iter().zip(expected) {
        let label = match (from, to) {
            (1, 0) => text("class"),
            (1, _) => text("@rows"),
            (2, _) => {
                index += 1;
                text(&format!("[{}]", index - 1))
            }
            _ => Field::Null,
        };
        let expected = [
            ("from", long(Some(from))),
            ("to", long(Some(to))),
            ("label", label),
            ("dump_id", text("monday")),
        ];
        let row: Vec<(&str, Field)> =
            row.iter().map(|(name, value)| (&**name, value.clone())).collect();
        assert_eq!(row, expected);
    }
    assert_eq!(index, ELEMENTS);
    Ok(())
}
