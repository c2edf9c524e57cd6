//! Opens a dump and prints how long each stage took: `cargo run --release -p memprof-heap --example open -- heap.json`

use std::cell::Cell;
use std::path::Path;
use std::time::Instant;

use memprof_heap::{Heap, Options};

fn main() -> std::io::Result<()> {
    let path = std::env::args().nth(1).ok_or_else(|| std::io::Error::other("which dump?"))?;
    let begin = Instant::now();
    let last = Cell::new(None);
    let progress = |progress| {
        let stage = std::mem::discriminant(&progress);
        if last.replace(Some(stage)) != Some(stage) {
            eprintln!("{:8.3} s {progress:?}", begin.elapsed().as_secs_f64());
        }
    };
    let index = std::env::args().nth(2).is_none();
    let heap = Heap::open(
        Path::new(&path),
        &Options { progress: &progress, index, ..Options::default() },
    )?;
    eprintln!("{:8.3} s open", begin.elapsed().as_secs_f64());
    let retained = heap.retained()?;
    let mut top: Vec<u32> = (0..heap.len()).collect();
    top.sort_unstable_by_key(|&id| std::cmp::Reverse(retained.get(id)));
    for &id in top.iter().take(10) {
        println!(
            "{:>12} {:#x} {}",
            retained.get(id),
            heap.addresses().of(id),
            heap.class_name(id)?
        );
    }
    eprintln!("{:8.3} s {} objects", begin.elapsed().as_secs_f64(), heap.len());
    Ok(())
}
