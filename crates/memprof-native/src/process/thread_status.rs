//! A thread's /proc/TID/status.

use std::fs;

/// The value of a line, by its name.
pub fn field(thread: impl std::fmt::Display, name: &str) -> Option<String> {
    // A process name may contain any bytes.
    let status = fs::read(format!("/proc/{thread}/status")).ok()?;
    let status = String::from_utf8_lossy(&status);
    let mut lines = status.lines().filter_map(|line| line.split_once(':'));
    let (_, value) = lines.find(|(key, _)| *key == name)?;
    Some(value.trim().to_owned())
}

/// Whether a system call filter (seccomp) applies to a thread.
pub fn is_filtered(thread: i32) -> bool {
    field(thread, "Seccomp").is_some_and(|mode| mode != "0")
}

/// Whether a thread has filters that this program does not have. Shared filters, such as those of a container, permit what
/// this program does.
pub fn has_more_filters(thread: i32) -> bool {
    let filters = |thread: &str| -> u32 {
        let count = field(thread, "Seccomp_filters").and_then(|count| count.parse().ok());
        // Before Linux 5.9 the number is unknown.
        count.unwrap_or(1)
    };
    let own = match field("self", "Seccomp").as_deref() {
        None | Some("0") => 0,
        _ => filters("self"),
    };
    filters(&thread.to_string()) > own
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_is_there() {
        let own = std::process::id() as i32;
        assert_eq!(field(own, "Tgid"), Some(own.to_string()));
        assert_eq!(field(own, "Nothing"), None);
        assert_eq!(field(i32::MAX, "Tgid"), None);
        assert!(!has_more_filters(own) || !is_filtered(own));
    }
}
