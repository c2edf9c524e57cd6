//! JIT-compiled code: anonymous executable memory. No table describes its frames.

use std::ops::Range;

use super::mappings::each_mapping;

/// Cached mappings: a JIT writes into few.
const KNOWN: usize = 4;

/// All zero: nothing is cached yet.
#[derive(Default)]
pub(super) struct JitCode {
    /// Mappings found to be anonymous code, and the slot for the next one. A library mapped there later is known as an
    /// object, and objects are looked up first.
    known: [Range<usize>; KNOWN],
    next: usize,
}

impl JitCode {
    /// Whether an address outside of all objects is in JIT code.
    pub(super) fn contains(&mut self, address: usize) -> bool {
        if self.known.iter().any(|code| code.contains(&address)) {
            return true;
        }
        let Some(code) = anonymous_code(address) else {
            return false;
        };
        self.known[self.next] = code;
        self.next = (self.next + 1) % KNOWN;
        true
    }
}

#[cold]
fn anonymous_code(address: usize) -> Option<Range<usize>> {
    let mut found = None;
    each_mapping(|mapping, line| {
        if !mapping.contains(&address) {
            return true;
        }
        found = is_anonymous_code(line).then_some(mapping);
        false
    });
    found
}

/// `7f12000-7f13000 r-xp 00000000 00:00 0`, with a name in brackets if the program has set one. The kernel's own code is an
/// object.
fn is_anonymous_code(line: &[u8]) -> bool {
    let mut fields = line.split(|&byte| byte == b' ').filter(|field| !field.is_empty()).skip(1);
    let is_code = fields.next().is_some_and(|permissions| permissions.get(2) == Some(&b'x'));
    let name = fields.nth(3);
    is_code && name.is_none_or(|name| name.starts_with(b"[anon"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anonymous_code_is_executable_and_no_file() {
        let lines: [(&[u8], bool); 6] = [
            (b"7f1000-7f2000 r-xp 00000000 00:00 0 ", true),
            (b"7f1000-7f2000 rwxp 00000000 00:00 0", true),
            (b"7f1000-7f2000 r-xp 00000000 00:00 0    [anon:yjit]", true),
            (b"7f1000-7f2000 rw-p 00000000 00:00 0 ", false),
            (b"7f1000-7f2000 r-xp 00001000 fe:01 77   /lib/libc.so.6", false),
            (b"7f1000-7f2000 r-xp 00000000 00:00 0    [vdso]", false),
        ];
        for (line, expected) in lines {
            let text = String::from_utf8_lossy(line);
            assert_eq!(is_anonymous_code(line), expected, "{text}");
        }
    }

    #[test]
    fn code_of_an_object_is_none() {
        let mut code = JitCode::default();
        assert!(!code.contains(code_of_an_object_is_none as *const () as usize));
        assert!(!code.contains(8));
    }
}
