//! Converts a dump, and prints the time taken: `convert INPUT OUTPUT FORMAT [VALUES [RUBY]]`.

use std::fs::File;
use std::time::Instant;

use memprof_dump::values::{Key, Values};
use memprof_dump::{Compression, Options, Policy, convert, create};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [input, output, format, rest @ ..] = &arguments[..] else {
        return Err("usage: convert INPUT OUTPUT FORMAT [VALUES [RUBY]]".into());
    };
    let policy: Policy = rest.first().map_or("full", String::as_str).parse()?;
    let ruby = rest.get(1).map_or("3.1", String::as_str);
    let (major, minor) = ruby.split_once('.').ok_or("a version is like 3.1")?;
    let compression = match output.rsplit('.').next() {
        Some("gz") => Compression::Gzip,
        Some("zst") => Compression::Zstd,
        _ => Compression::None,
    };
    let options =
        Options { format: format.parse()?, compression, ruby: (major.parse()?, minor.parse()?) };
    let begin = Instant::now();
    let mut dump = create(File::create(output)?, options)?;
    let values = Values { policy, key: Key([1, 2]) };
    let outcome = convert(Box::new(File::open(input)?), &mut dump, values)?;
    let nanoseconds = begin.elapsed().as_nanos() as f64 / outcome.counts.objects.max(1) as f64;
    println!("{outcome:?}");
    println!("{} bytes, {nanoseconds:.1} ns an object", dump.bytes());
    Ok(())
}
