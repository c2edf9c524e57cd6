//! GML, GEXF and DOT, checked against their grammars, and by networkx and Graphviz if installed.

use std::io::Write;
use std::process::{Command, Stdio};

use super::super::hostile_heaps::{hostile, written};
use super::super::{Format, Options};
use memprof_heap::Heap;
use memprof_heap::graph::BitSet;

/// A program's output for a text; `None` if the program or one of its requirements is missing.
fn run(program: &[&str], input: &str) -> Option<String> {
    let mut command = Command::new(program[0]);
    command.args(&program[1..]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().ok()?;
    let mut stdin = child.stdin.take()?;
    let text = input.to_owned();
    let writer = std::thread::spawn(move || stdin.write_all(text.as_bytes()));
    let output = child.wait_with_output().expect("an end");
    let _ = writer.join();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    if errors.contains("No module named") {
        return None;
    }
    assert!(output.status.success() && !errors.contains("rror"), "{program:?}: {errors}");
    Some(String::from_utf8(output.stdout).expect("UTF-8"))
}

/// Nodes, edges, and retained bytes as networkx reads them.
const NETWORKX: &str = "
import io, sys, networkx
data = sys.stdin.buffer.read()
graph = (networkx.read_gml if sys.argv[1] == 'gml' else networkx.read_gexf)(io.BytesIO(data))
print(graph.is_directed(), len(graph), graph.size(), int(sum(node['retained'] for _, node in graph.nodes(data=True))))
";

fn python() -> String {
    std::env::var("PYTHON").unwrap_or_else(|_| "python3".to_owned())
}

fn drawings() -> Vec<(Heap, Option<BitSet>, Option<usize>)> {
    let some = || BitSet::of(300, (0..300).filter(|id| id % 2 == 0));
    vec![
        (hostile(300, 1), None, None),
        (hostile(300, 2), None, Some(20)),
        (hostile(300, 3), Some(some()), Some(90)),
        (hostile(0, 4), None, None),
    ]
}

#[test]
fn networkx_reads_gml_and_gexf() {
    for (heap, members, limit) in drawings() {
        let options = Options { members: members.as_ref(), limit, ..Options::default() };
        for (format, node, edge) in
            [(Format::Gml, "  node\n", "  edge\n"), (Format::Gexf, "<node ", "<edge ")]
        {
            let (text, counts) = written(&heap, format, &options);
            assert!(text.len() < 2_000_000, "titles are short");
            assert!(!text.chars().any(|character| character.is_control() && character != '\n'));
            let (nodes, edges) = (text.matches(node).count(), text.matches(edge).count());
            assert!(nodes as u64 >= counts.objects);
            let Some(read) = run(&[&python(), "-c", NETWORKX, format.name()], &text) else {
                eprintln!("not read: networkx is not installed");
                continue;
            };
            let read: Vec<&str> = read.split_whitespace().collect();
            assert_eq!(read[..3], ["True", &nodes.to_string(), &edges.to_string()]);
            let total: u64 = read[3].parse().expect("a sum");
            assert!(total > 0 || counts.objects == 0);
        }
    }
}

#[test]
fn gml_is_ascii_with_entities() {
    let (text, _) = written(&hostile(300, 5), Format::Gml, &Options::default());
    assert!(text.is_ascii());
    for line in text.lines() {
        let Some((_, rest)) = line.split_once(" \"") else {
            continue;
        };
        let text = rest.strip_suffix('"').expect("an end");
        assert!(!text.contains('"'));
        assert!(text.split('&').skip(1).all(|rest| {
            let entity = rest.split_once(';').expect("an entity").0;
            entity == "quot"
                || entity == "amp"
                || entity.strip_prefix('#').is_some_and(|n| n.parse::<u32>().is_ok())
        }));
    }
}

#[test]
fn graphviz_reads_dot() {
    for (heap, members, limit) in drawings() {
        let options =
            Options { members: members.as_ref(), limit: limit.or(Some(60)), ..Options::default() };
        let (text, counts) = written(&heap, Format::Dot, &options);
        assert_eq!(
            text.matches(" [label=\"").count(),
            text.lines().filter(|line| line.starts_with("  n") && line.ends_with("];")).count() - 1
        );
        let Some(svg) = run(&["dot", "-Tsvg"], &text) else {
            eprintln!("not read: Graphviz is not installed");
            continue;
        };
        assert!(svg.matches("class=\"node\"").count() as u64 >= counts.objects);
        assert_eq!(svg.matches("class=\"edge\"").count(), text.matches(" -> ").count());
    }
}
