//! Growth against a naive implementation, known shapes and many random series.

use super::*;

/// Xorshift: the same series on every machine.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    fn range(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low)
    }

    /// Nearly normal: mean 0, standard deviation 1.
    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.below(1 << 32) as f64 / (1u64 << 32) as f64).sum::<f64>() - 6.0
    }
}

const RUNS: u64 = 20;

fn series(count: impl FnMut(u64) -> f64) -> Vec<u64> {
    let mut count = count;
    (0..RUNS).map(|run| count(run).round().max(0.0) as u64).collect()
}

/// The share of many random series that are reported to grow.
fn share(make: impl Fn(&mut Random) -> Vec<u64>) -> f64 {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let found = (0..2000).filter(|_| fit(&make(&mut random)).grows).count();
    found as f64 / 2000.0
}

fn grows(counts: &[u64]) -> bool {
    fit(counts).grows
}

#[test]
fn finds_an_object_per_run() {
    let fit = fit(&series(|run| 100.0 + run as f64));
    assert_eq!((fit.slope, fit.low, fit.grows), (1.0, 1.0, true));
}

#[test]
fn finds_an_object_in_every_third_run() {
    for phase in 0..3 {
        let fit = fit(&series(|run| ((run + phase) / 3) as f64));
        assert!(fit.grows, "phase {phase}: {fit:?}");
        assert!((fit.slope - 1.0 / 3.0).abs() < 0.02, "{fit:?}");
    }
}

#[test]
fn finds_an_object_in_every_third_run_from_fifteen_runs_on() {
    for phase in 0..3 {
        let counts: Vec<u64> = (0..15).map(|run| (run + phase) / 3).collect();
        assert!(grows(&counts), "phase {phase}: {:?}", fit(&counts));
    }
}

#[test]
fn finds_growth_that_speeds_up_and_growth_under_a_saw() {
    assert!(grows(&series(|run| (run * run) as f64)));
    assert!(grows(&series(|run| (10 * run + 7 * (run % 4)) as f64)));
}

#[test]
fn finds_noisy_growth() {
    for (noise, least) in [(0.5, 0.999), (1.0, 0.99), (2.0, 0.95), (4.0, 0.65)] {
        let found = share(|random| {
            series(|run| 1000.0 + 10.0 * run as f64 + 10.0 * noise * random.normal())
        });
        assert!(found >= least, "noise of {noise} slopes: found {found}");
    }
}

#[test]
fn finds_a_queue_that_is_filled_faster_than_emptied() {
    let found = share(|random| {
        let mut length = 50;
        series(|_| {
            length += random.range(3, 9) as i64 - random.range(0, 5) as i64;
            length as f64
        })
    });
    assert!(found >= 0.95, "found {found}");
}

#[test]
fn is_not_misled_by_caches_that_fill_up() {
    let filled = share(|random| {
        let full = random.range(1, RUNS - 3);
        series(|run| 5.0 * run.min(full) as f64)
    });
    assert_eq!(filled, 0.0, "straight up to a limit");
    let slowing = share(|random| {
        let pace = random.range(4, 60) as f64 / 10.0;
        series(|run| 500.0 * (1.0 - (-(run as f64) / pace).exp()))
    });
    assert_eq!(slowing, 0.0, "ever slower");
    let drawn = share(|random| {
        let keys = random.range(10, 200);
        let per_run = (keys / random.range(2, 6)).max(1);
        let mut seen = vec![false; keys as usize];
        series(|_| {
            for _ in 0..per_run {
                seen[random.below(keys) as usize] = true;
            }
            seen.iter().filter(|&&seen| seen).count() as f64
        })
    });
    assert!(drawn <= 0.01, "keys drawn by chance: {drawn}");
    let noisy = share(|random| {
        let full = random.range(1, RUNS / 2);
        series(|run| 500.0 + 50.0 * run.min(full) as f64 + 20.0 * random.normal())
    });
    assert!(noisy <= 0.01, "with noise: {noisy}");
}

#[test]
fn is_not_misled_by_steps() {
    for steps in 1..=4 {
        let found = share(|random| {
            let at: Vec<u64> = (0..steps).map(|_| random.range(1, RUNS)).collect();
            series(|run| 100.0 + 7.0 * at.iter().filter(|&&step| step <= run).count() as f64)
        });
        assert_eq!(found, 0.0, "{steps} steps");
    }
}

#[test]
fn is_not_misled_by_what_is_filled_and_flushed() {
    let saw = |random: &mut Random| {
        let period = random.range(2, RUNS - 2);
        (period, random.below(period))
    };
    let plain = share(|random| {
        let (period, start) = saw(random);
        series(|run| (3 * ((run + start) % period)) as f64)
    });
    assert_eq!(plain, 0.0);
    let noisy = share(|random| {
        let (period, start) = saw(random);
        series(|run| (30 * ((run + start) % period)) as f64 + 5.0 * random.normal())
    });
    assert!(noisy <= 0.001, "with noise: {noisy}");
}

#[test]
fn is_not_misled_by_what_stays_shrinks_or_wavers() {
    assert_eq!(fit(&[7; 20]), Fit::default());
    let shrinking = share(|random| series(|run| 500.0 - 3.0 * run as f64 + 2.0 * random.normal()));
    assert_eq!(shrinking, 0.0);
    let noise = share(|random| series(|_| 1000.0 + 20.0 * random.normal()));
    assert!(noise <= 0.001, "noise: {noise}");
    let few = share(|random| series(|_| random.below(3) as f64));
    assert!(few <= 0.001, "counts of 0, 1 and 2: {few}");
    let inert = share(|random| {
        let mut level = 0.0;
        series(|_| {
            level = 0.6 * level + 10.0 * random.normal();
            1000.0 + level
        })
    });
    assert!(inert <= 0.015, "noise that remembers: {inert}");
}

