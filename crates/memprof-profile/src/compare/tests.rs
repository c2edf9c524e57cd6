use serde_json::{Value, json};

use super::*;

/// A report of sites: (file, line, method, class, objects, text).
fn report(sites: &[(&str, u32, &str, &str, u64, &str)]) -> Value {
    let rows: Vec<Value> = sites
        .iter()
        .map(|&(file, line, method, class, objects, _)| {
            let amount = json!({"objects": objects, "bytes": objects * 40});
            let none = json!({"objects": 0, "bytes": 0});
            json!({"file": file, "line": line, "method": method, "class": class, "allocated": amount, "retained": none})
        })
        .collect();
    let mut sources = json!({});
    for (file, line, _, _, _, text) in sites {
        sources[file][line.to_string()] = json!(text);
    }
    json!({
        "format": "memprof-report", "version": 1, "meta": {"directory": "/srv/shop", "runtime": "ruby", "sample": 1},
        "sites": rows, "sources": sources
    })
}

fn side(reports: &[Value]) -> Side {
    let named = |report: &Value| ("a report".to_owned(), report.to_string());
    let texts: Vec<_> = reports.iter().map(named).collect();
    Side::read(&texts).expect("reports")
}

fn compared(before: &[Value], after: &[Value]) -> Comparison {
    compare(&side(before), &side(after), 0, false)
}

/// Lines as (line after, where it was, how matched, change in objects).
fn summary(comparison: &Comparison) -> Vec<(u32, Option<&str>, Match, i64)> {
    let lines = comparison.lines.iter();
    lines
        .map(|line| {
            let change = line.changes.allocated_objects.change;
            (line.line, line.was.as_deref(), line.matched, change)
        })
        .collect()
}

#[test]
fn finds_lines_that_moved_by_their_text() {
    let before = report(&[
        ("/srv/shop/a.rb", 10, "A#x", "String", 100, "x = y.dup"),
        ("/srv/shop/a.rb", 20, "A#z", "String", 50, "z.to_s"),
    ]);
    let after = report(&[
        ("/srv/shop/a.rb", 10, "A#x", "String", 7, "fresh"),
        ("/srv/shop/a.rb", 14, "A#x", "String", 130, "x = y.dup"),
        ("/srv/shop/a.rb", 24, "A#renamed", "String", 51, "z.to_s"),
    ]);
    assert_eq!(
        summary(&compared(&[before], &[after])),
        [
            (14, Some("a.rb:10"), Match::Moved, 30),
            (10, None, Match::New, 7),
            (24, Some("a.rb:20"), Match::MethodRenamed, 1),
        ]
    );
}

#[test]
fn takes_the_nearest_line_of_the_method_where_the_text_changed() {
    let before =
        report(&[("a.rb", 10, "A#x", "String", 1, "one"), ("a.rb", 20, "A#x", "String", 2, "two")]);
    let after = report(&[("a.rb", 19, "A#x", "String", 5, "other")]);
    assert_eq!(
        summary(&compared(&[before], &[after])),
        [(19, Some("a.rb:20"), Match::Nearest, 3), (10, None, Match::Gone, -1)]
    );
}

#[test]
fn knows_a_file_that_was_renamed_and_a_gem_of_another_version() {
    let before = report(&[
        ("/srv/shop/old.rb", 1, "A#x", "Hash", 1, "{}.merge(a)"),
        ("/g/gems/rack-3.0.1/lib/rack.rb", 5, "Rack#x", "Array", 10, "[]"),
    ]);
    let after = report(&[
        ("/srv/shop/new.rb", 9, "A#x", "Hash", 4, "{}.merge(a)"),
        ("/other/gems/rack-3.1.0/lib/rack.rb", 5, "Rack#x", "Array", 12, "[]"),
    ]);
    let comparison = compared(&[before], &[after]);
    assert_eq!(
        summary(&comparison),
        [(9, Some("old.rb:1"), Match::FileRenamed, 3), (5, None, Match::Same, 2)]
    );
    let gems: Vec<_> = comparison.gems.iter().map(|gem| gem.name.as_str()).collect();
    assert_eq!(gems, ["application", "rack"]);
    assert!(comparison.lines[0].own && !comparison.lines[1].own);
}

#[test]
fn counts_only_what_repeats() {
    let run = |steady, noisy| {
        report(&[("a.rb", 1, "x", "String", steady, "s"), ("a.rb", 2, "x", "String", noisy, "n")])
    };
    let comparison = compared(&[run(10, 5), run(11, 9)], &[run(20, 7), run(22, 30)]);
    assert_eq!(summary(&comparison), [(1, None, Match::Same, 9)]);
    let total = comparison.totals.allocated_objects;
    assert_eq!((total.before, total.after, total.change), (20, 27, 7));
    assert_eq!(comparison.runs, [2, 2]);
}

#[test]
fn reads_the_further_runs_of_a_baseline() {
    let mut first = report(&[("a.rb", 1, "x", "String", 10, "s")]);
    let second = report(&[("a.rb", 1, "x", "String", 14, "s")]);
    first["runs"] = json!([second]);
    let comparison = compared(&[first], &[report(&[("a.rb", 1, "x", "String", 15, "s")])]);
    assert_eq!(summary(&comparison), [(1, None, Match::Same, 1)]);
}

#[test]
fn leaves_out_internal_objects_unless_asked() {
    let of = |objects| report(&[("a.rb", 1, "x", "<iseq>", objects, "s")]);
    let (before, after) = (side(&[of(1)]), side(&[of(3)]));
    let without = compare(&before, &after, 0, false);
    assert_eq!((without.lines.len(), without.totals.allocated_objects.change), (0, 0));
    assert_eq!(without.internal.allocated_objects.change, 2);
    assert_eq!(compare(&before, &after, 0, true).totals.allocated_objects.change, 2);
}

#[test]
fn matches_by_line_where_no_texts_are_known() {
    let mut before =
        report(&[("a.rb", 1, "x", "String", 1, "s"), ("a.rb", 9, "x", "String", 5, "t")]);
    before.as_object_mut().expect("an object").remove("sources");
    let after = report(&[("a.rb", 1, "x", "String", 2, "u"), ("a.rb", 11, "x", "String", 9, "t")]);
    assert_eq!(
        summary(&compared(&[before], &[after])),
        [(11, Some("a.rb:9"), Match::Nearest, 4), (1, None, Match::Same, 1)]
    );
}

#[test]
fn refuses_what_is_no_report() {
    for text in ["{}", "[1]", "", r#"{"format":"memprof-report","version":2,"sites":[]}"#] {
        let error = Side::read(&[("x.json".to_owned(), text.to_owned())]).expect_err(text);
        assert!(error.starts_with("cannot read x.json: "), "{error}");
    }
}
