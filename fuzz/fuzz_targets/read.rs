//! Any bytes, read as a dump and written in every format.

#![no_main]

use std::fs::File;
use std::io::Cursor;

use libfuzzer_sys::fuzz_target;
use memprof_dump::values::{Key, Values};
use memprof_dump::{Compression, Format, Options, Policy, convert, create};

fuzz_target!(|bytes: &[u8]| {
    let formats = [
        Format::Memprof,
        Format::Objspace,
        Format::Binary,
        Format::HeapDump,
    ];
    // One of them a run, so that runs are short; all come, as the length varies.
    let format = formats[bytes.len() % formats.len()];
    let policy = if bytes.len() % 8 < 4 {
        Policy::Full
    } else {
        Policy::Hash
    };
    let options = Options {
        format,
        compression: Compression::None,
        ruby: (3, 4),
    };
    let output = File::create("/dev/null").expect("/dev/null");
    let mut dump = create(output, options).expect("a thread");
    let values = Values {
        policy,
        key: Key([1, 2]),
    };
    // Either way, but without a panic.
    let _ = convert(Box::new(Cursor::new(bytes.to_vec())), &mut dump, values);
});
