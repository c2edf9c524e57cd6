//! Asks a heap: `cargo run --release -p memprof-analysis --example ask -- heap.json leaks '{}'`

use std::path::Path;

use memprof_analysis::questions;
use memprof_heap::{Heap, Options};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [path, question, parameters] = arguments.as_slice() else {
        return Err("usage: ask DUMP QUESTION PARAMETERS".into());
    };
    let heap = Heap::open(Path::new(path), &Options::default())?;
    let answer = questions::ask(&heap, question, serde_json::from_str(parameters)?)?;
    println!("{answer}");
    Ok(())
}
