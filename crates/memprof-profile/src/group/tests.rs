//! Grouping, lists of sites and filters.

use super::*;
use crate::export::sample::profile;
use crate::profile::{StackNode, StringRow};

fn groups(kind: Kind, by: By, sort: Sort, limit: Option<usize>) -> Vec<(String, u64, u64)> {
    let rows = profile().group(kind, by, sort, limit);
    rows.into_iter().map(|row| (row.label, row.amount.objects, row.amount.bytes)).collect()
}

fn labels(by: By) -> Vec<String> {
    groups(Kind::Allocated, by, Sort::Memory, None).into_iter().map(|row| row.0).collect()
}

fn strings(list: &[&str]) -> Vec<String> {
    list.iter().map(|&text| text.to_owned()).collect()
}

/// The sample with strings.
fn with_strings() -> Profile {
    let string = |value: &str, locations: &[(u32, u32, u64)]| StringRow {
        value: value.to_owned(),
        objects: locations.iter().map(|location| location.2).sum(),
        locations: locations.to_vec(),
    };
    Profile {
        strings_allocated: vec![
            string("b", &[(0, 22, 2), (1, 7, 1)]),
            string("a", &[(0, 22, 2), (3, 22, 1)]),
            string("c", &[(1, 9, 4)]),
        ],
        strings_retained: vec![string("a", &[(0, 22, 1)])],
        ..profile()
    }
}

#[test]
fn sums_all_rows() {
    let totals = profile().totals();
    assert_eq!(totals.allocated, Amount::new(13, 648));
    assert_eq!(totals.retained, Amount::new(3, 120));
    assert_eq!(totals.freed, Amount::new(10, 528));
}

#[test]
fn groups_by_each_name_most_first() {
    let by_class = groups(Kind::Allocated, By::Class, Sort::Memory, None);
    let expected = [("Odd;Class", 7, 280), ("String", 5, 200), ("Hash", 1, 168)];
    assert_eq!(
        by_class,
        expected.map(|(label, objects, bytes)| (label.to_owned(), objects, bytes))
    );
    assert_eq!(labels(By::File), ["app.rb"]);
    assert_eq!(labels(By::Gem), ["other"]);
    assert_eq!(labels(By::Location), ["app.rb:22", "app.rb:3"]);
    assert_eq!(labels(By::Method), ["Cache#fetch", "odd;\n\u{2028}\"name\" ü"]);
}

#[test]
fn joins_ids_of_one_name() {
    let by_location = groups(Kind::Retained, By::Location, Sort::Objects, None);
    assert_eq!(
        by_location,
        [("app.rb:22".to_owned(), 3, 120)],
        "rows of two files of one name; none retained left out"
    );
}

#[test]
fn limits_and_breaks_ties_by_label() {
    let mut profile = profile();
    profile.classes = strings(&["b", "c", "a"]);
    for row in &mut profile.rows {
        row.allocated = Amount::new(1, 40);
    }
    profile.rows.remove(0);
    let classes = |limit| -> Vec<String> {
        let rows = profile.group(Kind::Allocated, By::Class, Sort::Objects, limit);
        rows.into_iter().map(|row| row.label).collect()
    };
    assert_eq!(classes(None), ["a", "b", "c"]);
    assert_eq!(classes(Some(2)), ["a", "b"]);
    assert!(classes(Some(0)).is_empty());
    assert_eq!(classes(Some(9)).len(), 3);
}

#[test]
fn names_what_has_no_name() {
    let mut profile = profile();
    profile.files = vec![String::new(); 4];
    profile.classes = vec![String::new(); 3];
    for by in [By::File, By::Class] {
        assert_eq!(profile.group(Kind::Allocated, by, Sort::Memory, None)[0].label, NO_NAME);
    }
    let locations = profile.group(Kind::Allocated, By::Location, Sort::Memory, None);
    assert_eq!(locations[0].label, "(no name):22");
}

#[test]
fn lists_sites_with_stacks_innermost_first() {
    let sites = profile().sites(Sort::Memory, None);
    assert_eq!(sites.len(), 3, "two rows read the same");
    let site = &sites[1];
    assert_eq!(
        (site.file.as_str(), site.line, site.method.as_str()),
        ("app.rb", 22, "Cache#fetch")
    );
    assert_eq!(site.class, "String");
    assert_eq!((site.allocated, site.retained), (Amount::new(5, 200), Amount::new(3, 120)));
    assert_eq!(site.ages, AgesReport { mean: 1.0, max: 1 });
    let stack = [
        "app.rb:22:in Array#map",
        "app.rb:22:in Cache#fetch",
        "/g/gems/rack-3.1.0/lib/rack.rb:12:in Rack::Lint#call",
        "app.rb:1:in <main>",
    ];
    assert_eq!(site.stack, stack);
    assert_eq!(profile().sites(Sort::Objects, Some(1))[0].class, "Odd;Class");
}

#[test]
fn keeps_sites_apart_that_differ_in_the_stack() {
    let mut profile = profile();
    profile.stacks.push(StackNode { parent: None, frame: 3, line: 22 });
    profile.rows[1].site = 7;
    profile.rows[1].stack = 7;
    assert_eq!(profile.sites(Sort::Memory, None).len(), 4);
}

