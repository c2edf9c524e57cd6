//! Texts of system errors.

use std::io;

/// The system's own text, without the error number that Rust appends.
pub fn text(error: &io::Error) -> String {
    let text = error.to_string();
    let number = error.raw_os_error().map(|code| format!(" (os error {code})"));
    match number.and_then(|number| text.strip_suffix(&number)) {
        Some(text) => text.to_owned(),
        None => text,
    }
}
