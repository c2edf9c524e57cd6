use super::{Dialect, LONGEST, normalize};

fn text(sql: &str) -> String {
    normalize(sql.as_bytes(), Dialect::Sqlite)
}

fn text_of(sql: &str, dialect: Dialect) -> String {
    normalize(sql.as_bytes(), dialect)
}

#[test]
fn replaces_literals_and_placeholders() {
    let cases = [
        ("SELECT * FROM books WHERE id = 17", "SELECT * FROM books WHERE id = ?"),
        ("select 'it''s', -1.5e-3, +.5, 0x1F", "select ?"),
        (
            "where a=$1 and b = ?2 and c = :name and d5 = 5",
            "where a=? and b = ? and c = :name and d5 = ?",
        ),
        (
            "SELECT \"books\".* FROM \"books\" LIMIT ?  OFFSET 10",
            "SELECT \"books\".* FROM \"books\" LIMIT ? OFFSET ?",
        ),
        ("select x'4F', n'a', a - 5, t1.c2 from t1", "select ?, a - ?, t1.c2 from t1"),
        ("select 1;", "select ?"),
    ];
    for (sql, expected) in cases {
        assert_eq!(text(sql), expected);
    }
}

#[test]
fn folds_lists_blanks_and_comments() {
    let cases = [
        ("a IN (1, 2,3 , 4)", "a IN (?)"),
        ("a in ((1,2),(3,4) , (5,6))", "a in ((?))"),
        (
            "insert into t (a, b) values (1, 'x'), (2, 'y'), (3, 'z')",
            "insert into t (a, b) values (?)",
        ),
        (" select  1\n\t /* controller:orders id:7 */ + 2 -- bob\n from t ", "select ? + ? from t"),
    ];
    for (sql, expected) in cases {
        assert_eq!(text(sql), expected);
    }
    let long = format!("insert into t values {}", vec!["(1, 'a')"; 5000].join(", "));
    assert_eq!(text(&long), "insert into t values (?)");
}

#[test]
fn knows_the_strings_of_each_database() {
    use Dialect::{Mysql, Other, Postgres};
    let cases = [
        (Mysql, r#"select "bob", 'it\'s secret' # c"#, "select ?"),
        (Mysql, "select `a b`.c from `it's`", "select `a b`.c from `it's`"),
        (Postgres, r"select E'it\'s secret', '\', b", "select ?, b"),
        (
            Postgres,
            "select $$it's$$, $x$ $$secret $x$, a[1], '{1}'::int[]",
            "select ?, a[?], ?::int[]",
        ),
        (Postgres, "select /* a /* b */ secret */ ARRAY['secret', 'b']", "select ARRAY[?]"),
        (
            Postgres,
            "select \"a\" from \"b\" where \"c\" = \"d\"",
            "select \"a\" from \"b\" where \"c\" = \"d\"",
        ),
        (Other, "select q'[it's secret]', [a b] from [t]", "select ?, [a b] from [t]"),
        (Other, "select ARRAY['secret']", "select ARRAY[?]"),
    ];
    for (dialect, sql, expected) in cases {
        assert_eq!(text_of(sql, dialect), expected);
    }
}

#[test]
fn takes_double_quotes_for_strings_where_values_stand() {
    let cases = [
        ("select * from t where name = \"Bob\"", "select * from t where name = ?"),
        (
            "insert into \"t\" (\"a\", \"b\") values (\"Bob\", \"x\"), (\"Eve\", 1)",
            "insert into \"t\" (\"a\", \"b\") values (?)",
        ),
        ("name in (\"Bob\") or lower(\"Bob\") like \"B\"", "name in (?) or lower(?) like ?"),
        ("\"a\" between \"x\" and \"y\" and \"b\" = 1", "\"a\" between ? and ? and \"b\" = ?"),
        (
            "on \"a\".\"id\" = \"b\".\"a_id\" and \"c\"=1",
            "on \"a\".\"id\" = \"b\".\"a_id\" and \"c\"=?",
        ),
        ("id in (select \"a\", \"b\" from \"t\")", "id in (select \"a\", \"b\" from \"t\")"),
        ("update \"t\" set \"a\" = \"Bob\", \"b\" = 2", "update \"t\" set \"a\" = ?, \"b\" = ?"),
    ];
    for (sql, expected) in cases {
        assert_eq!(text(sql), expected);
    }
}

#[test]
fn shows_nothing_behind_the_first_literal_if_one_has_no_end() {
    for sql in
        ["select a, 'x', 'secret' from 'b", "select a, 'x' /* secret", "select a, 'x', \"secret"]
    {
        assert_eq!(text(sql), "select a,?…");
    }
    assert_eq!(text_of("select $$x", Dialect::Postgres), "?…");
}

#[test]
fn cuts_what_is_long() {
    let names = vec!["größe"; 1000].join(", ");
    let cut = text(&names);
    assert!(cut.len() > LONGEST - 4 && cut.len() <= LONGEST + 3 && cut.ends_with('…'));
    assert!(!cut.contains('\u{fffd}'));
    let bulk = format!("insert into t values ('{}') returning id", "secret ".repeat(20_000));
    assert_eq!(text(&bulk), "insert into t values (…");
}

#[test]
fn takes_any_bytes() {
    let bytes = b"'\"`[$?-+./*#\\(), ea0\xff\n";
    let mut seed = 7u32;
    for _ in 0..20_000 {
        let sql: Vec<u8> = (0..seed % 24)
            .map(|_| {
                seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                bytes[(seed >> 16) as usize % bytes.len()]
            })
            .collect();
        seed = seed.wrapping_add(1);
        for dialect in [Dialect::Mysql, Dialect::Postgres, Dialect::Sqlite, Dialect::Other] {
            assert!(normalize(&sql, dialect).len() <= sql.len() * 3 + 4);
        }
    }
}

#[test]
fn knows_adapters() {
    let dialects = ["Mysql2", "Trilogy", "PostGIS", "SQLite", "SQLServer"].map(Dialect::of);
    use Dialect::{Mysql, Other, Postgres, Sqlite};
    assert_eq!(dialects, [Mysql, Mysql, Postgres, Sqlite, Other]);
}
