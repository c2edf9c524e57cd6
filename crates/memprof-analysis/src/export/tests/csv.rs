//! An RFC 4180 reader reads back the heap's contents.

use std::collections::HashMap;

use super::super::hostile_heaps::{hostile, written};
use super::super::out::Out;
use super::super::{Format, Options, csv};

/// Lines of cells, by the grammar of the RFC.
fn parse(text: &str) -> Vec<Vec<String>> {
    let mut lines = Vec::new();
    let mut line = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let cell;
        if let Some(quoted) = rest.strip_prefix('"') {
            let mut end = 0;
            loop {
                end += quoted[end..].find('"').expect("an end of the text");
                if !quoted[end + 1..].starts_with('"') {
                    break;
                }
                end += 2;
            }
            cell = quoted[..end].replace("\"\"", "\"");
            rest = &quoted[end + 1..];
        } else {
            let end = rest.find([',', '\r']).expect("an end of the cell");
            assert!(!rest[..end].contains(['"', '\n']));
            cell = rest[..end].to_owned();
            rest = &rest[end..];
        }
        line.push(cell);
        if let Some(next) = rest.strip_prefix("\r\n") {
            rest = next;
            lines.push(std::mem::take(&mut line));
        } else {
            rest = rest.strip_prefix(',').expect("a comma");
        }
    }
    assert!(line.is_empty());
    lines
}

#[test]
fn has_a_line_for_each_object() {
    let heap = hostile(300, 1);
    let (text, counts) = written(&heap, Format::ObjectsCsv, &Options::default());
    let lines = parse(&text);
    assert_eq!((lines.len(), counts.objects), (301, 300));
    let column: HashMap<&str, usize> =
        lines[0].iter().enumerate().map(|(index, name)| (&**name, index)).collect();
    let retained = heap.retained().expect("sizes");
    for (line, id) in lines[1..].iter().zip(0..) {
        assert_eq!(line.len(), lines[0].len());
        assert_eq!(line[column["id"]], id.to_string());
        assert_eq!(line[column["retained"]], retained.get(id).to_string());
        let class = heap.class_name(id).expect("a class").replace('\0', "\u{fffd}");
        assert_eq!(
            line[column["class"]].strip_prefix('\'').unwrap_or(&line[column["class"]]),
            class
        );
        assert!(
            line.iter().all(|cell| !cell.starts_with(['=', '+', '-', '@', '\t', '\r'])),
            "a formula"
        );
    }
}

#[test]
fn has_a_line_for_each_reference() {
    let heap = hostile(300, 1);
    let (text, counts) = written(&heap, Format::ReferencesCsv, &Options::default());
    let lines = parse(&text);
    assert_eq!(lines[0], ["source", "target", "label"]);
    let classes = heap.group_classes();
    let graph = heap.graph(&classes).expect("a graph");
    let expected: Vec<[u32; 2]> =
        (0..heap.len()).flat_map(|id| graph.edges(id).map(move |target| [id, target])).collect();
    assert_eq!(counts.references, expected.len() as u64);
    let read: Vec<[u32; 2]> = lines[1..]
        .iter()
        .map(|line| [line[0].parse().expect("a number"), line[1].parse().expect("a number")])
        .collect();
    assert_eq!(read, expected);
    assert!(
        lines
            .iter()
            .all(|line| line.len() == 3 && !line[2].starts_with(['=', '+', '-', '@', '\t', '\r']))
    );
}

#[test]
fn disarms_texts_that_a_spreadsheet_would_execute() {
    for (given, expected) in [
        ("=1+1", "\"'=1+1\""),
        ("+1", "\"'+1\""),
        ("-1", "\"'-1\""),
        ("@sum", "\"'@sum\""),
        ("\t=1", "\"'\t=1\""),
        ("\r=1", "\"'\r=1\""),
        ("  =1", "\"'  =1\""),
        (" \x0b\x0c@sum", "\"' \x0b\x0c@sum\""),
        ("＝1", "\"'＝1\""),
        ("=\"a\",b", "\"'=\"\"a\"\",b\""),
        ("a=1", "a=1"),
        (" a-1", " a-1"),
        ("a,b", "\"a,b\""),
        ("", ""),
    ] {
        let mut written = Vec::new();
        let mut out = Out::new(&mut written);
        csv::text(&mut out, given);
        out.finish().expect("a vector takes all");
        assert_eq!(String::from_utf8(written).expect("UTF-8"), expected);
    }
}
