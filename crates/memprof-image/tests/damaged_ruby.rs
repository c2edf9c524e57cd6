//! A Ruby heap in core files: built directly, it is the heap of its dump. In damaged files: a dump, a heap or an error, but no
//! panic, no endless loop, and no excessive memory use.

#[path = "support/core_file.rs"]
mod core_file;

use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind, Seek};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use core_file::{DamagedCore, Numbers, core_of, file};
use memprof_dump::values::Values;
use memprof_dump::{Compression, Format, Options};
use memprof_heap::{Heap, Options as HeapOptions, Source};
use memprof_image::dump::{Request, Written, build, write};
use memprof_image::{Analysis, Image, waiting_threads};

const PROGRAM: &str = "
Point = Struct.new(:x, :y)
class Order; def initialize(n) = (@number = n; @items = [n.to_s * 9, :item]; @by = { n => 'x' * 90 }); end
KEPT = Array.new(500) { |n| Order.new(n) } + Array.new(50) { |n| Point.new('p', n) }
TABLE = (1..200).to_h { |n| [n.to_s, [n]] }
GC.start
$stdout.puts 'ready'
$stdout.flush
$stdin.read
";

/// A Ruby that waits, and is killed on drop.
struct Program(Child);

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// None without Ruby.
fn core_of_ruby() -> Option<Vec<u8>> {
    let child = Command::new("ruby")
        .args(["--disable=gems", "-e", PROGRAM])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let Ok(child) = child else {
        eprintln!("skipped: there is no ruby on the PATH");
        return None;
    };
    let mut program = Program(child);
    let stdout = program.0.stdout.as_mut().expect("a pipe");
    let mut line = String::new();
    BufReader::new(stdout).read_line(&mut line).expect("a line");
    assert_eq!(line, "ready\n");
    let deadline = Instant::now() + Duration::from_secs(60);
    while waiting_threads(program.0.id()).is_empty() {
        assert!(Instant::now() < deadline, "it runs on");
        thread::sleep(Duration::from_millis(1));
    }
    let pid = program.0.id();
    let image = Image::of_process(pid, waiting_threads(pid)).expect("its memory");
    Some(core_of(&image))
}

fn request(blocks: bool, stop: &AtomicBool) -> Request<'_> {
    Request { values: Values::FULL, header: serde_json::Map::new(), blocks, stop }
}

const OPTIONS: Options =
    Options { format: Format::Binary, compression: Compression::None, ruby: (3, 1) };

fn dump(core: File, blocks: bool) -> Option<Written> {
    let analysis = Analysis::new(Image::of_core(core).ok()?);
    write(&analysis, file(b""), OPTIONS, request(blocks, &AtomicBool::new(false))).ok()
}

fn heap(core: File, blocks: bool) -> Option<Heap> {
    let analysis = Analysis::new(Image::of_core(core).ok()?);
    let stop = AtomicBool::new(false);
    build(&analysis, file(b""), request(blocks, &stop), &HeapOptions::default()).ok()
}

#[test]
fn a_heap_is_that_of_the_dump() {
    let Some(core) = core_of_ruby() else {
        return;
    };
    let analysis = Analysis::new(Image::of_core(file(&core)).expect("a core"));
    let stop = AtomicBool::new(false);
    for (blocks, ignore_stack_roots) in [(false, false), (true, true)] {
        let options = HeapOptions { index: false, ignore_stack_roots, ..HeapOptions::default() };
        let built = build(&analysis, file(b""), request(blocks, &stop), &options).expect("a heap");
        let mut written = file(b"");
        let output = written.try_clone().expect("a descriptor");
        write(&analysis, output, OPTIONS, request(blocks, &stop)).expect("a dump");
        written.rewind().expect("to rewind");
        let read = Heap::read(Box::new(written), None, &options).expect("a heap");
        assert_eq!(built.source, Source { format: "image".to_owned(), ..read.source.clone() });
        assert!(built.len() > 2000 && built.notes() == read.notes(), "{:?}", built.notes());
        assert_eq!(built.categories(), read.categories());
        assert_eq!(Vec::from_iter(built.names().iter()), Vec::from_iter(read.names().iter()));
        for id in 0..built.len() {
            assert_eq!(built.object(id).expect("an object"), read.object(id).expect("an object"));
        }
        assert!(built.labels().expect("labels") == read.labels().expect("labels"));
        let classes = built.group_classes();
        let graphs = [&built, &read].map(|heap| heap.graph(&classes).expect("a graph"));
        assert!(graphs[0].offsets == graphs[1].offsets && graphs[0].targets == graphs[1].targets);
        assert_eq!(graphs[0].silent, graphs[1].silent);
        let sizes = [&built, &read].map(|heap| heap.retained().expect("sizes"));
        assert!((0..built.root()).all(|node| sizes[0].get(node) == sizes[1].get(node)));
    }
    stop.store(true, Ordering::Relaxed);
    let stopped = build(&analysis, file(b""), request(false, &stop), &HeapOptions::default());
    assert_eq!(stopped.err().map(|error| error.kind()), Some(ErrorKind::Interrupted));
}

#[test]
fn damage_does_no_harm() {
    let Some(core) = core_of_ruby() else {
        return;
    };
    let mut copy = DamagedCore::new(&core);
    let analysis = Analysis::new(Image::of_core(file(&core)).expect("a core"));
    let whole = dump(copy.file(), false).expect("a dump");
    assert!(whole.counts.objects > 2000, "{whole:?}");
    let with_blocks = dump(copy.file(), true).expect("a dump");
    assert!(with_blocks.counts.objects > whole.counts.objects + 1000, "{with_blocks:?}");
    // Words of slots, and of blocks that objects own.
    let mut interesting: Vec<u64> = Vec::new();
    let offset = |address| {
        let segment = analysis.image.segment(address)?;
        Some(segment.offset + (address - segment.start))
    };
    let slots = analysis.ruby.pages.iter().flat_map(|page| page.each_slot());
    interesting.extend(slots.filter_map(offset).flat_map(|at| (at..at + 40).step_by(8)));
    let blocks = analysis.heap.blocks.iter();
    interesting.extend(
        blocks.filter_map(|block| offset(block.address)).flat_map(|at| (at..at + 64).step_by(8)),
    );
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
    const WILD: [u64; 8] =
        [0, 8, 0x2005, 0xffff_ffff, u64::MAX, 1 << 63, 0x7fff_ffff_fff0, u64::MAX >> 1];
    for _ in 0..12 {
        for _ in 0..4000 {
            let at = interesting[numbers.below(interesting.len() as u64) as usize];
            let other = interesting[numbers.below(interesting.len() as u64) as usize];
            let value = match numbers.below(3) {
                0 => WILD[numbers.below(8) as usize],
                1 => copy.word(at) ^ (1 << numbers.below(64)),
                // A word from somewhere else.
                _ => copy.word(other),
            };
            copy.overwrite(at, value);
        }
        dump(copy.file(), false);
        heap(copy.file(), true);
        copy.restore();
    }
    for part in 5..10 {
        heap(file(&core[..core.len() * part / 10]), part % 2 == 0);
    }
}
