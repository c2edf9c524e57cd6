//! Flame graphs add up to the heap, whatever was pruned.

use serde_json::Value as Json;

use super::super::hostile_heaps::{hostile, written};
use super::super::{Format, Options};
use memprof_heap::Heap;
use memprof_heap::graph::BitSet;

fn all() -> Vec<Options<'static>> {
    let limited = |limit| Options { limit: Some(limit), ..Options::default() };
    vec![
        Options::default(),
        limited(0),
        limited(1),
        limited(7),
        limited(100),
        Options { depth: Some(2), ..Options::default() },
        Options { min_retained: 600, ..Options::default() },
    ]
}

fn sum(heap: &Heap) -> u64 {
    heap.memsizes().expect("sizes").sum()
}

/// Stacks and weights, as `flamegraph.pl` splits them.
fn stacks(text: &str) -> Vec<(Vec<&str>, u64)> {
    text.split_terminator('\n')
        .map(|line| {
            let (stack, weight) = line.rsplit_once(' ').expect("a weight");
            (stack.split(';').collect(), weight.parse().expect("a number"))
        })
        .collect()
}

#[test]
fn collapsed_stacks_have_all_bytes() {
    for seed in 0..4 {
        let heap = hostile(300, seed);
        for options in all() {
            let (text, counts) = written(&heap, Format::Collapsed, &options);
            let stacks = stacks(&text);
            assert_eq!(stacks.iter().map(|(_, weight)| weight).sum::<u64>(), sum(&heap));
            assert!(stacks.iter().all(|(stack, _)| stack[0] == "root"));
            assert!(!text.contains(['\r', '\0', '\u{2028}', '\u{85}']));
            assert!(stacks.len() as u64 <= counts.objects);
        }
    }
}

#[test]
fn the_page_has_all_bytes_and_nothing_ends_its_script() {
    let heap = hostile(300, 1);
    for options in all() {
        let (text, _) = written(&heap, Format::FlameGraph, &options);
        assert_eq!(text.matches("</script>").count(), 2);
        assert!(!text.contains("<!--") && !text.contains("src=") && !text.contains("http://"));
        let json = text
            .split_once("application/json\">")
            .expect("data")
            .1
            .split_once("</script>")
            .expect("an end")
            .0;
        let json: Json = serde_json::from_str(json).expect("JSON");
        let frames = json["frames"].as_array().expect("frames");
        let numbers: Vec<u64> =
            frames.iter().map(|number| number.as_u64().expect("a number")).collect();
        let names = json["names"].as_array().expect("names").len() as u64;
        assert!(
            numbers.chunks_exact(4).zip(0..).all(|(frame, at)| frame[0] <= at && frame[1] < names)
        );
        assert_eq!(numbers.chunks_exact(4).map(|frame| frame[2]).sum::<u64>(), sum(&heap));
        assert_eq!(numbers.chunks_exact(4).map(|frame| frame[3]).sum::<u64>(), 300);
    }
}

#[test]
fn counts_only_members() {
    let heap = hostile(300, 1);
    let members = BitSet::of(300, [2, 3, 5, 7]);
    let options = Options { members: Some(&members), ..Options::default() };
    let (text, _) = written(&heap, Format::Collapsed, &options);
    let sizes = heap.memsizes().expect("sizes");
    let expected: u64 = members.iter().map(|id| sizes.get(id)).sum();
    assert_eq!(stacks(&text).iter().map(|(_, weight)| weight).sum::<u64>(), expected);
}

#[test]
fn writes_an_empty_heap() {
    let heap = hostile(0, 1);
    assert_eq!(written(&heap, Format::Collapsed, &Options::default()).0, "");
    assert!(written(&heap, Format::FlameGraph, &Options::default()).0.ends_with("</html>\n"));
}
