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
    let estimates = samples.end_interval(&sites, 2.0, None, Meta::default());
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

/// A program with four lines, which run in stretches of 1 to 40 units of time: objects in a unit of time, and how much a hook
/// slows an object down, in units of time. Its true shares are known.
const LINES: [(f64, f64); 4] = [(40.0, 0.004), (20.0, 0.02), (5.0, 0.02), (1.0, 0.0)];

/// Samples 20,000 stretches, about one in 20 of which a burst falls into. Bursts last as long as the system likes: 2 units, or 10
/// in one of eight. Returns (estimate - truth) / error for each line.
fn bursts(seed: u64) -> [f64; 4] {
    let mut sites = Sites::default();
    let lines = ["a.rb", "b.rb", "c.rb", "d.rb"].map(|file| site(&mut sites, file));
    let mut random = Sampler::new(seed);
    let mut samples = Samples::new(1 << 10, seed);
    let mut truth = [0.0; 4];
    let (mut burst, mut address) = (0, 0);
    for _ in 0..20_000 {
        let line = (random.uniform() * 4.0) as usize % 4;
        let stretch = 1.0 + (random.uniform() * 39.0).floor();
        let (density, slow) = LINES[line];
        truth[line] += density * stretch;
        // A moment is in a burst with a probability that is proportional to the length of the stretch.
        if random.uniform() > stretch / 400.0 {
            continue;
        }
        burst += 1;
        let length = if random.uniform() < 0.125 { 10.0 } else { 2.0 };
        // The hook slows the program down, which runs for less time than the burst lasts.
        let ran = length / (1.0 + density * slow);
        let seen =
            (density * ran).floor() + f64::from(u8::from(random.uniform() < density * ran % 1.0));
        let gap = 4.0;
        for _ in 0..seen as u64 {
            if random.uniform() * gap <= 1.0 {
                address += 40;
                samples.take(address, sample(lines[line], burst, 1000.0));
            }
        }
        let correction = 2.0 / ran;
        samples.end_burst(correction, Some(seen * 1000.0 / gap * correction));
    }
    let total = truth.iter().sum::<f64>() as u64;
    let estimates = samples.end_interval(&sites, 2.0, Some(total), Meta::default());
    let sum: f64 = estimates.rows.iter().map(|row| row.allocated.objects).sum();
    // Of the sum only the gap's sampling is uncertain.
    assert!((sum / total as f64 - 1.0).abs() < 0.15, "{sum} of {total}");
    let mut differences = [0.0; 4];
    for (row, facts) in estimates.profile.rows.iter().zip(&estimates.rows) {
        let stack = estimates.profile.stacks[row.site as usize];
        let file = estimates.profile.frames[stack.frame as usize].file as usize;
        let line = usize::from(estimates.profile.files[file].as_bytes()[0] - b'a');
        differences[line] = (facts.allocated.objects - truth[line]) / facts.allocated.objects_error;
    }
    differences
}

#[test]
fn shares_are_right_and_their_errors_honest() {
    const RUNS: u64 = 300;
    let runs: Vec<[f64; 4]> = (1..=RUNS).map(bursts).collect();
    for line in 0..4 {
        let mean = runs.iter().map(|run| run[line]).sum::<f64>() / RUNS as f64;
        let within = |sigmas: f64| {
            runs.iter().filter(|run| run[line].abs() < sigmas).count() as f64 / RUNS as f64
        };
        assert!(mean.abs() < 0.3, "line {line}: {mean}");
        assert!((0.58..0.78).contains(&within(1.0)), "line {line}: {} within 1", within(1.0));
        assert!((0.90..0.99).contains(&within(2.0)), "line {line}: {} within 2", within(2.0));
    }
}

#[test]
fn a_burst_that_lasted_longer_counts_for_as_much() {
    let mut sites = Sites::default();
    let (short, long) = (site(&mut sites, "a.rb"), site(&mut sites, "b.rb"));
    let mut samples = Samples::new(10, 1);
    samples.take(40, sample(short, 1, 10.0));
    samples.end_burst(1.0, Some(10.0));
    samples.take(80, sample(long, 2, 10.0));
    samples.take(120, sample(long, 2, 10.0));
    samples.end_burst(0.5, Some(10.0));
    let estimates = samples.end_interval(&sites, 3.0, Some(600), Meta::default());
    let facts = |at: usize| estimates.rows[at];
    assert_eq!([0, 1].map(|at| facts(at).allocated.objects), [300.0, 300.0]);
    assert_eq!([0, 1].map(|at| facts(at).live.objects).iter().sum::<f64>(), 20.0);
    // Each burst has all of one site and nothing of the other: (y - x / 2) squared is 25 in both, times n / (n - 1).
    assert_eq!(facts(0).allocated.objects_error, 300.0);
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
    let estimates = samples.end_interval(&sites, 3.0, None, Meta::default());
    assert_eq!((estimates.taken, estimates.live), (3, 1));
    let facts = estimates.rows[0];
    assert_eq!((facts.allocated.objects, facts.live.objects), (13.0, 5.0));
    assert_eq!(facts.allocated.objects_error, (9f64 + 100.0).sqrt());
    assert_eq!((facts.mean_age, facts.oldest), (2.0, 2.0));
    let estimates = samples.end_interval(&sites, 3.0, None, Meta::default());
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
    let estimates = samples.end_interval(&sites, 3.0, None, Meta::default());
    assert_eq!(estimates.profile.rows[0].retained.bytes, 2000);
    assert_eq!(estimates.profile.rows[0].allocated.bytes, 80);
    samples.keep(|_| false);
    assert_eq!(samples.live(), 0);
}
