//! Capturing the heap: a [`Builder`] receives the same records as a dump.

use std::io;

use memprof_heap::Builder;

use super::{Request, check, pass, with_quiet_heap};

/// Passes the whole heap to a builder. Called with the GVL, after [`super::prepare`].
///
/// # Errors
/// If the heap cannot be read now, or texts cannot be written.
pub fn capture(mut builder: Builder, request: Request) -> io::Result<Builder> {
    check()?;
    with_quiet_heap(|| pass(&mut builder, request))?;
    Ok(builder)
}
