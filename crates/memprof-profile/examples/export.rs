//! Writes a small profile into a directory in every format, and its contents as `report.json`.
//!
//! `cargo run -p memprof-profile --example export -- DIRECTORY`; spec/exports checks the files with their viewers.

use std::fs;
use std::path::PathBuf;

use memprof_profile::export::{Format, Value, export};
use memprof_profile::profile;

#[path = "../src/export/sample.rs"]
mod sample;

fn main() -> std::io::Result<()> {
    let directory = PathBuf::from(std::env::args_os().nth(1).expect("usage: export DIRECTORY"));
    let profile = sample::profile();
    fs::create_dir_all(&directory)?;
    fs::write(directory.join("report.json"), profile.to_json_value().to_string())?;
    for (name, format) in [
        ("profile.collapsed", Format::Collapsed),
        ("profile.speedscope.json", Format::Speedscope),
        ("profile.firefox.json", Format::Firefox),
        ("profile.pprof.pb.gz", Format::Pprof),
    ] {
        fs::write(directory.join(name), export(&profile, format, Value::AllocatedBytes))?;
    }
    Ok(())
}
