//! Parsing and summing up of lines. The specs compare the whole with a naive aggregate in Ruby.

use crate::kinds::Unit;
use crate::number::{Number, Sum};
use crate::{By, Options, Summary, read};

fn summary(text: &str, sort: &str) -> Summary {
    let options = Options { by: By::Path, sort: sort.to_owned(), limit: 3 };
    read(text.as_bytes(), options, |_| ()).expect("a summary")
}

fn request(path: &str, time: &str) -> String {
    format!(
        "{{\"start\":1795309858984631,\"tracers\":{{\"gc\":{{\"calls\":1,\"time\":0.5}}}},\
         \"request\":{{\"PATH_INFO\":\"{path}\",\"REQUEST_METHOD\":\"GET\"}},\"time\":{time}}}\n"
    )
}

#[test]
fn sums_up_groups_and_requests() {
    let text = request("/a?x=1", "1.0") + &request("/b", "3") + &request("/a?x=2", "0.5");
    let summary = summary(&text, "time");
    let groups = summary.groups.iter();
    let groups: Vec<_> = groups.map(|group| (&*group.name, group.requests, group.cost)).collect();
    let (three, one) = (Number::Int(3), Number::Float(1.5));
    assert_eq!(groups, [("GET /b", 1, three), ("GET /a", 2, one)]);
    let lines: Vec<u64> = summary.worst.iter().map(|row| row.line).collect();
    assert_eq!(lines, [2, 1, 3]);
    assert_eq!(summary.from.as_deref(), Some("2026-11-22T01:10:58.984631Z"));
    assert_eq!(summary.kinds, ["time", "gc", "gc_calls"]);
    assert_eq!(summary.costs[2].unit, Unit::Count);
    assert_eq!(summary.costs[2].total, Number::Int(3));
}

#[test]
fn groups_jobs_by_class() {
    let job = "{\"tracers\":{},\"job\":{\"class\":\"MailJob\",\"queue\":\"/a/7\",\"id\":\"7\"},\"time\":2.5}\n";
    let text = request("/a", "1") + job + job;
    for by in [By::Path, By::Action] {
        let options = Options { by, sort: "time".to_owned(), limit: 3 };
        let summary = read(text.as_bytes(), options, |_| ()).expect("a summary");
        let groups = summary.groups.iter();
        let groups: Vec<_> = groups.map(|group| (&*group.name, group.requests)).collect();
        assert_eq!(groups, [("MailJob", 2), ("GET /a", 1)]);
    }
}

#[test]
fn skips_lines_that_are_no_requests_or_can_not_be() {
    let broken = [
        "{\"start\":1,",
        "[]",
        "{}",
        "7",
        "{\"a\":1}",
        "{\"tracers\":7}",
        "{\"tracers\":{\"objects\":{\"created\":1e400}}}",
        "{\"tracers\":{\"objects\":{\"created\":1e300}}}",
        "{\"tracers\":{},\"start\":1e300}",
        "{\"tracers\":{},\"time\":-1e30}",
        "{\"tracers\":{}} {}",
    ];
    let text = format!("\n{}\n \n{}", broken.join("\n"), request("/", "1"));
    let summary = summary(&text, "time");
    let counts = (summary.requests, summary.broken, summary.first_broken);
    assert_eq!(counts, (1, broken.len() as u64, Some(2)));
}

#[test]
fn reads_lines_of_any_length_but_endless_ones() {
    let long = request("/", "1").replace("GET", &"G".repeat(1 << 20));
    let endless = "x".repeat((1 << 24) + (1 << 20));
    let summary = summary(&format!("{long}{endless}\n{}", request("/", "2")), "time");
    assert_eq!((summary.requests, summary.broken), (2, 1));
    assert_eq!(summary.first_broken, Some(2));
}

#[test]
fn sums_up_statements_by_text_and_caller() {
    let line = |rest: &str| {
        format!("{{\"tracers\":{{\"sql\":{{\"queries\":9,\"time\":1,\"statements\":{rest}}}}}}}\n")
    };
    let text = [
        line("[{\"sql\":\"a\",\"caller\":\"x:1\",\"queries\":2,\"time\":3,\"slowest\":2}]"),
        line(
            "[{\"sql\":\"a\",\"caller\":\"x:1\",\"queries\":1,\"time\":1.5,\"slowest\":1.5},{\"sql\":\"b\"}]",
        ),
        line(
            "[{\"sql\":\"c\",\"queries\":5,\"time\":1,\"n_plus_one\":true},7,[{\"sql\":\"d\"}],{\"sql\":1}]",
        ),
        line("[{\"sql\":\"e\",\"time\":1e19}]"),
        line("{}"),
    ];
    let summary = summary(&text.concat(), "time");
    assert_eq!(summary.requests, 5);
    let rows = summary.statements.iter();
    let rows: Vec<_> =
        rows.map(|row| (&*row.sql, row.requests, row.n_plus_one, row.slowest)).collect();
    let (none, two) = (Number::Int(0), Number::Int(2));
    assert_eq!(rows, [("c", 1, 1, none), ("a", 2, 0, two), ("b", 1, 0, none)]);
    assert_eq!(summary.statements[1].time, Number::Float(4.5));
    assert_eq!(summary.statements[1].caller.as_deref(), Some("x:1"));
    let costs: Vec<_> = summary.costs.iter().map(|cost| (&*cost.kind, cost.total)).collect();
    assert_eq!(costs, [("sql", Number::Int(5)), ("sql_calls", Number::Int(45))]);
}

