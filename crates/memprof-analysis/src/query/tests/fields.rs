//! Fields and their documentation.

use std::collections::HashSet;

use crate::query::{Field, Fields, Kind, Query};

#[test]
fn names_are_different_and_are_found() {
    let mut seen = HashSet::new();
    for field in Field::ALL {
        for name in std::iter::once(&field.name()).chain(field.aliases()) {
            assert!(seen.insert(*name), "{name}");
            assert_eq!(Field::parse(name), Some(*field));
            assert_eq!(Field::nearest(name), Some(*name));
        }
        assert!(!field.about().is_empty());
    }
    assert_eq!(Field::parse("Retained"), None);
    assert_eq!(Field::parse(""), None);
}

#[test]
fn near_names_are_suggested() {
    let near = [
        ("retianed", "retained"),
        ("klass", "class"),
        ("referers", "referrers"),
        ("genration", "generation"),
        ("adress", "address"),
        ("FILE", "file"),
    ];
    for (name, suggestion) in near {
        assert_eq!(Field::nearest(name), Some(suggestion));
    }
    let far = ["x", "", "frobnicate", "größenordnung"];
    let far = far.map(str::to_owned).into_iter();
    for name in far.chain([String::from("a").repeat(100_000)]) {
        assert_eq!(Field::nearest(&name), None);
    }
}

#[test]
fn a_query_says_which_fields_it_uses() {
    let query = "not (class = A or file is none) and retained > 3 and retained < 9 and frozen";
    let fields = Query::parse(query).unwrap().fields();
    let used: Vec<Field> = fields.iter().collect();
    let expected = [Field::Class, Field::Retained, Field::File, Field::Frozen];
    assert_eq!(used, expected);
    assert_eq!(fields, expected.into_iter().collect::<Fields>());
    assert!(fields.contains(Field::Retained));
    assert!(!fields.contains(Field::Depth));
    assert!(!fields.is_empty());
    assert!(Fields::default().is_empty());
}

#[test]
fn kinds_have_names() {
    assert_eq!(Field::Retained.kind(), Kind::Size);
    assert_eq!(Field::Retained.kind().name(), "size");
    assert_eq!(Field::Address.kind(), Kind::Address);
}
