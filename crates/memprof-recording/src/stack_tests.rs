use std::collections::BTreeMap;

use crate::export::{Format, Value};
use crate::tests::{block, exported, file, summary};
use crate::{
    Direction, Flame, Frame, Function, Native, Neighbor, Node, Record, Stacks, Tree, TreeRow,
};

fn ruby(line: u64, method: &'static str) -> Record<'static> {
    Record::RubyFrame { path: b"/app/a.rb", line, method: method.as_bytes() }
}

fn node(parent: u64, frame: u64) -> Record<'static> {
    Record::Node { parent, frame }
}

/// main calls import, which allocates itself (100), in parse (1,000) and in libpq (20); main also calls parse (5).
fn recording() -> Vec<Record<'static>> {
    let mut records = vec![
        Record::Start { pid: 7, time: 0, command: b"app.rb" },
        ruby(1, "<main>"),
        ruby(3, "import"),
        ruby(9, "parse"),
        Record::NativeFrame { address: 0x1234, offset: 0x34, module: b"/lib/libpq.so" },
        node(0, 1),
        node(1, 2),
        node(2, 3),
        node(2, 4),
        node(1, 3),
    ];
    for (node, size) in [(2, 100), (3, 1_000), (4, 20), (5, 5)] {
        records.push(Record::Allocation(block(node, size)));
    }
    records.push(Record::End { missed: 0 });
    records
}

#[test]
fn operator_new_allocates_for_its_caller() {
    let native = |offset: u64| Record::NativeFrame {
        address: 0x1000 + offset,
        offset,
        module: b"/lib/libapp.so",
    };
    let name = |frame, function: &'static str| Record::Name {
        frame,
        distance: 4,
        function: function.as_bytes(),
    };
    let records = [
        native(0x10),
        native(0x20),
        native(0x30),
        node(0, 1),
        node(1, 2),
        node(2, 3),
        node(0, 3),
        Record::Allocation(block(3, 10)),
        Record::Allocation(block(4, 5)),
        name(1, "fill"),
        name(2, "_Znam"),
        name(3, "_Znwm"),
        Record::End { missed: 0 },
    ];
    let rows = summary(&file(&records, 100)).stacks.rows();
    let bytes = |name: &str| {
        let row = rows.iter().find(|row| row.location.contains(name));
        row.map(|row| row.counts.allocated_bytes)
    };
    // Its caller may be unknown.
    assert_eq!((bytes("(fill+"), bytes("(operator new+")), (Some(10), Some(5)));
    assert_eq!(rows.len(), 2);
}

fn rows(direction: Direction, least: u64) -> Vec<(usize, String, u64)> {
    let summary = summary(&file(&recording(), 100));
    let rows = Tree::new(&summary.stacks, direction, Value::Peak).rows(least);
    let plain = |row: TreeRow| {
        let frame = match (row.method.as_str(), row.offset) {
            (_, Some(offset)) => format!("{}+{offset:#x}", row.module.trim_start_matches("/lib/")),
            (method, _) => format!("{method} ({})", row.location),
        };
        (row.depth, frame, row.bytes)
    };
    rows.into_iter().map(plain).collect()
}

fn row(depth: usize, frame: &str, bytes: u64) -> (usize, String, u64) {
    (depth, frame.to_owned(), bytes)
}

const MAIN: &str = "<main> (/app/a.rb:1)";
const IMPORT: &str = "import (/app/a.rb:3)";
const PARSE: &str = "parse (/app/a.rb:9)";
const LIBPQ: &str = "libpq.so+0x34";

#[test]
fn a_location_is_the_innermost_line_of_ruby() {
    let summary = summary(&file(&recording(), 100));
    assert!(summary.callers);
    let mut rows: Vec<_> = summary.locations.iter().collect();
    rows.sort_by_key(|row| row.counts.peak_bytes);
    let plain: Vec<_> =
        rows.iter().map(|row| (row.location.as_str(), row.counts.peak_bytes)).collect();
    assert_eq!(plain, [("/app/a.rb:3", 120), ("/app/a.rb:9", 1_005)]);
}

#[test]
fn a_location_is_not_the_vms_own_code() {
    let frame = |path: &str, line| Frame::Ruby { path: path.into(), line, method: String::new() };
    let stacks = Stacks {
        frames: vec![
            frame("<internal:gem_prelude>", 2),
            frame("/app/a.rb", 7),
            frame("<internal:marshal>", 34),
            Frame::Native(Native::default()),
        ],
        nodes: (0..4).map(|frame: u32| Node { parent: frame.checked_sub(1), frame }).collect(),
        counts: Vec::new(),
    };
    let locations: Vec<String> = (0..4).map(|node| stacks.location(node)).collect();
    let line = "/app/a.rb:7";
    assert_eq!(locations, ["<internal:gem_prelude>:2", line, line, line]);
}

