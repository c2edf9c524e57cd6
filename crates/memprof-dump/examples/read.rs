//! Reads dumps into a writer that drops everything, and prints the speed: `read FILE...`.

use std::io;
use std::time::Instant;

use memprof_dump::record::{Counts, Edge, NoteKind, Object, Shape, Tables, Value};
use memprof_dump::values::{Key, Values};
use memprof_dump::{Policy, Writer, convert};

/// Counts records and drops them.
#[derive(Default)]
struct Drop(Counts);

impl Writer for Drop {
    fn note(&mut self, _: &Tables, _: NoteKind, _: &str) -> io::Result<()> {
        Ok(())
    }

    fn roots(&mut self, _: &Tables, _: &str, edges: &[Edge<'_>]) -> io::Result<()> {
        self.0.roots += edges.len() as u64;
        Ok(())
    }

    fn shape(&mut self, _: &Tables, _: &Shape) -> io::Result<()> {
        self.0.shapes += 1;
        Ok(())
    }

    fn object(&mut self, _: &Tables, object: &Object<'_>) -> io::Result<()> {
        self.0.objects += 1;
        self.0.memsize = self.0.memsize.wrapping_add(object.memsize);
        Ok(())
    }

    fn edges(&mut self, _: &Tables, edges: &[Edge<'_>]) -> io::Result<()> {
        let references = edges.iter();
        let references = references.filter(|edge| matches!(edge.value, Value::Address(_)));
        self.0.references += references.count() as u64;
        Ok(())
    }

    fn end(&mut self, _: &Tables) -> io::Result<()> {
        Ok(())
    }

    fn finish(&mut self, _: &Tables, _: bool) -> io::Result<Counts> {
        Ok(self.0)
    }
}

/// Nanoseconds of CPU time of this thread, which exclude other load on the machine.
fn busy() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let first = text.split(' ').next().unwrap_or("");
    first.parse().unwrap_or(0.0)
}

fn main() -> io::Result<()> {
    let values = Values { policy: Policy::Full, key: Key([1, 2]) };
    for path in std::env::args().skip(1) {
        let bytes = std::fs::metadata(&path)?.len() as f64;
        let begin = Instant::now();
        let before = busy();
        let outcome = convert(Box::new(std::fs::File::open(&path)?), &mut Drop::default(), values)?;
        let seconds = begin.elapsed().as_secs_f64();
        let busy = (busy() - before) / 1e9;
        println!("{path}: {outcome:?}");
        println!(
            "{path}: {:.2} s, {:.0} MB/s, {:.2} M objects/s; this thread: {:.2} s, {:.0} MB/s, {:.2} M objects/s",
            seconds,
            bytes / seconds / 1e6,
            outcome.counts.objects as f64 / seconds / 1e6,
            busy,
            bytes / busy / 1e6,
            outcome.counts.objects as f64 / busy / 1e6,
        );
    }
    Ok(())
}
