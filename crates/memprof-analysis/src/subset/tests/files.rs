//! Files for other programs (D7, D8).

use std::io::Seek;

use rustc_hash::FxHashSet;

use super::{all, each_heap, naive, some};
use crate::subset::Subset;
use memprof_dump::record::Value;
use memprof_dump::{Compression, Format, Options, create};
use memprof_heap::Heap;

/// Integer ids, quoted texts, nodes before edges: the requirements of `networkx.read_gml`.
#[test]
fn writes_gml() {
    each_heap(|random, heap| {
        let set = some(random, &all(heap));
        let set = set.annotate(
            "keepalive_count",
            set.iter().map(|node| (node, u64::from(node) << 20)).collect(),
        );
        let mut out = Vec::new();
        set.to_gml(&mut out).expect("room");
        let text = String::from_utf8(out).expect("ASCII");
        assert!(
            text.is_ascii()
                && text.starts_with("graph\n[\n  directed 1\n")
                && text.ends_with("]\n")
        );
        let count = |word: &str| text.lines().filter(|line| *line == word).count();
        let edges: usize = naive(&set).values().map(Vec::len).sum();
        assert_eq!((count("  node"), count("  edge")), (set.len(), edges));
        for line in text.lines() {
            let line = line.trim();
            let value = line.split_once(' ').map_or("", |(_, value)| value);
            let quoted = value.len() > 1
                && value.starts_with('"')
                && value.ends_with('"')
                && value.matches('"').count() == 2;
            let is_frame = ["graph", "node", "edge", "[", "]"].contains(&line);
            assert!(quoted || is_frame || value.parse::<f64>().is_ok(), "{line}");
        }
        let labels = text.lines().filter(|line| line.starts_with("    label "));
        let labels: Vec<&str> = labels.collect();
        let distinct: FxHashSet<&str> = labels.iter().copied().collect();
        assert_eq!((labels.len(), distinct.len()), (set.len(), set.len()));
    });
}

/// Groups may have any name, even the name of another group or of a root.
#[test]
fn gives_nodes_that_stand_for_many_labels_of_their_own() {
    each_heap(|_, heap| {
        let mut set = all(heap);
        if set.len() < 2 {
            return;
        }
        for _ in 0..2 {
            let first = set.iter().next().expect("a member");
            set = set.group("vm", &Subset::of(heap, [first])).expect("a group").0;
        }
        let mut out = Vec::new();
        set.to_gml(&mut out).expect("room");
        let text = String::from_utf8(out).expect("ASCII");
        let labels = text.lines().filter(|line| line.starts_with("    label "));
        assert_eq!(labels.collect::<FxHashSet<&str>>().len(), set.len());
    });
}

#[test]
fn what_is_saved_can_be_loaded() {
    each_heap(|random, heap| {
        let set = some(random, &all(heap));
        let marked = set.annotate("seen", set.iter().map(|node| (node, 7)).collect());
        for format in [Format::Memprof, Format::Objspace, Format::Binary] {
            let mut file = tempfile::tempfile().expect("a file");
            let options = Options { format, compression: Compression::None, ruby: (3, 3) };
            let mut dump = create(file.try_clone().expect("a file"), options).expect("a dump");
            let counts = marked.save(&mut dump).expect("room");
            let objects: Vec<u32> = set.iter().filter(|&node| node < heap.len()).collect();
            assert_eq!(counts.objects, objects.len() as u64);
            if objects.is_empty() {
                continue;
            }
            file.rewind().expect("a file");
            let read = Heap::read(Box::new(file), None, &memprof_heap::Options::default())
                .expect("a dump");
            assert_eq!((read.len() as usize, read.source.missing), (objects.len(), 0));
            for node in objects {
                same(&set, node, &all(&read), format);
            }
        }
    });
}

fn same(set: &Subset<&Heap>, node: u32, back: &Subset<&Heap>, format: Format) {
    let addresses = |set: &Subset<&Heap>, nodes: Vec<u32>| -> Vec<u64> {
        nodes.into_iter().map(|node| set.heap().addresses().of(node)).collect()
    };
    let id = back.at(set.heap().addresses().of(node)).expect("saved");
    let saved = addresses(set, set.children(node).expect("in memory"));
    assert_eq!(addresses(back, back.children(id).expect("in memory")), saved);
    let size = |set: &Subset<&Heap>, node: u32| set.heap().memsizes().expect("in memory").get(node);
    assert_eq!(size(back, id), size(set, node));
    // Objspace writes only the addresses of classes.
    if format != Format::Objspace {
        let class = |set: &Subset<&Heap>, node: u32| {
            set.heap().class_name(node).expect("in memory").to_owned()
        };
        assert_eq!(class(back, id), class(set, node));
    }
    if format != Format::Objspace {
        let seen = back.heap().names().find("seen").expect("a fact");
        assert_eq!(back.heap().facts().get(id, seen), Some(Value::Int(7)));
    }
}
