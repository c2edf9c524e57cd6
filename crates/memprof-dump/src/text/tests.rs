use super::*;

fn text(write: impl FnOnce(&mut Vec<u8>)) -> String {
    let mut out = Vec::new();
    write(&mut out);
    String::from_utf8(out).unwrap()
}

#[test]
fn addresses_have_no_leading_zeros() {
    for number in [0, 1, 0xf, 0x10, 0xfff, 0x7f00_1234_5678, u64::MAX] {
        assert_eq!(text(|out| address(out, number)), format!("\"{number:#x}\""));
    }
}

#[test]
fn strings_are_json() {
    let hostile = "a\"b\\c\0\u{1}\u{8}\t\n\u{c}\r\u{1f}\u{7f}\u{2028}é😀/";
    let json = text(|out| string(out, hostile));
    assert_eq!(serde_json::from_str::<String>(&json).unwrap(), hostile);
    assert!(json.contains("\\u007f") && json.contains("\\u0000") && json.contains("\\b"));
}

#[test]
fn interned_texts_are_written_as_others() {
    let mut tables = Tables::default();
    for byte in 0..=0x7fu8 {
        let whole = format!("é{}", char::from(byte));
        let id = tables.intern(&whole);
        let expected = text(|out| string(out, &whole));
        assert_eq!(text(|out| quoted_name(out, &tables, id)), expected);
    }
}

#[test]
fn bytes_that_are_no_text_are_replaced() {
    let mut out = Vec::new();
    assert!(!escape_bytes(&mut out, b"a\xff\"\xe2\x82"));
    assert_eq!(out, "a\u{fffd}\\\"\u{fffd}".as_bytes());
    out.clear();
    assert!(escape_bytes(&mut out, "é".as_bytes()));
}

#[test]
fn general_is_what_ruby_writes() {
    // Expected values from ObjectSpace.dump.
    for (number, expected) in [
        (0.0, "0.00000"),
        (-0.0, "-0.00000"),
        (1.0, "1.00000"),
        (-1.5, "-1.50000"),
        (12345.0, "12345.0"),
        (123456.0, "123456."),
        (999999.5, "1.00000e+06"),
        (1234567.0, "1.23457e+06"),
        (0.0001, "0.000100000"),
        (0.00001234, "1.23400e-05"),
        (3.14e100, "3.14000e+100"),
        (5e-324, "4.94066e-324"),
        (2.5, "2.50000"),
        (f64::INFINITY, "Inf"),
        (f64::NEG_INFINITY, "-Inf"),
        (f64::NAN, "NaN"),
    ] {
        assert_eq!(text(|out| general(out, number)), expected);
    }
}

#[test]
fn floats_are_numbers_or_named() {
    assert_eq!(text(|out| float(out, 1.5)), "1.5");
    assert_eq!(text(|out| float(out, f64::NAN)), "\"NaN\"");
    assert_eq!(text(|out| float(out, f64::NEG_INFINITY)), "\"-Infinity\"");
}

#[test]
fn base64_is_reversible() {
    assert_eq!(text(|out| base64(out, b"\xff\xfe")), "//4=");
    for length in 0..40u8 {
        let bytes: Vec<u8> = (0..length).map(|byte| byte.wrapping_mul(37)).collect();
        let written = text(|out| base64(out, &bytes));
        assert_eq!(from_base64(&written).unwrap(), bytes);
    }
    assert_eq!(from_base64("a"), None);
    assert_eq!(from_base64("a*=="), None);
}

#[test]
fn what_needs_an_escape_is_found_wherever_it_is() {
    for length in 0..40 {
        let clean = "abcdefgh".repeat(5)[..length].to_owned();
        assert_eq!(text(|out| escape(out, &clean)), clean);
        for place in 0..length {
            for special in ["\"", "\\", "\u{1f}", "\u{7f}", "é"] {
                let mut hostile = clean.clone();
                hostile.replace_range(place..=place, special);
                for json in [
                    text(|out| string(out, &hostile)),
                    text(|out| {
                        out.push(b'"');
                        assert!(escape_bytes(out, hostile.as_bytes()));
                        out.push(b'"');
                    }),
                ] {
                    assert_eq!(serde_json::from_str::<String>(&json).unwrap(), hostile);
                    assert!(!json.contains('\u{7f}'));
                }
            }
        }
    }
}
