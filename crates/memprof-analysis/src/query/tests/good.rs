//! Valid queries, and how they are parsed.

use crate::query::Query;

/// Queries and their canonical text.
const GOOD: &[(&str, &str)] = &[
    (
        "class =~ /Session/ and retained > 1MiB and file ~ \"app/\"",
        "class =~ /Session/ and retained > 1MiB and file ~ \"app/\"",
    ),
    // Operators.
    ("line = 1", "line = 1"),
    ("line == 1", "line = 1"),
    ("line is 1", "line = 1"),
    ("line != 1", "line != 1"),
    ("line is not 1", "line != 1"),
    ("line<1||line>2&&line<=3", "line < 1 or line > 2 and line <= 3"),
    ("line >= 1 AND NOT line IN 3..7", "line >= 1 and not line in 3..7"),
    ("line not in 3 .. 7", "line not in 3..7"),
    ("!frozen", "not frozen"),
    ("!!frozen", "not not frozen"),
    ("! ( frozen or old )", "not (frozen or old)"),
    ("(((frozen)))", "frozen"),
    ("(frozen and old) or shared", "frozen and old or shared"),
    ("frozen and (old or shared)", "frozen and (old or shared)"),
    ("frozen and (old and shared)", "frozen and (old and shared)"),
    ("frozen or (old or shared)", "frozen or (old or shared)"),
    // Booleans.
    ("frozen = true", "frozen"),
    ("frozen != true", "frozen = false"),
    ("frozen = false", "frozen = false"),
    ("frozen != false", "frozen"),
    ("frozen is not true", "frozen = false"),
    ("frozen is none", "frozen is none"),
    // Unknown values.
    ("file = none", "file is none"),
    ("file is none", "file is none"),
    ("file != none", "file is not none"),
    ("generation is not none", "generation is not none"),
    ("class = 'none'", "class = \"none\""),
    // Numbers.
    ("line = 10_000", "line = 10000"),
    ("line in (3, 1, 2, 1)", "line in (1, 2, 3)"),
    ("line = 0x10", "line = 16"),
    ("line = 18446744073709551615", "line = 18446744073709551615"),
    ("size = 0", "size = 0"),
    ("size = 480", "size = 480"),
    ("size = 480B", "size = 480"),
    ("size = 1KB", "size = 1000"),
    ("size = 1.024kb", "size = 1KiB"),
    ("size = 1.5MiB", "size = 1536KiB"),
    ("size = 1.5 MiB and frozen", "size = 1536KiB and frozen"),
    ("size = 0.1KiB", "size = 102"),
    ("size = 2GB", "size = 1953125KiB"),
    ("size = 3 GIB", "size = 3GiB"),
    ("size = 1_0.2_5KB", "size = 10250"),
    ("size = 16777215TiB", "size = 16777215TiB"),
    ("size in 1KiB..1.5MiB", "size in 1KiB..1536KiB"),
    ("memsize in (1KiB, 40)", "size in (40, 1KiB)"),
    ("length > 1KiB", "length > 1024"),
    ("address = 0x7F00", "address = 0x7f00"),
    ("address in 0x7f00..0x7fff", "address in 0x7f00..0x7fff"),
    ("address = 16", "address = 0x10"),
    // Texts.
    ("class = Shop::Order", "class = \"Shop::Order\""),
    ("class = 'it'", "class = \"it\""),
    (r#"value = 'a"b'"#, r#"value = "a\"b""#),
    (
        r#"value = "a'b\'\"\\\n\r\t\0\e\u{7f}\u{1F600}""#,
        "value = \"a'b'\\\"\\\\\\n\\r\\t\\0\\e\\u{7f}😀\"",
    ),
    ("value = \"\"", "value = \"\""),
    ("value = 'größe 🍎'", "value = \"größe 🍎\""),
    ("class in (B, \"A\", 'B')", "class in (\"A\", \"B\")"),
    ("class not in (A)", "class not in (\"A\")"),
    ("file !~ \"app/\"", "file !~ \"app/\""),
    ("file !~ /app/", "file !~ /app/"),
    ("class ~ Order", "class ~ \"Order\""),
    ("class = And", "class = \"And\""),
    ("class = true", "class = \"true\""),
    ("type = string", "type = \"STRING\""),
    ("type in (T_HASH, t_array)", "type in (\"ARRAY\", \"HASH\")"),
    ("type = class", "type = \"CLASS\""),
    ("type ~ 'str'", "type ~ \"STR\""),
    ("type =~ /^str/", "type =~ /^str/i"),
    ("change = new or change = survived", "change = \"new\" or change = \"survived\""),
    // Regexps.
    (r"file =~ /app\/models/i", r"file =~ /app\/models/i"),
    (r"file =~ /a\\/", r"file =~ /a\\/"),
    (r"file =~ /\.rb$/", r"file =~ /\.rb$/"),
    ("value =~ /größe/i", "value =~ /größe/i"),
    ("value =~ //", "value =~ //"),
    (r"value =~ /\d+ \w+ \bx/", r"value =~ /\d+ \w+ \bx/"),
    // Aliases; blanks.
    ("gen > 3 and path ~ x", "generation > 3 and file ~ \"x\""),
    ("\n frozen\n\tand old \u{3000}", "frozen and old"),
];

#[test]
fn are_understood() {
    for (text, canonical) in GOOD {
        let query = Query::parse(text).unwrap_or_else(|error| {
            panic!("{text}: {error}\n{}", error.pointing(text));
        });
        assert_eq!(query.to_string(), *canonical);
        assert_eq!(Query::parse(canonical), Ok(query), "{canonical}");
    }
}
