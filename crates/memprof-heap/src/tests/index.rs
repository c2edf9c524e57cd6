//! The index beside a dump.

use std::fs;
use std::io::ErrorKind;
use std::mem::discriminant;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use super::super::{Heap, Options, Progress, index_path};
use memprof_dump::format::Format;
use memprof_dump::testing::{made, options};

/// A dump in a directory of its own.
fn dump() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("heap.json");
    fs::write(&path, made(options(Format::Memprof), 5, 300)).expect("a dump");
    (directory, path)
}

fn open(path: &Path) -> Heap {
    Heap::open(path, &Options::default()).expect("a heap")
}

fn assert_same(one: &Heap, other: &Heap) {
    assert_eq!(one.len(), other.len());
    assert_eq!(one.source, other.source);
    assert_eq!(one.categories(), other.categories());
    assert_eq!(one.groups(), other.groups());
    assert_eq!(one.classes(), other.classes());
    assert_eq!(one.class_objects(), other.class_objects());
    assert_eq!(one.sites(), other.sites());
    assert_eq!(one.shapes(), other.shapes());
    assert_eq!(one.notes(), other.notes());
    assert!(one.names().iter().eq(other.names().iter()));
    assert!(one.pages().eq(other.pages()));
    for id in 0..one.len() {
        assert_eq!(one.object(id).expect("columns"), other.object(id).expect("columns"));
        assert!(one.facts().of(id).eq(other.facts().of(id)));
        assert_eq!(one.object_id(id), other.object_id(id));
    }
    assert_eq!(one.labels().expect("labels"), other.labels().expect("labels"));
    assert_eq!(one.retained().expect("sizes"), other.retained().expect("sizes"));
    assert_eq!(one.steps().expect("steps"), other.steps().expect("steps"));
    assert_eq!(one.dominators().expect("a tree"), other.dominators().expect("a tree"));
}

#[test]
fn the_second_opening_gives_the_same_heap() {
    let (_directory, path) = dump();
    let first = open(&path);
    assert!(index_path(&path).exists());
    assert_same(&first, &open(&path));
}

#[test]
fn an_index_of_another_dump_is_made_anew() {
    let (_directory, path) = dump();
    open(&path);
    let before = fs::read(index_path(&path)).expect("an index");
    fs::write(&path, made(options(Format::Memprof), 6, 200)).expect("a dump");
    let heap = open(&path);
    assert_ne!(fs::read(index_path(&path)).expect("an index"), before);
    let fresh = Heap::open(&path, &Options { index: false, ..Options::default() }).expect("a heap");
    assert_eq!(heap.len(), fresh.len());
}

/// Replaces the file by a new one: open heaps continue to read the old one.
fn replace(path: &Path, bytes: &[u8]) {
    fs::remove_file(path).expect("removed");
    fs::write(path, bytes).expect("written");
}

#[test]
fn a_damaged_index_harms_nobody() {
    let (_directory, path) = dump();
    let first = open(&path);
    let index = index_path(&path);
    let whole = fs::read(&index).expect("an index");
    for cut in [0, 1, 15, 16, 40, whole.len() / 2, whole.len() - 33, whole.len() - 1] {
        replace(&index, &whole[..cut]);
        assert_same(&first, &open(&path));
    }
    for spot in (0..whole.len()).step_by(whole.len() / 199) {
        let mut damaged = whole.clone();
        damaged[spot] ^= 0x55;
        replace(&index, &damaged);
        // A damaged part fails when it is read on demand.
        let heap = open(&path);
        let _ = (heap.retained(), heap.labels(), heap.steps(), heap.object(3));
    }
}

#[test]
fn without_room_for_an_index_there_is_none() {
    let (_directory, path) = dump();
    fs::create_dir(index_path(&path)).expect("something in the way");
    let heap = open(&path);
    assert!(!heap.is_empty());
    let left = fs::read_dir(path.parent().expect("a directory")).expect("entries").count();
    assert_eq!(left, 2);
}

/// Stopped at each stage by its progress callback.
#[test]
fn an_opening_that_is_stopped_leaves_nothing() {
    let (_directory, path) = dump();
    for moment in
        [Progress::Reading(0, 0), Progress::Linking, Progress::Computing, Progress::Writing]
    {
        let stop = AtomicBool::new(false);
        let progress = |now: Progress| {
            stop.fetch_or(discriminant(&now) == discriminant(&moment), Ordering::Relaxed);
        };
        let options = Options { progress: &progress, stop: Some(&stop), ..Options::default() };
        let error = Heap::open(&path, &options).err().expect("stopped");
        assert_eq!(error.kind(), ErrorKind::Interrupted, "{moment:?}");
        let left = fs::read_dir(path.parent().expect("a directory")).expect("entries");
        assert_eq!(left.count(), 1, "{moment:?}");
    }
    open(&path);
    assert!(index_path(&path).exists());
}

#[test]
fn stack_roots_can_be_ignored() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("heap.json");
    let lines = [
        r#"{"type":"ROOT", "root":"vm", "references":["0x1000"]}"#,
        r#"{"type":"ROOT", "root":"machine_context", "references":["0x1028"]}"#,
        r#"{"address":"0x1000", "type":"STRING", "memsize":40}"#,
        r#"{"address":"0x1028", "type":"STRING", "memsize":40}"#,
    ];
    fs::write(&path, lines.join("\n")).expect("a dump");
    for _ in 0..2 {
        assert_eq!(open(&path).retained().expect("sizes").get(4), 80);
        let ignoring = Options { ignore_stack_roots: true, ..Options::default() };
        let heap = Heap::open(&path, &ignoring).expect("a heap");
        assert_eq!(heap.retained().expect("sizes").get(heap.root()), 40);
    }
}

/// Compiled code references constants directly, which would be the shorter path.
#[test]
fn compiled_code_is_the_last_root_to_be_named() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("heap.json");
    let lines = [
        r#"{"type":"ROOT", "root":"machine_context", "references":["0x1028"]}"#,
        r#"{"type":"ROOT", "root":"YJIT", "references":["0x1028", "0x1050"]}"#,
        r#"{"type":"ROOT", "root":"vm", "references":["0x1000"]}"#,
        r#"{"address":"0x1000", "type":"ARRAY", "length":1, "references":["0x1028"], "memsize":40}"#,
        r#"{"address":"0x1028", "type":"STRING", "memsize":40}"#,
        r#"{"address":"0x1050", "type":"STRING", "memsize":40}"#,
    ];
    fs::write(&path, lines.join("\n")).expect("a dump");
    for ignore_stack_roots in [false, true] {
        let options = Options { ignore_stack_roots, ..Options::default() };
        let heap = Heap::open(&path, &options).expect("a heap");
        let at = |address| heap.at(address).expect("an object");
        let before = |node: u32| heap.steps().expect("paths")[node as usize];
        let root = |name: &str| {
            let mut categories = heap.categories().iter();
            let category = categories.position(|category| category.name == name);
            heap.category_node(category.expect("a category"))
        };
        assert_eq!(before(at(0x1028)), at(0x1000));
        assert_eq!(before(at(0x1000)), root("vm"));
        assert_eq!(before(at(0x1050)), root("YJIT"));
    }
}
