//! IOs.

use memprof_dump::record::{Detail, Value};
use rb_sys::VALUE;

use super::details::word;
use super::text;
use super::walk::Walk;

/// Word of struct RFile with the io.
const FILE_IO: usize = 2;
/// Bytes in struct rb_io before the descriptor, and before the mode.
const IO_FD: usize = 16;
const IO_MODE: usize = 20;
/// Word of struct rb_io with the path.
pub const IO_PATH: usize = 4;

/// Descriptor, mode and path of an IO.
///
/// # Safety
/// `object` is a T_FILE.
pub unsafe fn file(walk: &mut Walk, object: VALUE) -> Detail<'static> {
    // SAFETY: struct RFile and struct rb_io (ruby/io.h, internal/io.h) begin alike in all versions.
    unsafe {
        let io = word(object, FILE_IO) as *const u8;
        if io.is_null() {
            return Detail::File { fd: None };
        }
        let (fd, mode) = (io.add(IO_FD).cast::<i32>().read(), io.add(IO_MODE).cast::<u32>().read());
        if walk.scope.labels {
            let path = word(io as VALUE, IO_PATH);
            if walk.names.values.previews()
                && walk.references.contains(&path)
                && text::is_string(path)
            {
                let path = String::from_utf8_lossy(text::bytes(path)).into_owned();
                let path = walk.names.tables.intern(&path);
                walk.field("path", Value::Name(path));
            }
            let json = walk.names.tables.intern(&mode_words(mode));
            walk.field("mode", Value::Json(json));
        }
        Detail::File { fd: Some(fd) }
    }
}

/// Words for the bits of an IO's mode (FMODE_ in ruby/io.h).
fn mode_words(mode: u32) -> String {
    const WORDS: [(u32, &str); 8] = [
        (0x1, "readable"),
        (0x2, "writable"),
        (0x4, "binmode"),
        (0x8, "sync"),
        (0x10, "tty"),
        (0x20, "duplex"),
        (0x40, "append"),
        (0x80, "create"),
    ];
    let words: Vec<String> = (WORDS.iter().filter(|(bit, _)| mode & bit != 0))
        .map(|(_, word)| format!("\"{word}\""))
        .collect();
    format!("[{}]", words.join(","))
}