#[test]
fn a_tree_goes_down_to_what_was_called_and_up_to_the_callers() {
    let expected = [
        row(0, MAIN, 1_125),
        row(1, IMPORT, 1_120),
        row(2, PARSE, 1_000),
        row(2, LIBPQ, 20),
        row(1, PARSE, 5),
    ];
    assert_eq!(rows(Direction::TopDown, 0), expected);
    let expected = [
        row(0, PARSE, 1_005),
        row(1, IMPORT, 1_000),
        row(1, MAIN, 1_000),
        row(1, MAIN, 5),
        row(0, IMPORT, 100),
        row(0, MAIN, 100),
        row(0, LIBPQ, 20),
        row(0, IMPORT, 20),
        row(0, MAIN, 20),
    ];
    assert_eq!(rows(Direction::BottomUp, 0), expected);
    let expected = [row(0, MAIN, 1_125), row(1, IMPORT, 1_120), row(2, PARSE, 1_000)];
    assert_eq!(rows(Direction::TopDown, 21), expected);
}

#[test]
fn exports_have_callers() {
    let bytes = file(&recording(), 3);
    let expected = format!(
        "{MAIN};{IMPORT} 100\n{MAIN};{IMPORT};{LIBPQ} 20\n{MAIN};{IMPORT};{PARSE} 1000\n{MAIN};{PARSE} 5\n"
    );
    assert_eq!(exported(&bytes, Format::Collapsed), expected);
    let massif = exported(&bytes, Format::Massif);
    let expected = "n3: 1125 (heap allocation functions) malloc/new/new[], --alloc-fns, etc.\n \
        n2: 1005 0x0: parse (/app/a.rb:9) (/app/a.rb:9)\n  \
        n1: 1000 0x0: import (/app/a.rb:3) (/app/a.rb:3)\n   \
        n0: 1000 0x0: <main> (/app/a.rb:1) (/app/a.rb:1)\n  \
        n0: 5 in 1 place, below massif's threshold (1.00%)\n";
    assert!(massif.contains(expected), "{massif}");
    let heaptrack = exported(&bytes, Format::Heaptrack);
    assert!(heaptrack.contains("t 1 0\nt 2 1\nt 3 2\nt 4 2\nt 3 1\n"), "{heaptrack}");
    let speedscope = exported(&bytes, "speedscope".parse().unwrap());
    assert!(speedscope.contains("\"import\"") && speedscope.contains("[2,1,3,0]"), "{speedscope}");
}

#[test]
fn a_random_tree_adds_up() {
    let mut state = 0x1234_5678_9abc_def1u64;
    let mut next = |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    };
    let mut records: Vec<_> = (0..30).map(|line| ruby(line, "m")).collect();
    let mut stacks: Vec<Vec<u64>> = vec![Vec::new()];
    for count in 0..300 {
        let (parent, frame) = (next(count + 1), next(30) + 1);
        records.push(node(parent, frame));
        let mut stack = stacks[parent as usize].clone();
        stack.push(frame - 1);
        stacks.push(stack);
    }
    let mut expected: BTreeMap<String, u64> = BTreeMap::new();
    for _ in 0..2_000 {
        let (node, size) = (1 + next(300), next(5_000));
        records.push(Record::Allocation(block(node, size)));
        let frames = stacks[node as usize].iter();
        let names: Vec<_> = frames.map(|line| format!("m (/app/a.rb:{line})")).collect();
        *expected.entry(names.join(";")).or_default() += size;
    }
    let bytes = file(&records, 500);
    let lines: String =
        expected.iter().map(|(stack, bytes)| format!("{stack} {bytes}\n")).collect();
    assert_eq!(exported(&bytes, Format::Collapsed), lines);
    let summary = summary(&bytes);
    for direction in [Direction::TopDown, Direction::BottomUp] {
        let tree = Tree::new(&summary.stacks, direction, Value::Peak);
        assert_eq!(tree.branch(0).bytes, expected.values().sum::<u64>());
        let mut left = vec![0];
        while let Some(at) = left.pop() {
            let children = tree.children(at, 0).shown;
            let inside: u64 = children.iter().map(|&child| tree.branch(child).bytes).sum();
            assert!(inside <= tree.branch(at).bytes);
            left.extend(children);
        }
    }
}

