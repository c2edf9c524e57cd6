//! `Memprof::Native.iseqs`.

use std::io::{self, ErrorKind::Unsupported};

use magnus::{Error, Object, RArray, RModule, Ruby, function};

use super::count_objects::failure;
use super::dump;
use crate::vm::{iseqs, layouts, tracker};

pub fn init(native: RModule) -> Result<(), Error> {
    native.define_singleton_method("iseqs", function!(rows, 0))
}

/// Rows of path, label, method or nil, first line, count, bytes; most bytes first.
fn rows(ruby: &Ruby) -> Result<RArray, Error> {
    layouts::check().map_err(|why| dump::failure(ruby, &io::Error::new(Unsupported, why)))?;
    let rows = iseqs::rows().map_err(|why| failure(ruby, why))?;
    tracker::suspended(|| {
        let array = ruby.ary_new_capa(rows.len());
        for row in rows {
            array.push((row.path, row.label, row.method, row.first_line, row.count, row.bytes))?;
        }
        Ok(array)
    })
}
