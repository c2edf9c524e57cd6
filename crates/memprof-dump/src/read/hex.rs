//! Hexadecimal digits, eight at a time.

const ONES: u64 = 0x0101_0101_0101_0101;
const TOPS: u64 = 0x8080_8080_8080_8080;

/// The number with these eight digits, the first in the lowest byte; `None` if one is not a digit.
#[inline(always)]
pub(super) fn digits(text: u64) -> Option<u32> {
    // Added to a byte below 128, these set its top bit if it is at least the bound.
    let from = |bound: u64| text.wrapping_add(ONES * (0x80 - bound));
    let digit = from(0x30) & !from(0x3a);
    let lower = from(0x61) & !from(0x67);
    let upper = from(0x41) & !from(0x47);
    if (digit | lower | upper) & !text & TOPS != TOPS {
        return None;
    }
    let halves = (text & (ONES * 0x0f)) + (text >> 6 & ONES) * 9;
    let bytes = (halves << 4 | halves >> 8) & 0x00ff_00ff_00ff_00ff;
    let pairs = (bytes | bytes >> 8) & 0x0000_ffff_0000_ffff;
    Some(((pairs | pairs >> 16) as u32).swap_bytes())
}

/// The address in a text, such as `0x7f00`.
pub(super) fn address(text: &[u8]) -> Option<u64> {
    let digits = text.strip_prefix(b"0x")?;
    if digits.is_empty() {
        return None;
    }
    let mut address: u64 = 0;
    for &byte in digits {
        let digit = char::from(byte).to_digit(16)?;
        if address >> 60 != 0 {
            return None;
        }
        address = address << 4 | u64::from(digit);
    }
    Some(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eight_digits_are_a_number() {
        let read = |text: &[u8; 8]| digits(u64::from_le_bytes(*text));
        assert_eq!(read(b"7fdcd17d"), Some(0x7fdc_d17d));
        assert_eq!(read(b"00000000"), Some(0));
        assert_eq!(read(b"FFffAa09"), Some(0xffff_aa09));
        for wrong in (0..=255).filter(|byte: &u8| !byte.is_ascii_hexdigit()) {
            for place in 0..8 {
                let mut text = *b"1a2b3c4d";
                text[place] = wrong;
                assert_eq!(read(&text), None, "{text:?}");
            }
        }
        for right in (0..=255).filter(u8::is_ascii_hexdigit) {
            assert!(read(&[right; 8]).is_some());
        }
    }

    #[test]
    fn an_address_has_any_number_of_digits() {
        assert_eq!(address(b"0x0"), Some(0));
        assert_eq!(address(b"0x15e5018"), Some(0x15e_5018));
        assert_eq!(address(b"0xffffffffffffffff"), Some(u64::MAX));
        assert_eq!(address(b"0x00000000000000000001"), Some(1));
        for wrong in [&b"0x"[..], b"", b"7f", b"0x-1", b"0x10000000000000000", b"0x1g"] {
            assert_eq!(address(wrong), None);
        }
    }
}
