//! Dumps the Ruby heap in a core file: `dump CORE OUTPUT [blocks]`.

use std::fs::File;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use memprof_dump::values::Values;
use memprof_dump::{Compression, Format, Options};
use memprof_image::{Analysis, Image, dump};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let ([core, output] | [core, output, _]) = &arguments[..] else {
        return Err("usage: dump CORE OUTPUT [blocks]".into());
    };
    let format = if output.ends_with(".memprof") { Format::Binary } else { Format::Memprof };
    let begin = Instant::now();
    let analysis = Analysis::new(Image::of_core(File::open(core)?)?);
    let options = Options { format, compression: Compression::None, ruby: (3, 1) };
    let request = dump::Request {
        values: Values::FULL,
        header: serde_json::Map::new(),
        blocks: arguments.len() > 2,
        stop: &AtomicBool::new(false),
    };
    let written = dump::write(&analysis, File::create(output)?, options, request)?;
    println!("{written:?} in {:?}", begin.elapsed());
    Ok(())
}