#[test]
fn a_flame_graph_has_the_largest_frames() {
    let summary = summary(&file(&recording(), 100));
    let tree = Tree::new(&summary.stacks, Direction::TopDown, Value::Peak);
    let flame = Flame::new(&tree, 100);
    let names = ["all", "<main> (/app/a.rb:1)", "import (/app/a.rb:3)", "parse (/app/a.rb:9)"];
    assert_eq!(flame.names[..4], names);
    assert_eq!(flame.names[4..], ["libpq.so+0x34"]);
    let frames = [
        (0, 0, 0, 1_125),
        (0, 1, 0, 1_125),
        (1, 2, 100, 1_120),
        (2, 3, 1_000, 1_000),
        (2, 4, 20, 20),
        (1, 3, 5, 5),
    ];
    assert_eq!((flame.frames.as_slice(), flame.folded), (&frames[..], 0));
    let small = Flame::new(&tree, 3);
    assert_eq!((small.frames.as_slice(), small.folded), (&frames[..3], 3));
    let nothing = Stacks::default();
    let empty = Flame::new(&Tree::new(&nothing, Direction::TopDown, Value::Peak), 3);
    assert_eq!((empty.frames, empty.folded), (vec![(0, 0, 0, 0)], 0));
}

#[test]
fn stacks_of_one_location_are_counted_alone() {
    let mut summary = summary(&file(&recording(), 100));
    summary.stacks.only_at("/app/a.rb:9");
    assert_eq!(summary.stacks.total().allocated_bytes, 1_005);
    // Native code belongs to the line that called it.
    let mut other = self::summary(&file(&recording(), 100));
    other.stacks.only_at("/app/a.rb:3");
    assert_eq!(other.stacks.total().allocated_bytes, 120);
    let rows = Tree::new(&summary.stacks, Direction::BottomUp, Value::Peak).rows(1);
    let rows: Vec<_> = rows.iter().map(|row| (row.level, row.depth, row.bytes)).collect();
    assert_eq!(rows, [(0, 0, 1_005), (1, 1, 1_000), (2, 1, 1_000), (1, 1, 5)]);
}

#[test]
fn functions_have_their_own_bytes_and_those_of_what_they_called() {
    let stacks = summary(&file(&recording(), 100)).stacks;
    let all = Function::all(&stacks, Value::Peak, None);
    let plain: Vec<_> =
        all.iter().map(|one| (one.name.as_str(), one.self_bytes, one.bytes)).collect();
    let expected = [
        ("<main> (/app/a.rb)", 0, 1_125),
        ("import (/app/a.rb)", 100, 1_120),
        ("parse (/app/a.rb)", 1_005, 1_005),
        ("libpq.so+0x34", 20, 20),
    ];
    assert_eq!(plain, expected);
    assert!(all.iter().all(|one| one.callers.is_none() && one.callees.is_none()));
    let neighbors = |rows: &[(&str, u64)]| -> Option<Vec<Neighbor>> {
        let one = |&(name, bytes): &(&str, u64)| Neighbor { name: name.to_owned(), bytes };
        Some(rows.iter().map(one).collect())
    };
    for name in ["import", "import (/app/a.rb)"] {
        let found = Function::all(&stacks, Value::Peak, Some(name));
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].callers, neighbors(&[("<main> (/app/a.rb)", 1_120)]));
        let callees = [("parse (/app/a.rb)", 1_000), ("libpq.so+0x34", 20)];
        assert_eq!(found[0].callees, neighbors(&callees));
    }
    let parse = &Function::all(&stacks, Value::Peak, Some("parse"))[0];
    let callers = [("import (/app/a.rb)", 1_000), ("<main> (/app/a.rb)", 5)];
    assert_eq!(parse.callers, neighbors(&callers));
    assert!(Function::all(&stacks, Value::Peak, Some("nowhere")).is_empty());
}

#[test]
fn a_function_that_calls_itself_counts_once_a_stack() {
    let mut records = recording();
    records.pop();
    // <main>, import, parse, import, parse.
    records.extend([node(3, 2), node(6, 3)]);
    let event = block(7, 7);
    records.extend([Record::Allocation(event), Record::End { missed: 0 }]);
    let stacks = summary(&file(&records, 100)).stacks;
    let parse = &Function::all(&stacks, Value::Peak, Some("parse"))[0];
    assert_eq!((parse.self_bytes, parse.bytes), (1_012, 1_012));
    let import = &Function::all(&stacks, Value::Peak, Some("import"))[0];
    let bytes = |of: &Option<Vec<Neighbor>>| -> Vec<u64> {
        of.iter().flatten().map(|one| one.bytes).collect()
    };
    assert_eq!((import.bytes, bytes(&import.callers)), (1_127, vec![1_127, 7]));
    assert_eq!(bytes(&import.callees), [1_007, 20]);
}
