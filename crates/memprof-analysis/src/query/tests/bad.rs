//! Invalid queries, each followed by carets under the faulty spot, and by the message.

use crate::query::{Error, Query};

const BAD: &str = r#"
retaned > 3
^^^^^^^ unknown field "retaned"; did you mean retained?
frozen and Class = 3
           ^^^^^ unknown field "Class"; did you mean class?
frobnicated
^^^^^^^^^^^ unknown field "frobnicated"
retained > "x"
           ^^^ retained is a size: expected a number, as in retained > 1MiB
class > 3
      ^ class is a text: it can be compared with = != ~ =~ !~, not with >
class = 3
        ^ class is a text: expected quotes, as in class = "..."
class
^^^^^ class is a text: compare it, as class = "..."
frozen and retained
           ^^^^^^^^ retained is a size: compare it, as retained > 1MiB
line ~ 3
     ^ line is a number: it can be compared with = != < <= > >=, not with ~
frozen > true
       ^ frozen is true or false: it can be compared with = !=, not with >
frozen = 1
         ^ frozen is true or false: expected true, false or none
frozen in (true)
       ^^ frozen is true or false: it is not asked with in
frozen not old
           ^^^ expected in
frozen old
       ^^^ expected and, or, or the end
line = 1 2
         ^ expected and, or, or the end
line =
      ^ line is a number: expected a number, as in line > 10
line = )
       ^ line is a number: expected a number, as in line > 10
line === 3
       ^ line is a number: expected a number, as in line > 10
address > x
          ^ address is an address: expected a number, as in address = 0x7f00
(frozen
^ this parenthesis is not closed
frozen and (old or (shared)
           ^ this parenthesis is not closed
frozen)
      ^ no parenthesis is open here
(frozen old)
        ^^^ expected and, or, or )
()
 ^ expected a field, as class or retained
frozen and
          ^ expected a field, as class or retained
and frozen
^^^ expected a field, as class or retained
not
   ^ expected a field, as class or retained
"class" = 3
^^^^^^^ expected a field, as class or retained
size > 3MIX
        ^^^ unknown unit "MIX"; expected one of: B, KB, MB, GB, TB, KiB, MiB, GiB, TiB
size > 10_
         ^ unknown unit "_"; expected one of: B, KB, MB, GB, TB, KiB, MiB, GiB, TiB
size > 1.5
       ^^^ a fraction needs a unit, as 1.5MiB
size > 16777216TiB
       ^^^^^^^^^^^ the number does not fit into 64 bits
line > 18446744073709551616
       ^^^^^^^^^^^^^^^^^^^^ the number does not fit into 64 bits
address = 0x12345678901234567
          ^^^^^^^^^^^^^^^^^^^ the address does not fit into 64 bits
address = 0x7fz
          ^^^^^ an address is 0x and hexadecimal digits, as 0x7f00
address = 0x
          ^^ an address is 0x and hexadecimal digits, as 0x7f00
line > 3KiB
       ^^^^ line is a number: it has no unit of bytes
line > -3
       ^ numbers are not negative; a text with a - needs quotes
line in 7..3
        ^^^^ the range ends before it begins
line in 3...7
         ^^^ a range has two dots, and includes both ends
line in 3
         ^ expected .. and the end of the range
line in 3..
           ^ line is a number: expected a number, as in line > 10
line in ()
         ^ line is a number: expected a number, as in line > 10
line in (1, "x")
            ^^^ line is a number: expected a number, as in line > 10
line in (1 2)
           ^ expected , or )