#[test]
fn adds_up_the_lines_that_allocate() {
    let request = |lines: &str| {
        format!("{{\"tracers\":{{\"objects\":{{\"created\":9,\"lines\":{lines}}}}}}}\n")
    };
    let line = |location: &str, class: &str, count: &str| {
        format!(
            "{{\"location\":\"{location}\",\"class\":\"{class}\",\"count\":{count},\"bytes\":40}}"
        )
    };
    let text = [
        format!("[{},{}]", line("a.rb:1", "String", "3"), line("a.rb:1", "Array", "2")),
        format!("[{},{},7]", line("a.rb:1", "String", "4"), line("b.rb:2", "Hash", "1e300")),
        "{\"error\":\"broken\"}".to_owned(),
        "[{\"sql\":\"select 1\"}]".to_owned(),
    ];
    let text: String = text.iter().map(|lines| request(lines)).collect();
    let summary = summary(&text, "objects");
    assert_eq!((summary.requests, summary.broken), (4, 0));
    let rows = summary.allocations.iter();
    let rows = rows.map(|row| (&*row.location, &*row.class, row.requests, row.objects, row.bytes));
    assert_eq!(
        rows.collect::<Vec<_>>(),
        [
            ("a.rb:1", "String", 2, Number::Int(7), Number::Int(80)),
            ("a.rb:1", "Array", 1, Number::Int(2), Number::Int(40)),
        ]
    );
    assert!(summary.statements.is_empty());
}

#[test]
fn groups_paths_without_their_ids() {
    let paths = [
        "/orders/17",
        "/orders/123.json",
        "/orders/5f0c9e3a7b",
        "/orders/DEADBEEF",
        "/v1/orders/1a2b",
        "/f47ac10b-58cc-4372-a567-0e02b2c3d479/7",
        "/a/1.5",
        "/17/b",
        "/",
    ];
    let text: String = paths.iter().map(|path| request(path, "1")).collect();
    let options = Options { by: By::Action, sort: "time".to_owned(), limit: 20 };
    let summary = read(text.as_bytes(), options, |_| ()).expect("a summary");
    let mut names: Vec<_> = summary.groups.iter().map(|group| &*group.name).collect();
    names.sort_unstable();
    let expected = [
        "GET /",
        "GET /:id/:id",
        "GET /:id/b",
        "GET /a/1.5",
        "GET /orders/:id",
        "GET /orders/:id.json",
        "GET /orders/DEADBEEF",
        "GET /v1/orders/1a2b",
    ];
    assert_eq!(names, expected);
    assert_eq!(summary.worst[0].path, "GET /orders/17");
}

#[test]
fn takes_no_more_kinds_than_can_be_shown() {
    let lines = (0..2000).map(|number| format!("{{\"tracers\":{{\"t{number}\":{{}}}}}}\n"));
    let summary = summary(&lines.collect::<String>(), "time");
    assert_eq!(summary.requests + summary.broken, 2000);
    assert!(summary.broken > 1000 && summary.kinds.len() <= 1000);
}

#[test]
fn gives_percentiles_of_more_requests_than_stay_in_memory() {
    let text: String = (0..50_000)
        .map(|number| {
            let time = f64::from(number * 7919 % 50_000 + 1) / 1000.0;
            request("/", &time.to_string())
        })
        .collect();
    let summary = summary(&text, "time");
    let time = &summary.costs[0];
    let shown = [time.p50, time.p90, time.p99, time.max].map(Number::float);
    assert_eq!(shown, [25.0, 45.0, 49.5, 50.0]);
    assert_eq!(time.total.float(), 1_250_025.0);
    assert_eq!(summary.groups[0].costs[0].p95.float(), 47.5);
}

#[test]
fn sums_are_compensated() {
    let sum: Sum = (0..10).map(|_| Number::Float(0.1)).collect();
    assert_eq!(sum.total(), Number::Float(1.0));
    let sum: Sum = [Number::Int(i64::MAX), Number::Int(1)].into_iter().collect();
    assert_eq!(sum.total(), Number::Float(9_223_372_036_854_775_808.0));
}

#[test]
fn formats_times() {
    let text = crate::time::text;
    assert_eq!(text(0), "1970-01-01T00:00:00.000000Z");
    assert_eq!(text(-1), "1969-12-31T23:59:59.999999Z");
    assert_eq!(text(951_782_400_000_000), "2000-02-29T00:00:00.000000Z");
    assert_eq!(text(253_402_300_799_999_999), "9999-12-31T23:59:59.999999Z");
}
