//! Writes a dump in another program's format and prints how long that took: `export_heap DUMP FORMAT FILE [limit=N]
//! [depth=N] [min_retained=N]`. Uses the index only if it exists already.

use std::fs::File;
use std::io;
use std::path::Path;
use std::time::Instant;

use memprof_analysis::export::{self, Format};
use memprof_heap::Heap;

fn main() -> io::Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [dump, format, file, rest @ ..] = &words[..] else {
        return Err(io::Error::other(
            "export_heap DUMP FORMAT FILE [limit=N] [depth=N] [min_retained=N]",
        ));
    };
    let format =
        Format::of_name(format).ok_or_else(|| io::Error::other(format!("no format: {format}")))?;
    let mut options = export::Options::default();
    for word in rest {
        let (key, value) = word.split_once('=').unwrap_or((word, ""));
        let number: u64 = value.parse().map_err(io::Error::other)?;
        match key {
            "limit" => options.limit = Some(number as usize),
            "depth" => options.depth = Some(number as u32),
            "min_retained" => options.min_retained = number,
            _ => return Err(io::Error::other(format!("no option: {key}"))),
        }
    }
    let heap = Heap::open(Path::new(dump), &memprof_heap::Options::default())?;
    // In practice, an analysis has already read these.
    heap.retained()?;
    heap.dominators()?;
    let begin = Instant::now();
    let mut out = File::create(file)?;
    let counts = export::write(&heap, format, &options, &mut out)?;
    let bytes = std::fs::metadata(file)?.len();
    eprintln!("{:.3} s, {bytes} bytes of {} objects", begin.elapsed().as_secs_f64(), heap.len());
    println!("{}", serde_json::to_string(&counts)?);
    Ok(())
}