#[test]
fn few_runs_give_no_verdict() {
    for counts in [&[][..], &[3], &[1, 2], &[1, 2, 3]] {
        assert!(!grows(counts), "{counts:?}");
    }
    assert_eq!(fit(&[]), Fit::default());
    assert_eq!(fit(&[5]), Fit::default());
    assert_eq!(fit(&[1, 3]), Fit { slope: 2.0, low: 2.0, grows: false });
    assert!(grows(&[1, 2, 3, 4]));
    assert!(grows(&[10, 12, 13, 15, 16]));
    assert!(!grows(&[1, 2, 2, 3, 4]), "one run of five added nothing");
    assert!(!grows(&[0, 10, 12, 12]));
}

#[test]
fn takes_long_series_and_large_counts() {
    let long: Vec<u64> = (0..5000).map(|run| 7 + run / 3).collect();
    let fit = fit(&long);
    assert!(fit.grows);
    assert!((fit.slope - 1.0 / 3.0).abs() < 0.001, "{fit:?}");
    let filled: Vec<u64> = (0..5000).map(|run: u64| run.min(2500)).collect();
    assert!(!grows(&filled));
    assert!(!grows(&[u64::MAX; 30]));
    assert!(grows(&[0, u64::MAX / 4, u64::MAX / 2, u64::MAX]));
}

/// The share of many series of `runs` counts that slow down by Laplace's test, one-sided at 5%.
fn slowing(runs: u64, mut step: impl FnMut(&mut Random, u64) -> u64) -> f64 {
    let mut random = Random(7);
    let found = (0..2000).filter(|&trial| {
        let mut count = trial;
        let counts: Vec<u64> = (0..runs)
            .map(|run| {
                count += step(&mut random, run);
                count
            })
            .collect();
        acceleration(&counts) < -1.645
    });
    found.count() as f64 / 2000.0
}

#[test]
fn distinguishes_a_falling_rate_from_a_constant_one() {
    assert_eq!(acceleration(&[]), 0.0);
    assert_eq!(acceleration(&[5]), 0.0);
    assert_eq!(acceleration(&[5, 9]), 0.0);
    assert_eq!(acceleration(&[7; 20]), 0.0);
    for every in [1, 3, 5] {
        let found = slowing(120, |_, run| u64::from(run % every == 0));
        assert_eq!(found, 0.0, "every {every} runs");
    }
    for added in [1, 10] {
        let found = slowing(240, |random, _| added * u64::from(random.below(5) == 0));
        assert!((0.03..0.07).contains(&found), "{added} at random: {found}");
    }
    // A memo of 100 keys, each requested at random.
    let mut filled = 0;
    let memo = slowing(240, |random, run| {
        filled = if run == 0 { 0 } else { filled };
        let new = u64::from(random.below(100) >= filled);
        filled += new;
        new
    });
    assert!(memo > 0.99, "{memo}");
}

/// Slope, bound and verdict by the book, regardless of speed.
fn naive(counts: &[u64]) -> Fit {
    let theil = |counts: &[u64]| {
        let mut all = Vec::new();
        for j in 1..counts.len() {
            for i in 0..j {
                all.push((counts[j] as f64 - counts[i] as f64) / (j - i) as f64);
            }
        }
        all.sort_by(|a, b| a.partial_cmp(b).unwrap());
        all
    };
    let middle = |sorted: &[f64]| (sorted[(sorted.len() - 1) / 2] + sorted[sorted.len() / 2]) / 2.0;
    let n = counts.len();
    let all = theil(counts);
    let mut variance = (n * (n - 1) * (2 * n + 5)) as f64;
    for value in counts {
        let equal = counts.iter().filter(|other| *other == value).count();
        // Each of the equal counts adds its share of t(t-1)(2t+5).
        variance -= ((equal - 1) * (2 * equal + 5)) as f64;
    }
    let confidence = 3.09 * (variance / 18.0).sqrt();
    let rank = ((all.len() as f64 - confidence) / 2.0) as usize;
    let low = if n < 8 { all[0] } else { all[rank.max(1) - 1] };
    let before = middle(&theil(&counts[..n - n / 2]));
    let now = middle(&theil(&counts[n - n / 2..]));
    let records: Vec<usize> =
        (0..n).filter(|&i| counts[..i].iter().all(|other| *other < counts[i])).collect();
    let longest = records.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(0);
    let rising = 4 * (records.len() - 1) >= n && n - 1 - records[records.len() - 1] <= 2 * longest;
    Fit { slope: middle(&all), low, grows: low > 0.0 && now > 0.0 && 2.0 * now >= before && rising }
}

#[test]
fn agrees_with_the_naive_implementation() {
    let mut random = Random(42);
    for _ in 0..3000 {
        let runs = random.range(4, 40);
        let slope = random.below(4);
        let noise = random.range(1, 30);
        let counts: Vec<u64> = (0..runs).map(|run| slope * run + random.below(noise)).collect();
        assert_eq!(fit(&counts), naive(&counts), "{counts:?}");
    }
}
