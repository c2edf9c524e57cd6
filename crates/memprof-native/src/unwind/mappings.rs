//! The mappings of this process, read without allocating.

use std::ops::Range;

/// Calls `visit` with each mapping of this process and its line, until it returns false. Long lines are truncated.
pub(crate) fn each_mapping(mut visit: impl FnMut(Range<usize>, &[u8]) -> bool) {
    // SAFETY: opens a file, and closes it below.
    let file = unsafe { libc::open(c"/proc/self/maps".as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) };
    if file < 0 {
        return;
    }
    let mut buffer = [0u8; 4096];
    let mut filled = 0;
    'reading: loop {
        // SAFETY: reads into the rest of the buffer.
        let read = unsafe {
            libc::read(file, buffer[filled..].as_mut_ptr().cast(), buffer.len() - filled)
        };
        let Some(read @ 1..) = usize::try_from(read).ok() else {
            break;
        };
        filled += read;
        let mut start = 0;
        while let Some(length) = buffer[start..filled].iter().position(|&byte| byte == b'\n') {
            let line = &buffer[start..start + length];
            if let Some(mapping) = range(line) {
                if !visit(mapping, line) {
                    break 'reading;
                }
            }
            start += length + 1;
        }
        if start == 0 && filled == buffer.len() {
            // The rest of a line longer than any of interest.
            filled = 0;
        }
        buffer.copy_within(start..filled, 0);
        filled -= start.min(filled);
    }
    // SAFETY: opened above.
    unsafe { libc::close(file) };
}

/// The addresses at the start of a line: `7f12000-7f13000 r--p ...`.
fn range(line: &[u8]) -> Option<Range<usize>> {
    let text = std::str::from_utf8(line.split(|&byte| byte == b' ').next()?).ok()?;
    let (start, end) = text.split_once('-')?;
    let number = |text| usize::from_str_radix(text, 16).ok();
    Some(number(start)?..number(end)?)
}
