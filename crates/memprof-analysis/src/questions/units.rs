//! Human-readable numbers.

/// `1,234,567`.
pub(super) fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `12.3 MiB`.
pub(super) fn bytes(size: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    if size < 1024 {
        return format!("{size} B");
    }
    let mut value = size as f64 / 1024.0;
    let mut unit = 0;
    while value >= 1023.95 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{value:.1} {}", UNITS[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_written_for_people() {
        let sizes = [0, 1023, 1024, 1_048_524, 1_048_576, u64::MAX];
        let texts: Vec<String> = sizes.into_iter().map(bytes).collect();
        assert_eq!(texts, ["0 B", "1023 B", "1.0 KiB", "1023.9 KiB", "1.0 MiB", "16384.0 PiB"]);
        assert_eq!([1, 999, 1000, 1_234_567].map(thousands), ["1", "999", "1,000", "1,234,567"]);
    }
}
