//! A number that no other process has.

use std::time::{SystemTime, UNIX_EPOCH};

/// Random bits of the system; of clock and process, should it have none. Allocates nothing: a forked child asks, too.
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
