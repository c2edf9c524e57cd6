//! Groups and sites of random profiles, compared with a naive implementation.

use super::*;
use crate::profile::{Frame, StackNode};

/// Sums by label, straight from the definition.
fn naive(profile: &Profile, by: By, sort: Sort) -> Vec<(String, Amount)> {
    let mut groups: Vec<(String, Amount)> = Vec::new();
    for row in &profile.rows {
        let site = profile.stacks[row.site as usize];
        let frame = &profile.frames[site.frame as usize];
        let file = &profile.files[frame.file as usize];
        let label = match by {
            By::Gem => guess_gem(file).to_owned(),
            By::File => file.clone(),
            By::Location => format!("{file}:{}", site.line),
            By::Class => profile.classes[row.class as usize].clone(),
            By::Method => frame.method.clone(),
        };
        match groups.iter_mut().find(|group| group.0 == label) {
            Some(group) => group.1.add(row.allocated),
            None => groups.push((label, row.allocated)),
        }
    }
    groups.retain(|group| group.1.objects > 0);
    groups.sort_by(|a, b| sort.measure(b.1).cmp(&sort.measure(a.1)).then(a.0.cmp(&b.0)));
    groups
}

/// A profile of many rows with few names, so that the same name occurs under several ids.
fn random_profile(seed: u64, rows: usize, names: u64) -> Profile {
    let mut state = seed;
    let mut below = move |limit: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % limit) as u32
    };
    let files = (0..names)
        .map(|_| format!("/g/gems/gem-{}/lib/file{}.rb", below(5), below(names)))
        .collect();
    let classes = (0..names).map(|_| format!("Class{}", below(names))).collect();
    let frames = (0..names * 2).map(|_| Frame {
        file: below(names),
        method: format!("Module{}#call", below(names)),
        first_line: 1,
        native: false,
    });
    let frames: Vec<Frame> = frames.collect();
    let stacks = (0..rows as u32).map(|id| StackNode {
        parent: (id > 0 && below(4) > 0).then(|| below(u64::from(id))),
        frame: below(names * 2),
        line: below(50),
    });
    let stacks: Vec<StackNode> = stacks.collect();
    let rows = (0..rows).map(|_| {
        let site = below(stacks.len() as u64);
        let allocated = Amount::new(u64::from(below(4)), u64::from(below(500)));
        SiteRow {
            site,
            stack: site,
            class: below(names),
            allocated: if allocated.objects == 0 { Amount::default() } else { allocated },
            retained: Amount::default(),
            freed: Amount::default(),
            ages: Default::default(),
            peak: Amount::default(),
        }
    });
    Profile { files, classes, frames, rows: rows.collect(), stacks, ..Profile::default() }
}

#[test]
fn agrees_with_the_naive_implementation() {
    for seed in 1..30 {
        let profile = random_profile(seed, 300, 10);
        for by in [By::Gem, By::File, By::Location, By::Class, By::Method] {
            for sort in [Sort::Memory, Sort::Objects] {
                let expected = naive(&profile, by, sort);
                for limit in [None, Some(1), Some(7)] {
                    let rows = profile.group(Kind::Allocated, by, sort, limit);
                    let rows: Vec<(String, Amount)> =
                        rows.into_iter().map(|row| (row.label, row.amount)).collect();
                    assert_eq!(
                        rows,
                        expected[..limit.unwrap_or(usize::MAX).min(expected.len())],
                        "{by:?} {sort:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn sites_read_differently_and_add_up() {
    for seed in 1..10 {
        let profile = random_profile(seed, 2000, 8);
        let sites = profile.sites(Sort::Memory, None);
        let mut seen: Vec<_> =
            sites.iter().map(|site| (&site.file, site.line, &site.class, &site.stack)).collect();
        seen.sort();
        seen.dedup();
        assert_eq!(seen.len(), sites.len());
        let bytes: u64 = sites.iter().map(|site| site.allocated.bytes).sum();
        assert_eq!(bytes, profile.totals().allocated.bytes);
        let fifty = profile.sites(Sort::Memory, Some(50));
        assert_eq!(fifty, sites[..50]);
    }
}

/// Not a benchmark: a guard against quadratic work.
#[test]
fn takes_many_rows_in_a_moment() {
    let profile = random_profile(3, 100_000, 2_000);
    let started = std::time::Instant::now();
    for by in [By::Gem, By::File, By::Location, By::Class, By::Method] {
        let one = std::time::Instant::now();
        assert!(!profile.group(Kind::Allocated, by, Sort::Memory, Some(50)).is_empty());
        println!("{by:?}: {:?}", one.elapsed());
    }
    let one = std::time::Instant::now();
    assert_eq!(profile.sites(Sort::Memory, Some(50)).len(), 50);
    println!("sites: {:?}", one.elapsed());
    assert!(started.elapsed().as_secs() < 30);
}
