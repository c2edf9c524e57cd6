//! Identifies frames: file, name, and owner of the code.

use std::ffi::c_int;
use std::sync::OnceLock;

use memprof_profile::sites::FrameKey;
use rb_sys::VALUE;

use super::ruby_object::text;

/// Directory of memprof's own Ruby files, with a slash, and its main file.
static OWN: OnceLock<[String; 2]> = OnceLock::new();

/// Sets the location of memprof's own Ruby files: its main file, and a directory of the same name.
pub fn set_own(main_file: &str) {
    OWN.get_or_init(|| [format!("{}/", main_file.trim_end_matches(".rb")), main_file.to_owned()]);
}

/// True for a file of memprof.
pub fn is_own(file: &str) -> bool {
    OWN.get().is_some_and(|[directory, main]| file == main || file.starts_with(directory.as_str()))
}

/// True for a file of user code.
pub fn is_users(file: &str) -> bool {
    !is_own(file) && !memprof_paths::is_vms(file.as_bytes())
}

/// True for a method written in C.
pub fn is_native(frame: VALUE) -> bool {
    // SAFETY: a frame that rb_profile_frames just wrote, so alive; returns nil or a Fixnum.
    let line = unsafe { rb_sys::rb_profile_frame_first_lineno(frame) };
    line == rb_sys::Qnil as VALUE
}

/// A line number for reports: 0, as for an unknown one, if it is negative. Evaluated code may have any number.
pub fn line(number: c_int) -> u32 {
    u32::try_from(number).unwrap_or(0)
}

/// The key of a frame, without allocating a Ruby object: these functions return existing data of the VM.
pub fn key_of(frame: VALUE) -> FrameKey {
    if is_native(frame) {
        // SAFETY: a frame that is alive (see `is_native`).
        let label = unsafe { text(rb_sys::rb_profile_frame_method_name(frame)) };
        return FrameKey {
            file: "".into(),
            label: label.unwrap_or_default(),
            first_line: 0,
            native: Some(frame),
        };
    }
    // SAFETY: a frame that is alive (see `is_native`).
    unsafe {
        let line = rb_sys::rb_profile_frame_first_lineno(frame);
        FrameKey {
            file: text(rb_sys::rb_profile_frame_path(frame)).unwrap_or_default().into(),
            label: text(rb_sys::rb_profile_frame_base_label(frame)).unwrap_or_default(),
            // A Fixnum: the number shifted left by one.
            first_line: u32::try_from(line as usize >> 1).unwrap_or(0),
            native: None,
        }
    }
}

/// True for code from a loaded file; evaluated code may claim any path and line.
pub fn is_loaded(frame: VALUE) -> bool {
    // SAFETY: a frame that rb_profile_frames just wrote, so alive; returns nil or a String that the VM holds.
    unsafe { rb_sys::rb_profile_frame_absolute_path(frame) != rb_sys::Qnil as VALUE }
}
