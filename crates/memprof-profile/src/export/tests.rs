//! Properties common to all exports. spec/exports checks that other programs can read them.

use std::io::Read;

use super::*;
use crate::profile::Profile;

const FORMATS: [Format; 4] =
    [Format::Collapsed, Format::Speedscope, Format::Firefox, Format::Pprof];

fn json(profile: &Profile, format: Format, value: Value) -> serde_json::Value {
    serde_json::from_slice(&export(profile, format, value)).expect("valid JSON")
}

#[test]
fn words_name_formats_and_values() {
    assert_eq!("pprof".parse(), Ok(Format::Pprof));
    assert_eq!("retained_bytes".parse(), Ok(Value::RetainedBytes));
    let unknown = "svg".parse::<Format>().unwrap_err();
    assert_eq!(
        unknown.to_string(),
        "unknown format \"svg\"; expected one of: collapsed, speedscope, firefox, pprof"
    );
    assert!(
        "bytes".parse::<Value>().unwrap_err().to_string().starts_with("unknown value \"bytes\"")
    );
}

#[test]
fn equal_profiles_give_equal_bytes() {
    for format in FORMATS {
        let [one, other] =
            [(), ()].map(|()| export(&sample::profile(), format, Value::RetainedBytes));
        assert_eq!(one, other, "{format:?}");
    }
}

#[test]
fn an_empty_profile_is_a_valid_file() {
    let empty = Profile::default();
    assert!(export(&empty, Format::Collapsed, Value::AllocatedBytes).is_empty());
    let speedscope = json(&empty, Format::Speedscope, Value::AllocatedBytes);
    assert_eq!(speedscope["profiles"][0]["samples"], serde_json::json!([]));
    let firefox = json(&empty, Format::Firefox, Value::AllocatedBytes);
    assert_eq!(firefox["threads"][0]["samples"]["length"], 0);
    assert!(!export(&empty, Format::Pprof, Value::AllocatedBytes).is_empty());
}

#[test]
fn speedscope_has_a_profile_per_value_and_opens_the_one_asked_for() {
    let file = json(&sample::profile(), Format::Speedscope, Value::RetainedObjects);
    let profiles = file["profiles"].as_array().unwrap();
    let names: Vec<&str> =
        profiles.iter().map(|profile| profile["name"].as_str().unwrap()).collect();
    assert_eq!(
        names,
        ["allocated bytes", "allocated objects", "retained bytes", "retained objects"]
    );
    let ends: Vec<u64> =
        profiles.iter().map(|profile| profile["endValue"].as_u64().unwrap()).collect();
    assert_eq!(ends, [648, 13, 120, 3]);
    assert_eq!(file["activeProfileIndex"], 3);
    let stack = profiles[3]["samples"][0].as_array().unwrap().iter();
    let frames: Vec<&serde_json::Value> =
        stack.map(|id| &file["shared"]["frames"][id.as_u64().unwrap() as usize]).collect();
    let names: Vec<&str> = frames.iter().map(|frame| frame["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["<main>", "Rack::Lint#call", "Cache#fetch", "Array#map", "String"]);
    assert_eq!(frames[2]["file"], "app.rb");
    assert_eq!(frames[2]["line"], 22);
    assert_eq!(frames[3].get("file"), None);
}

#[test]
fn values_that_are_zero_are_left_out_unless_asked_for() {
    let mut profile = sample::profile();
    for row in &mut profile.rows {
        row.retained = Default::default();
    }
    let names = |value| {
        let file = json(&profile, Format::Speedscope, value);
        file["profiles"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["name"].to_string())
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert_eq!(names(Value::AllocatedBytes), "\"allocated bytes\" \"allocated objects\"");
    assert_eq!(
        names(Value::RetainedBytes),
        "\"allocated bytes\" \"allocated objects\" \"retained bytes\""
    );
}

#[test]
fn firefox_threads_refer_to_shared_tables() {
    let file = json(&sample::profile(), Format::Firefox, Value::AllocatedObjects);
    assert_eq!(file["meta"]["initialSelectedThreads"], serde_json::json!([1]));
    let samples = &file["threads"][1]["samples"];
    assert_eq!(samples["weight"], serde_json::json!([5, 1, 7]));
    assert_eq!(samples["weightType"], "samples");
    assert_eq!(file["threads"][0]["samples"]["weightType"], "bytes");
    for table in ["stackTable", "frameTable", "funcTable", "resourceTable", "sources"] {
        let table = &file["shared"][table];
        let length = table["length"].as_u64().unwrap() as usize;
        assert!(length > 0);
        for (name, column) in table.as_object().unwrap() {
            assert!(name == "length" || column.as_array().unwrap().len() == length, "{name}");
        }
    }
    let prefixes = file["shared"]["stackTable"]["prefix"].as_array().unwrap();
    assert!(
        prefixes
            .iter()
            .enumerate()
            .all(|(id, prefix)| prefix.as_u64().is_none_or(|prefix| (prefix as usize) < id))
    );
}

#[test]
fn pprof_is_compressed_without_time_and_holds_the_names() {
    let bytes = export(&sample::profile(), Format::Pprof, Value::AllocatedBytes);
    assert_eq!(bytes[..4], [0x1f, 0x8b, 8, 0]);
    assert_eq!(bytes[4..8], [0; 4], "time of the header");
    let mut message = Vec::new();
    flate2::read::GzDecoder::new(bytes.as_slice()).read_to_end(&mut message).unwrap();
    for name in ["alloc_objects", "inuse_space", "Cache#fetch", "Odd;Class", "class", "ruby app.rb"]
    {
        assert!(message.windows(name.len()).any(|part| part == name.as_bytes()), "{name}");
    }
    assert_eq!(message[0], 1 << 3 | 2, "begins with a sample type");
}

/// The uncompressed message.
fn served(profile: &Profile, served: pprof::Served<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    pprof::write_served(profile, served, &mut bytes).unwrap();
    let mut message = Vec::new();
    flate2::read::GzDecoder::new(bytes.as_slice()).read_to_end(&mut message).unwrap();
    message
}

#[test]
fn a_served_profile_has_the_facts_of_its_process() {
    let comments = ["service=shop".to_owned()];
    let facts = pprof::Served { default_type: "alloc_space", earlier: None, comments: &comments };
    let message = served(&sample::profile(), facts);
    assert!(message.windows(12).any(|part| part == b"service=shop"));
}

#[test]
fn the_difference_to_an_equal_profile_has_no_samples() {
    let profile = sample::profile();
    let facts =
        pprof::Served { default_type: "inuse_space", earlier: Some(&profile), comments: &[] };
    let message = served(&profile, facts);
    let class = "Odd;Class".as_bytes();
    assert!(!message.windows(class.len()).any(|part| part == class));
}
