//! Nonsensical queries: they must not panic or overflow the stack, and must fail quickly.

use std::time::{Duration, Instant};

use super::random::Random;
use crate::query::{Field, Query};

/// Parses on a stack as small as a Ruby thread's, and checks the error.
fn parse(query: &str) -> Result<Query, String> {
    let text = query.to_owned();
    let begin = Instant::now();
    let thread = std::thread::Builder::new().stack_size(256 * 1024);
    let parsed = thread.spawn(move || {
        let parsed = Query::parse(&text);
        match parsed {
            Ok(query) => {
                let canonical = query.to_string();
                assert_eq!(Query::parse(&canonical).as_ref(), Ok(&query));
                let _ = query.prepare();
                Ok(query)
            }
            Err(error) => {
                assert!(text.get(error.at..error.at + error.length).is_some());
                assert!(error.pointing(&text).len() < 2000);
                assert!(error.message.len() < 400, "{}", error.message);
                Err(error.message)
            }
        }
    });
    let parsed = parsed.unwrap().join().unwrap();
    assert!(begin.elapsed() < Duration::from_secs(20));
    parsed
}

#[test]
fn depth_is_bounded() {
    for open in ["(", "not ", "!", "!(", "not(("] {
        let error = parse(&open.repeat(100_000 / open.len())).unwrap_err();
        assert_eq!(error, "more than 100 levels of parentheses and negations");
    }
    let deep = |levels| format!("{}frozen{}", "(".repeat(levels), ")".repeat(levels));
    assert!(parse(&deep(100)).is_ok());
    assert!(parse(&deep(101)).is_err());
    let deep = |levels| format!("{}frozen{}", "!(old or ".repeat(levels), ")".repeat(levels));
    assert!(parse(&deep(50)).is_ok());
    assert!(parse(&deep(51)).is_err());
    // Closed levels do not count.
    assert!(parse(&vec!["!((frozen))"; 10_000].join(" and ")).is_ok());
    assert!(parse(&")".repeat(100_000)).is_err());
}

#[test]
fn length_alone_is_no_error() {
    assert!(parse(&vec!["frozen"; 100_000].join(" or ")).is_ok());
    let list: Vec<String> = (0..100_000u64).rev().map(|n| format!("{n:#x}")).collect();
    assert!(parse(&format!("address in ({})", list.join(","))).is_ok());
    assert!(parse(&format!("value = '{}'", "x".repeat(1_000_000))).is_ok());
    assert!(parse(&"x".repeat(1_000_000)).is_err());
    assert!(parse(&format!("type = {}", "ß".repeat(1_000_000))).is_err());
    assert!(parse(&" ".repeat(1_000_000)).is_err());
}

#[test]
fn numbers_may_be_huge() {
    let digits = "9".repeat(100_000);
    for number in [
        digits.clone(),
        format!("{digits}MiB"),
        format!("0x{digits}"),
        "18446744073709551615TiB".to_owned(),
        "99999999999999999999.5B".to_owned(),
    ] {
        assert!(parse(&format!("size > {number}")).is_err());
        assert!(parse(&format!("size in 1..{number}")).is_err());
    }
    assert!(parse(&format!("size > 0.{digits}TiB")).is_ok());
    assert!(parse(&format!("size > 1{digits}{digits}B{digits}")).is_err());
}

#[test]
fn regexps_are_bounded() {
    for regexp in [
        r"(\w{1000}){1000}",
        "((a{100}){100}){100}",
        r"[\w--\d]{1000}{1000}",
        "(?:){1000}{1000}{1000}{1000}",
        "a{99999999999}",
        "(a|b|ab)*c{1000}{1000}",
        r"\p{Greek}",
        r"(a)\1",
        r"\",
        "[",
        "(?P<a",
        "*",
        "a{2,1}",
        "[z-a]",
        r"\x{110000}",
        r"\xff(?-u)\xff",
    ] {
        let _ = parse(&format!("class =~ /{regexp}/"));
    }
    for piece in ["(", "(?i:", "a?", r"\w", "[", "x|", r"[\w&&", "a*"] {
        let _ = parse(&format!("class =~ /{}/", piece.repeat(100_000)));
        let _ = parse(&format!("class =~ /{}/i", piece.repeat(4096 / piece.len())));
    }
    let large = vec![r"class =~ /\w{32}/"; 32];
    assert!(parse(&large.join(" or ")).is_ok());
    let many = vec!["class =~ /a/"; 33];
    let error = parse(&many.join(" or ")).unwrap_err();
    assert_eq!(error, "more than 32 regexps; join them as /one|other/");
}

#[test]
fn any_text_gives_a_query_or_an_error() {
    const PIECES: [&str; 48] = [
        "class", "retained", "frozen", "address", "type", "root", "and", "or", "not", "in", "is",
        "none", "true", "(", ")", ",", "..", "...", ".", "=", "==", "!=", "<", ">=", "=~", "!~",
        "~", "!", "&&", "||", "\"a\"", "'", "\"", "/a/i", "/", "\\", "0x7f", "1.5MiB", "3", "10_0",
        "1e9", "STRING", "\0", "\u{7f}", "é", "🍎", "\n", "\u{202e}",
    ];
    let mut random = Random(0xdead_beef_cafe);
    let mut good = 0;
    for _ in 0..200_000 {
        let length = random.below(9);
        let mut text = String::new();
        for _ in 0..length {
            text.push_str(PIECES[random.below(PIECES.len())]);
            text.push_str(["", " "][random.below(2)]);
        }
        match Query::parse(&text) {
            Ok(query) => {
                good += 1;
                assert_eq!(Query::parse(&query.to_string()), Ok(query));
            }
            Err(error) => {
                assert!(text.get(error.at..error.at + error.length).is_some());
                assert!(error.pointing(&text).contains('^'));
            }
        }
    }
    assert!(good > 100, "{good}");
}

#[test]
fn nul_and_other_bytes_are_characters_as_any() {
    assert!(parse("class = \"a\0b\"").is_ok());
    assert!(parse("\0").is_err());
    assert!(parse("class =~ /\0/").is_ok());
    assert!(parse("class\0 = a").is_err());
    assert!(parse("\u{feff}frozen").is_err());
    assert_eq!(Field::parse("class\0"), None);
}
