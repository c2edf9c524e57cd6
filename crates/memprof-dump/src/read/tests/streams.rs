//! Kinds of input: in pieces, slowly, from elsewhere; and early ends of reading.

use std::cell::RefCell;
use std::io::{self, Cursor, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::golden::{Words, words};
use super::{MEMPROF, OBJSPACE, made};
use crate::read::{Options, convert, open, read};
use crate::record::Tables;
use crate::testing::values;
use crate::values::Policy;

/// Returns one or a few bytes at a time, with interrupts.
struct Drops {
    bytes: Cursor<Vec<u8>>,
    calls: usize,
}

impl Read for Drops {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.calls += 1;
        if self.calls % 7 == 0 {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let most = (self.calls % 5 + 1).min(bytes.len());
        self.bytes.read(&mut bytes[..most])
    }
}

#[test]
fn pieces_of_any_size_are_one_dump() {
    for options in [MEMPROF, OBJSPACE] {
        let dump = made(options, 8, 300);
        let (whole, outcome) = words(&dump);
        let drops = Drops { bytes: Cursor::new(dump.clone()), calls: 0 };
        let mut pieces = Words::default();
        let again = convert(Box::new(drops), &mut pieces, values(Policy::Full)).unwrap();
        assert_eq!(again, outcome);
        assert_eq!(again.bytes, dump.len() as u64);
        assert!(whole.lines == pieces.lines);
    }
}

#[test]
fn lines_are_the_same_wherever_a_chunk_ends() {
    let dump = made(OBJSPACE, 8, 40);
    let (whole, _) = words(&dump);
    // The boundary of the first chunk moves through the dump.
    for shift in (0..dump.len()).step_by(211) {
        let blank = 256 * 1024 - shift;
        let mut shifted = vec![b'\n'; blank];
        shifted.extend_from_slice(&dump);
        // The format is detected from the first lines only.
        shifted.splice(0..0, *b"{\"type\":\"ROOT\", \"root\":\"x\"}\n");
        let (words, outcome) = words(&shifted);
        assert_eq!(outcome.skipped, 0, "{shift}");
        assert_eq!(words.lines.len(), whole.lines.len() + 1);
        assert!(words.lines[2..] == whole.lines[1..], "{shift}");
    }
}

/// Never ends, and counts the reads.
struct Endless(Arc<AtomicUsize>);

impl Read for Endless {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.0.fetch_add(1, Ordering::Relaxed);
        let line = b"{\"type\":\"ROOT\", \"root\":\"x\"}\n";
        let count = bytes.len().min(line.len());
        bytes[..count].copy_from_slice(&line[..count]);
        Ok(count)
    }
}

impl Drop for Endless {
    fn drop(&mut self) {
        self.0.store(usize::MAX, Ordering::Relaxed);
    }
}

/// Fails at the first record.
struct Full;

impl crate::writer::Writer for Full {
    fn note(&mut self, _: &Tables, _: crate::record::NoteKind, _: &str) -> io::Result<()> {
        Err(io::ErrorKind::StorageFull.into())
    }

    fn roots(&mut self, _: &Tables, _: &str, _: &[crate::record::Edge<'_>]) -> io::Result<()> {
        Ok(())
    }

    fn shape(&mut self, _: &Tables, _: &crate::record::Shape) -> io::Result<()> {
        Ok(())
    }

    fn object(&mut self, _: &Tables, _: &crate::record::Object<'_>) -> io::Result<()> {
        Ok(())
    }

    fn edges(&mut self, _: &Tables, _: &[crate::record::Edge<'_>]) -> io::Result<()> {
        Ok(())
    }

    fn end(&mut self, _: &Tables) -> io::Result<()> {
        Ok(())
    }

    fn finish(&mut self, _: &Tables, _: bool) -> io::Result<crate::record::Counts> {
        Ok(Default::default())
    }
}

#[test]
fn the_thread_ends_when_nobody_reads() {
    let asked = Arc::new(AtomicUsize::new(0));
    let input = Box::new(Endless(Arc::clone(&asked)));
    let error = convert(input, &mut Full, values(Policy::Full)).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    for _ in 0..12_000 {
        if asked.load(Ordering::Relaxed) == usize::MAX {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    panic!("the input is still open");
}

#[test]
fn waiting_for_input_can_be_stopped() {
    let (_writer, reader) = std::os::unix::net::UnixStream::pair().unwrap();
    let stop = AtomicBool::new(false);
    let options = Options { stop: Some(&stop), ..Options::from(values(Policy::Full)) };
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| read_stopped(Box::new(reader), &options.values, &stop));
        std::thread::sleep(std::time::Duration::from_millis(150));
        stop.store(true, Ordering::Relaxed);
        let error = waiting.join().unwrap().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::Interrupted);
    });
}

fn read_stopped(
    input: Box<dyn Read + Send>,
    values: &crate::values::Values,
    stop: &AtomicBool,
) -> io::Result<()> {
    let options = Options { stop: Some(stop), ..Options::from(*values) };
    read(input, &mut Words::default(), &options).map(drop)
}

#[test]
fn progress_is_reported_by_the_megabyte() {
    let dump = made(OBJSPACE, 5, 20_000);
    let reported = RefCell::new(Vec::new());
    let progress = |count| reported.borrow_mut().push(count);
    let options = Options { progress: Some(&progress), ..Options::from(values(Policy::Full)) };
    let input = Box::new(Cursor::new(dump.clone()));
    let mut words = Words::default();
    read(input, &mut words, &options).unwrap();
    let reported = reported.into_inner();
    assert!(reported.len() > 1 && reported.len() <= dump.len() / (1024 * 1024) + 2);
    assert!(reported.is_sorted());
    assert_eq!(reported.last(), Some(&(dump.len() as u64)));
}

#[test]
fn files_directories_and_what_is_none() {
    let directory = std::env::temp_dir().join(format!("memprof-open-{}", std::process::id()));
    std::fs::create_dir_all(directory.join("empty")).unwrap();
    let dump = made(OBJSPACE, 1, 3);
    std::fs::write(directory.join("allocated.heap"), &dump).unwrap();
    std::fs::write(directory.join("retained.heap"), &dump).unwrap();
    std::fs::write(directory.join("generation.info"), "17").unwrap();
    let source = open(&directory).unwrap();
    assert_eq!(source.path, directory.join("allocated.heap"));
    assert_eq!(source.size, Some(dump.len() as u64));
    let report = source.report.unwrap();
    assert_eq!(report.generation, Some(17));
    assert_eq!(report.retained, Some(directory.join("retained.heap")));
    let outcome = convert(source.input, &mut Words::default(), values(Policy::Full)).unwrap();
    assert_eq!(outcome.counts.objects, 3);
    let refused = |name: &str| {
        let path = directory.join(name);
        let text = open(&path).err().map(|error| error.to_string()).unwrap();
        assert!(text.starts_with(&format!("{}: ", path.display())));
        assert!(!text.contains('\n'));
        text
    };
    assert!(refused("nowhere").ends_with("no such file"));
    assert!(refused("empty").ends_with("allocated.heap is missing"));
    std::fs::remove_dir_all(directory).unwrap();
}
