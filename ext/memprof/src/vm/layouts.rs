//! Checks whether objects have the layout that memprof expects.
//!
//! The heap walk reads words of structs that no header declares. A Ruby newer than this memprof may have moved them, and
//! reading them would give wrong dumps or crash the process. Tracking only reads the first two words of each object, unchanged
//! since Ruby 2, so it works with any version.

use std::ffi::{CStr, c_int};
use std::sync::OnceLock;

use super::symbols::symbols;

/// Major and minor versions whose layouts were verified in the source code; see docs/ruby-internals.md.
const KNOWN: [(u8, u8); 5] = [(3, 1), (3, 2), (3, 3), (3, 4), (4, 0)];

/// `enum imemo_type` (internal/imemo.h).
pub const ENV: u32 = 0;
pub const CREF: u32 = 1;
pub const METHOD: u32 = 6;
pub const ISEQ: u32 = 7;
pub const CALLINFO: u32 = if cfg!(ruby_gte_4_0) { 10 } else { 11 };
pub const CALLCACHE: u32 = if cfg!(ruby_gte_4_0) { 11 } else { 12 };

/// Internal types that memprof recognizes by number, and their names in the VM.
const NUMBERS: [(u32, &str); 6] = [
    (ENV, "env"),
    (CREF, "cref"),
    (METHOD, "ment"),
    (ISEQ, "iseq"),
    (CALLINFO, "callinfo"),
    (CALLCACHE, "callcache"),
];

/// Whether the heap of this Ruby can be read. Checked once.
///
/// # Errors
/// If not, with the reason.
pub fn check() -> Result<(), String> {
    static ANSWER: OnceLock<Result<(), String>> = OnceLock::new();
    ANSWER.get_or_init(|| decide(running_version(), imemo_name)).clone()
}

/// Major and minor version of the running Ruby.
pub fn running_version() -> (u8, u8) {
    // SAFETY: three constants of libruby, which the extension is linked with.
    let [major, minor, _] = unsafe { rb_sys::ruby_api_version };
    // They are that small.
    (major as u8, minor as u8)
}

/// Whether the heap of a Ruby with this version and these names of internal types can be read.
fn decide(version: (u8, u8), name: impl Fn(u32) -> Option<String>) -> Result<(), String> {
    let (major, minor) = version;
    if !KNOWN.contains(&version) {
        return Err(format!(
            "memprof {} does not know how Ruby {major}.{minor} lays out its objects, so it does not read its heap: \
             update memprof. Allocations can be tracked",
            env!("CARGO_PKG_VERSION")
        ));
    }
    for (number, expected) in NUMBERS {
        let found = name(number);
        // A Ruby stripped of its names is trusted.
        if found.as_deref().is_some_and(|found| found != expected) {
            return Err(format!(
                "this Ruby {major}.{minor} was changed: its internal object {number} is {} and not {expected}, \
                 so memprof does not read its heap. Allocations can be tracked",
                found.unwrap_or_default()
            ));
        }
    }
    Ok(())
}

fn imemo_name(number: u32) -> Option<String> {
    let imemo_name = symbols().imemo_name?;
    // SAFETY: returns a static string for every imemo type of its version, and one that says so for others.
    let name = unsafe { CStr::from_ptr(imemo_name(number as c_int)) };
    Some(name.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn as_known(number: u32) -> Option<String> {
        let entry = NUMBERS.iter().find(|(known, _)| *known == number);
        entry.map(|(_, name)| (*name).to_owned())
    }

    #[test]
    fn known_versions_are_read() {
        for version in KNOWN {
            assert_eq!(decide(version, as_known), Ok(()));
            assert_eq!(decide(version, |_| None), Ok(()));
        }
    }

    #[test]
    fn versions_to_come_are_refused() {
        for (version, name) in [((4, 1), "4.1"), ((3, 5), "3.5"), ((5, 0), "5.0")] {
            let why = decide(version, as_known).expect_err("an unknown layout");
            assert!(why.contains(&format!("Ruby {name} ")), "{why}");
            assert!(why.contains("Allocations can be tracked"), "{why}");
        }
    }

    #[test]
    fn a_ruby_that_numbers_its_objects_otherwise_is_refused() {
        let shifted = |number| as_known(number + 1).or(as_known(number));
        let why = decide((3, 4), shifted).expect_err("other numbers");
        assert!(why.contains("is cref and not env"), "{why}");
    }
}
