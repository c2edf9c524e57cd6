//! A number unique to this process.

use std::time::{SystemTime, UNIX_EPOCH};

/// Random bits from the system, or else from clock and process id. Allocates nothing: also called in a forked child.
pub fn seed() -> u64 {
    let mut bytes = [0u8; 8];
    // SAFETY: writes that many bytes, or fails.
    if unsafe { libc::getentropy(bytes.as_mut_ptr().cast(), bytes.len()) } == 0 {
        return u64::from_ne_bytes(bytes);
    }
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    now.as_nanos() as u64 ^ u64::from(std::process::id()).rotate_left(40)
}