line in (1, 2
        ^ this parenthesis is not closed
line in "a"
        ^^^ expected a list, as (1, 2), or a range, as 3..7
class in "a"
         ^^^ expected a list, as ("a", "b")
class in 3..7
         ^ expected a list, as ("a", "b")
class in ("a", /b/)
               ^^^ a regexp needs =~ or !~ before it
class in (none)
          ^^^^ write class is none, or quotes for a text
class = /a/
        ^^^ a regexp needs =~ or !~ before it
class =~ "a"
         ^^^ =~ needs a regexp, as /.../; ~ asks for a text that is contained
class =~ 3
         ^ expected a regexp, as /.../
class ~ none
        ^^^^ none can be compared only with = and !=
file = name
       ^^^^ a field cannot be compared with a field; a text needs quotes here
gem = puma-5
          ^ numbers are not negative; a text with a - needs quotes
file = app/models
          ^^^^^^^ the regexp has no end: its second / is missing
file = $stdin
       ^ '$' has no meaning here; a text needs quotes
frozen & old
       ^ write && or and
frozen | old
       ^ write || or or
type = strng
       ^^^^^ unknown type "STRNG"; did you mean STRING?
change = changed
         ^^^^^^^ unknown change "changed"; expected one of: new, gone, kept, survived
class = "abc
        ^^^^ the text has no end: its quote is missing
class = 'abc\
        ^^^^^ the text has no end: its quote is missing
class = "a\qb"
          ^^ unknown escape; expected one of: \\ \" \' \n \r \t \0 \e \u{1f600}
class = "\u{d800}"
         ^^^^^^^^ unknown escape; expected one of: \\ \" \' \n \r \t \0 \e \u{1f600}
class = "\u12"
         ^^ unknown escape; expected one of: \\ \" \' \n \r \t \0 \e \u{1f600}
class =~ /abc and frozen
         ^^^^^^^^^^^^^^^ the regexp has no end: its second / is missing
class =~ /a(/
         ^^^^ the regexp is not valid: unclosed group
class =~ /a(?=b)/i and frozen
         ^^^^^^^^^ the regexp is not valid: look-around, including look-ahead and look-behind, is not supported
class =~ /a/mx
            ^^ unknown flag of a regexp; expected i: ignore case
class =~ /(\w{100}){100}/
         ^^^^^^^^^^^^^^^^ the regexp is too large when compiled
value = "größe" and größ > 3
                    ^^^^ unknown field "größ"
value = "日本" and lines > 3
                   ^^^^^ unknown field "lines"; did you mean line?
value = "e̋🍎" and (frozen
                  ^ this parenthesis is not closed
value = "größe
        ^^^^^^ the text has no end: its quote is missing
"#;

#[test]
fn errors_name_the_fault_and_its_place() {
    let lines: Vec<&str> = BAD.lines().skip(1).collect();
    for pair in lines.chunks(2) {
        let (query, expected) = (pair[0], pair[1]);
        let error = Query::parse(query).expect_err(query);
        let pointing = error.pointing(query);
        assert_eq!(format!("{pointing} {error}"), format!("{query}\n{expected}"));
        let spot = query.get(error.at..error.at + error.length);
        let spot = spot.unwrap_or_else(|| panic!("{query}: not a whole character"));
        let carets = expected.trim_start().find(' ').unwrap();
        if query.is_ascii() {
            assert_eq!(carets, spot.len().max(1), "{query}");
            assert_eq!(expected.find('^'), Some(error.at), "{query}");
        }
    }
}

#[test]
fn the_spot_is_in_bytes() {
    let query = "value = \"größe\" and retaned > 3";
    let error = Query::parse(query).unwrap_err();
    assert_eq!((error.at, error.length), (22, 7));
    assert_eq!(&query[22..29], "retaned");
}

#[test]
fn nothing_is_no_query() {
    for query in ["", " ", "\n\t"] {
        let error = Query::parse(query).unwrap_err();
        assert_eq!(error.message, "the query is empty");
        assert_eq!((error.at, error.length), (0, 0));
        assert!(error.pointing(query).ends_with("\n^"), "{query:?}");
    }
}

#[test]
fn only_the_line_with_the_spot_is_shown() {
    let query = "frozen\n  and olt\n  and shared";
    let error = Query::parse(query).unwrap_err();
    assert_eq!(error.pointing(query), "  and olt\n      ^^^");
    let query = "frozen and \"a\n\nb\"";
    let error = Query::parse(query).unwrap_err();
    assert_eq!(error.pointing(query), "frozen and \"a\n           ^^");
}

#[test]
fn of_a_long_line_only_a_part_is_shown() {
    let query = format!("{}olt{}", "old and ".repeat(100), " and old".repeat(100));
    let error = Query::parse(&query).unwrap_err();
    let shown = error.pointing(&query);
    let (line, carets) = shown.split_once('\n').unwrap();
    assert_eq!(line.chars().count(), 122);
    assert!(line.starts_with('…') && line.ends_with('…'));
    assert_eq!(carets, format!("{}^^^", " ".repeat(61)));
    assert_eq!(line.chars().skip(61).take(3).collect::<String>(), "olt");
}

#[test]
fn what_would_move_the_cursor_is_replaced() {
    let query = "value = \"\u{1b}[2J\u{202e}\"\tand\0";
    let error = Query::parse(query).unwrap_err();
    assert_eq!(
        error.pointing(query),
        "value = \"\u{fffd}[2J\u{fffd}\" and\u{fffd}\n                   ^"
    );
}

#[test]
fn a_spot_outside_of_the_query_is_no_panic() {
    for (at, length) in [(0, 99), (1, 1), (2, 0), (99, 99), (usize::MAX, usize::MAX)] {
        let message = String::new();
        let error = Error { message, at, length };
        for query in ["", "ö", "öä\nü", "\n"] {
            assert!(error.pointing(query).contains('^'));
        }
    }
}
