use super::*;
use crate::sites::{FrameKey, Site, Sites};

fn site(sites: &mut Sites, file: &str) -> SiteId {
    let key = FrameKey { file: file.into(), label: "work".into(), first_line: 1, native: None };
    let (frame, _) = sites.frame(key);
    let place = sites.stack(None, frame, 1);
    let class = sites.class("String");
    sites.site(Site { class, place, stack: place, caller: None })
}

fn sample(site: SiteId, burst: u32, weight: f32) -> Sample {
    Sample { site, burst, weight, bytes: 40, allocated_at: 1.0, state: State::New }
}

/// Runs a program of 40,000 steps, each with objects of two lines in clusters; returns the estimates of allocated objects of
/// the rarer line, its error, the same of the live ones, and the true numbers.
fn simulate(seed: u64, most: usize) -> ([f64; 4], [f64; 2]) {
    let mut sites = Sites::default();
    let (common, rare) = (site(&mut sites, "common.rb"), site(&mut sites, "rare.rb"));
    let mut random = Sampler::new(seed);
    let mut samples = Samples::new(most, seed ^ 0x5555);
    let (mut address, mut burst, mut until) = (0u64, 0u32, 0u32);
    let (mut allocated, mut live) = (0.0, 0.0);
    let share = 0.05f64;
    let length = 20u32;
    let mut next = 0u32;
    for step in 0..40_000u32 {
        if step >= next && step >= until {
            let gap = -(random.uniform().ln()) * f64::from(length) * (1.0 - share) / share;
            next = step + gap.round() as u32;
            until = next + length;
            burst += 1;
        }
        let inside = step >= next && step < until;
        for object in 0..3u64 {
            address += 40;
            let line = if object == 0 { rare } else { common };
            let survives = step % 4 == 0;
            if line == rare {
                allocated += 1.0;
                live += f64::from(u8::from(survives));
            }
            // One in two within a burst.
            if inside && random.uniform() < 0.5 {
                samples
                    .take(address | u64::from(survives), sample(line, burst, (2.0 / share) as f32));
            }
        }
        if step % 1000 == 999 {
            samples.keep(|address| address & 1 == 1);
            assert!(samples.live() <= most);
        }
    }
    let estimates = samples.end_interval(&sites, 2.0, Meta::default());
    let at = (estimates.profile.rows.iter())
        .position(|row| {
            let stack = estimates.profile.stacks[row.site as usize];
            let frame = &estimates.profile.frames[stack.frame as usize];
            estimates.profile.files[frame.file as usize] == "rare.rb"
        })
        .unwrap();
    let facts = estimates.rows[at];
    let found = [
        facts.allocated.objects,
        facts.allocated.objects_error,
        facts.live.objects,
        facts.live.objects_error,
    ];
    (found, [allocated, live])
}

/// Mean of the normalized differences, and their mean square: 0 and 1 if estimates and errors are right.
fn judge(most: usize) -> [(f64, f64); 2] {
    const RUNS: u64 = 300;
    let mut sums = [(0.0, 0.0); 2];
    for seed in 1..=RUNS {
        let (found, truth) = simulate(seed, most);
        for kind in 0..2 {
            let difference = (found[2 * kind] - truth[kind]) / found[2 * kind + 1];
            sums[kind].0 += difference / RUNS as f64;
            sums[kind].1 += difference * difference / RUNS as f64;
        }
    }
    sums
}

#[test]
fn estimates_and_their_errors_are_right() {
    for (mean, square) in judge(1 << 15) {
        assert!(mean.abs() < 0.3, "{mean}");
        assert!((0.6..1.5).contains(&square), "{square}");
    }
}

#[test]
fn a_full_table_is_thinned_without_bias() {
    for (mean, square) in judge(100) {
        assert!(mean.abs() < 0.4, "{mean}");
        assert!((0.6..1.9).contains(&square), "{square}");
    }
}

#[test]
fn an_address_stands_for_its_last_object() {
    let mut sites = Sites::default();
    let site = site(&mut sites, "a.rb");
    let mut samples = Samples::new(10, 1);
    samples.take(40, sample(site, 1, 3.0));
    samples.take(40, sample(site, 2, 5.0));
    samples.take(80, sample(site, 2, 5.0));
    samples.relocate(|address| (address == 40).then_some(120));
    let estimates = samples.end_interval(&sites, 3.0, Meta::default());
    assert_eq!((estimates.taken, estimates.live), (3, 1));
    let facts = estimates.rows[0];
    assert_eq!((facts.allocated.objects, facts.live.objects), (13.0, 5.0));
    assert_eq!(facts.allocated.objects_error, (9f64 + 100.0).sqrt());
    assert_eq!((facts.mean_age, facts.oldest), (2.0, 2.0));
    let estimates = samples.end_interval(&sites, 3.0, Meta::default());
    assert_eq!((estimates.taken, estimates.rows[0].allocated.objects), (0, 0.0));
}

#[test]
fn objects_are_measured_once_after_their_first_gc() {
    let mut sites = Sites::default();
    let site = site(&mut sites, "a.rb");
    let mut samples = Samples::new(10, 1);
    samples.take(40, sample(site, 1, 2.0));
    samples.measure(10, |_| panic!("it may not be complete"));
    samples.keep(|_| true);
    assert!(samples.has_unmeasured());
    samples.measure(10, |_| Some(1000));
    assert!(!samples.has_unmeasured());
    samples.keep(|_| true);
    samples.measure(10, |_| panic!("it was measured"));
    let estimates = samples.end_interval(&sites, 3.0, Meta::default());
    assert_eq!(estimates.profile.rows[0].retained.bytes, 2000);
    assert_eq!(estimates.profile.rows[0].allocated.bytes, 80);
    samples.keep(|_| false);
    assert_eq!(samples.live(), 0);
}