#[test]
fn lists_strings_with_their_locations() {
    let rows = with_strings().strings(Kind::Allocated, None);
    let values: Vec<(&str, u64)> =
        rows.iter().map(|row| (row.value.as_str(), row.objects)).collect();
    assert_eq!(values, [("c", 4), ("a", 3), ("b", 3)]);
    assert_eq!(
        rows[1].locations,
        [StringLocation { location: "app.rb:22".to_owned(), objects: 3 }]
    );
    assert_eq!(with_strings().strings(Kind::Allocated, Some(1)).len(), 1);
    assert!(with_strings().strings(Kind::Freed, None).is_empty());
}

#[test]
fn filters_by_names() {
    let profile = with_strings();
    let none = profile.filter(Some(&[]), None);
    assert_eq!(none.totals(), Totals::default());
    assert!(none.strings_allocated.is_empty());
    let strings_only = profile.filter(Some(&strings(&["app.rb"])), Some(&strings(&["String"])));
    assert_eq!(strings_only.class_names(), ["String"]);
    assert_eq!(strings_only.totals().allocated, Amount::new(5, 200));
    let values: Vec<u64> = strings_only.strings_allocated.iter().map(|row| row.objects).collect();
    assert_eq!(values, [2, 3], "without those of rack.rb");
    assert!(profile.filter(None, Some(&strings(&["Hash"]))).strings_allocated.is_empty());
    assert_eq!(profile.filter(None, None), profile);
}

#[test]
fn names_the_files_and_classes_in_use() {
    assert_eq!(profile().file_names(), ["app.rb"]);
    assert_eq!(with_strings().file_names(), ["/g/gems/rack-3.1.0/lib/rack.rb", "app.rb"]);
    assert_eq!(profile().class_names(), ["Hash", "Odd;Class", "String"]);
}

#[test]
fn becomes_json() {
    let json = with_strings().to_json_value();
    assert_eq!(json["totals"]["allocated"]["bytes"], 648);
    assert_eq!(json["meta"]["pid"], 42);
    assert_eq!(json["sites"].as_array().unwrap().len(), 3);
    assert_eq!(json["sites"][1]["ages"]["mean"], 1.0);
    assert_eq!(json["strings"]["retained"][0]["locations"][0]["location"], "app.rb:22");
}

#[test]
fn words_name_kinds_groupings_and_orders() {
    assert_eq!("freed".parse(), Ok(Kind::Freed));
    assert_eq!("gem".parse(), Ok(By::Gem));
    assert_eq!("objects".parse(), Ok(Sort::Objects));
    let message = "line".parse::<By>().unwrap_err().to_string();
    assert_eq!(
        message,
        "unknown grouping \"line\"; expected one of: gem, file, location, class, method"
    );
}

#[test]
fn joins_stacks_of_one_place() {
    let profile = profile();
    let sites = profile.sites(Sort::Memory, None);
    for (kind, sort) in [
        (Kind::Allocated, Sort::Memory),
        (Kind::Retained, Sort::Memory),
        (Kind::Freed, Sort::Objects),
    ] {
        let amount = |site: &SiteReport| match kind {
            Kind::Allocated => site.allocated,
            Kind::Retained => site.retained,
            Kind::Freed => site.freed,
            Kind::Peak => site.peak,
        };
        let mut expected = std::collections::BTreeMap::new();
        for site in sites.iter().filter(|site| amount(site).objects > 0) {
            let place = (&site.file, site.line, &site.class, &site.method);
            let sum: &mut Amount = expected.entry(place).or_default();
            sum.add(amount(site));
        }
        let (count, places) = profile.places(kind, sort, 100);
        assert_eq!((count, places.len()), (expected.len(), expected.len()));
        for place in &places {
            let key = (&place.file, place.line, &place.class, &place.method);
            assert_eq!(expected[&key], amount(place));
        }
        let order: Vec<u64> = places.iter().map(|place| sort.measure(amount(place))).collect();
        assert!(order.is_sorted_by(|a, b| a >= b), "{order:?}");
        let (all, first) = profile.places(kind, sort, 1);
        assert_eq!((all, first.as_slice()), (count, &places[..1]));
    }
}

#[test]
fn writes_the_same_sites_as_json() {
    let profile = profile();
    let mut json = b"[".to_vec();
    let written = SiteRows::new(&profile).write_json(|chunk| {
        json.extend_from_slice(chunk);
        Ok::<(), ()>(())
    });
    assert_eq!(written, Ok(()));
    json.push(b']');
    let mut rows: Vec<serde_json::Value> = serde_json::from_slice(&json).expect("is JSON");
    for row in &mut rows {
        let gem = row.as_object_mut().and_then(|row| row.remove("gem"));
        assert_eq!(gem, Some("other".into()));
    }
    let sites = serde_json::to_value(profile.sites(Sort::Memory, None)).expect("are JSON");
    assert_eq!(serde_json::Value::Array(rows), sites);
}
