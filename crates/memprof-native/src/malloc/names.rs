//! Addresses of native code in words.

use std::ffi::{CStr, c_char};
use std::mem::MaybeUninit;

/// The object and the function that an address lies in, as far as its exported names say, in the form of glibc's
/// `backtrace_symbols`: `/lib/libc.so.6(fopen+0x1a) [0x7f0123456789]`.
#[must_use]
pub fn describe(address: usize) -> String {
    let mut info = MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: any address may be asked for; the structure is there to be written.
    let found = unsafe { libc::dladdr(address as *const _, info.as_mut_ptr()) } != 0;
    // SAFETY: zeroes, and what the loader wrote.
    let info = unsafe { info.assume_init() };
    if !found {
        return format!("[{address:#x}]");
    }
    let object = text(info.dli_fname).unwrap_or_default();
    match text(info.dli_sname) {
        Some(function) => {
            let offset = address.wrapping_sub(info.dli_saddr as usize);
            format!("{object}({function}+{offset:#x}) [{address:#x}]")
        }
        None => {
            let offset = address.wrapping_sub(info.dli_fbase as usize);
            format!("{object}(+{offset:#x}) [{address:#x}]")
        }
    }
}

fn text(name: *const c_char) -> Option<String> {
    if name.is_null() {
        return None;
    }
    // SAFETY: a name of a loaded object, which ends with a NUL.
    let name = unsafe { CStr::from_ptr(name) };
    Some(name.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_its_object_and_function() {
        let text = describe(libc::getenv as *const () as usize + 2);
        assert!(
            text.contains("libc") && text.contains("(getenv+0x2) [0x"),
            "{text}"
        );
        assert_eq!(describe(8), "[0x8]");
    }
}
