//! Writes a dump as `objects.parquet` and `edges.parquet`: `parquet DUMP DIRECTORY`.

use std::fs::File;
use std::io;
use std::path::Path;
use std::time::Instant;

use memprof_heap::Heap;
use memprof_heap_parquet::{Options, write};

fn main() -> io::Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [dump, directory] = &words[..] else {
        return Err(io::Error::other("parquet DUMP DIRECTORY"));
    };
    let heap = Heap::open(Path::new(dump), &memprof_heap::Options::default())?;
    let begin = Instant::now();
    let create = |name| File::create(Path::new(directory).join(name));
    let counts =
        write(&heap, &Options::default(), create("objects.parquet")?, create("edges.parquet")?)?;
    eprintln!("{:.3} s", begin.elapsed().as_secs_f64());
    println!("{}", serde_json::to_string(&counts)?);
    Ok(())
}
