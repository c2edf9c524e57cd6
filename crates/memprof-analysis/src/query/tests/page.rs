//! Checks the claims of docs/query.md.

use crate::query::{Field, Query};

const PAGE: &str = include_str!("../../../../../docs/query.md");

/// Lines of its blocks of this language.
fn blocks(word: &str) -> impl Iterator<Item = &'static str> {
    let fence = format!("```{word}\n");
    let blocks = PAGE.match_indices(&fence).collect::<Vec<_>>().into_iter();
    blocks.flat_map(|(at, fence)| {
        let block = &PAGE[at + fence.len()..];
        block.split("\n```").next().unwrap_or("").lines()
    })
}

#[test]
fn its_examples_are_queries() {
    let mut count = 0;
    for line in blocks("query") {
        if let Err(error) = Query::parse(line) {
            panic!("{error}\n{}", error.pointing(line));
        }
        count += 1;
    }
    assert!(count > 20, "{count}");
}

#[test]
fn its_error_is_what_is_said() {
    let lines: Vec<&str> = blocks("query-error").collect();
    let error = Query::parse(lines[0]).unwrap_err();
    assert_eq!(error.pointing(lines[0]), lines[..2].join("\n"));
    assert_eq!(error.to_string(), lines[2]);
}

#[test]
fn its_table_has_all_fields() {
    let rows: Vec<String> = Field::ALL
        .iter()
        .map(|field| {
            let others: Vec<String> =
                field.aliases().iter().map(|name| format!("`{name}`")).collect();
            let kind = field.kind().name();
            let (name, others, about) = (field.name(), others.join(", "), field.about());
            format!("| `{name}` | {kind} | {about} | {others} |\n").replace("|  |", "| |")
        })
        .collect();
    assert!(PAGE.contains(&rows.concat()), "\n{}", rows.concat());
}
