//! Files to write dumps to.

use std::fs::File;
use std::io::{self, Cursor, Read, Seek};

use super::make;
use crate::format::{Compression, Format, Options, create};
use crate::read::{Outcome, convert};
use crate::record::Tables;
use crate::values::{Key, Policy, Values};
use crate::writer::Writer;

/// A file without a name.
pub fn scratch() -> File {
    let path = std::env::temp_dir().join(format!(
        "memprof-{}-{:?}",
        std::process::id(),
        std::thread::current().id()
    ));
    let options = File::options().read(true).write(true).create(true).to_owned();
    let file = options.open(&path).expect("a temporary file");
    file.set_len(0).expect("an empty file");
    std::fs::remove_file(path).expect("a file to remove");
    file
}

pub const fn options(format: Format) -> Options {
    Options { format, compression: Compression::None, ruby: (4, 0) }
}

/// The file's bytes after `write`.
pub fn written(options: Options, write: impl FnOnce(&mut dyn Writer) -> io::Result<()>) -> Vec<u8> {
    let mut file = scratch();
    let shared = file.try_clone().expect("the same file");
    let mut dump = create(shared, options).expect("a thread");
    write(&mut dump).expect("a file that takes everything");
    let mut bytes = Vec::new();
    file.rewind().expect("a file to go back in");
    file.read_to_end(&mut bytes).expect("a file to read");
    assert_eq!(dump.bytes(), bytes.len() as u64);
    bytes
}

/// A generated dump.
pub fn made(options: Options, seed: u64, objects: u64) -> Vec<u8> {
    written(options, |writer| {
        make(writer, seed, objects)?;
        writer.finish(&Tables::default(), true).map(drop)
    })
}

/// Values under a policy.
pub fn values(policy: Policy) -> Values {
    Values { policy, key: Key([1, 2]) }
}

/// A dump converted to another format, and the outcome.
pub fn converted(bytes: &[u8], options: Options, policy: Policy) -> (Vec<u8>, Outcome) {
    let mut outcome = None;
    let input = Cursor::new(bytes.to_vec());
    let output = written(options, |writer| {
        outcome = Some(convert(Box::new(input), writer, values(policy))?);
        Ok(())
    });
    (output, outcome.expect("a result"))
}
