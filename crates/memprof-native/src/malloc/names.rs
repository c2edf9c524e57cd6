//! Descriptions of native code addresses.

use std::ffi::{CStr, c_char};
use std::fs;
use std::mem::MaybeUninit;

use memprof_recording::{Frame, Native};

use crate::unwind::{JIT, each_mapping};

/// The objects and functions at these addresses, in the format of glibc's `backtrace_symbols`, followed by the source line,
/// as in a recording: `/lib/libc.so.6(fopen+0x1a) [0x7f0123456789]`. Objects have the names known to the kernel.
#[must_use]
pub fn describe(addresses: &[usize]) -> Vec<String> {
    let mut frames: Vec<Frame> =
        (addresses.iter()).map(|&address| Frame::Native(native(address))).collect();
    memprof_recording::name(&mut frames);
    frames.iter().map(Frame::location).collect()
}

/// Description of an address.
pub(super) fn native(address: usize) -> Native {
    if address == JIT {
        return Native::jit();
    }
    let Some(info) = look_up(address) else {
        return Native { address: address as u64, ..Native::default() };
    };
    let (function, distance) = name(&info, address).unwrap_or_default();
    Native {
        address: address as u64,
        module: kernels_name(text(info.dli_fname).unwrap_or_default(), info.dli_fbase as usize),
        offset: address.wrapping_sub(info.dli_fbase as usize) as u64,
        function: memprof_recording::demangled(function),
        distance: distance as u64,
        ..Native::default()
    }
}

/// The loader knows a library by the name that was requested, and a program by the one that it was started with. A relative
/// name may no longer be valid.
fn kernels_name(object: String, base: usize) -> String {
    let path = match object.starts_with('/') {
        true => (fs::canonicalize(&object).ok()).map(|path| path.display().to_string()),
        false => mapped_file(base),
    };
    path.unwrap_or(object)
}

/// The file mapped at an address.
fn mapped_file(address: usize) -> Option<String> {
    /// Fields before the path: range, protection, offset, device, inode.
    const FIELDS: usize = 5;
    let mut found = None;
    each_mapping(|mapping, line| {
        if !mapping.contains(&address) {
            return true;
        }
        let line = String::from_utf8_lossy(line);
        let mut rest = line.as_ref();
        for _ in 0..FIELDS {
            rest = rest.split_once(' ').map_or("", |(_, rest)| rest.trim_start());
        }
        found = rest.starts_with('/').then(|| rest.to_owned());
        false
    });
    found
}

/// The function at an address, as far as exported names show, and the offset in it.
pub(super) fn function(address: usize) -> Option<(String, usize)> {
    name(&look_up(address)?, address)
}

fn name(info: &libc::Dl_info, address: usize) -> Option<(String, usize)> {
    let distance = address.wrapping_sub(info.dli_saddr as usize);
    Some((text(info.dli_sname)?, distance))
}

fn look_up(address: usize) -> Option<libc::Dl_info> {
    let mut info = MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: any address is allowed; the structure is there to be written.
    let found = unsafe { libc::dladdr(address as *const _, info.as_mut_ptr()) } != 0;
    // SAFETY: zeroes, or values written by the loader.
    found.then(|| unsafe { info.assume_init() })
}

fn text(name: *const c_char) -> Option<String> {
    if name.is_null() {
        return None;
    }
    // SAFETY: a name of a loaded object, NUL-terminated.
    let name = unsafe { CStr::from_ptr(name) };
    Some(name.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_its_object_and_function() {
        let texts = describe(&[libc::getenv as *const () as usize + 2, 8, JIT]);
        let text = &texts[0];
        assert!(text.contains("libc") && text.contains("(getenv+0x2) [0x"), "{text}");
        assert_eq!(texts[1..], ["[0x8]", "<jit>"]);
    }
}
