//! Whether a series of live counts grows: the statistics behind `Memprof.growth`.
//!
//! A series has one number per run of a block: how many objects of a site and class were live after it. A leak adds objects run
//! by run; a cache fills up, a lazily built table is a step, a buffer that is flushed is a sawtooth, and the rest is noise. A
//! series *grows* if all of these hold:
//!
//! 1. The slope is positive beyond doubt. This is the Theil-Sen slope: the median of the slopes between all pairs of
//!    runs, which is robust against one odd run and against a step. Its lower bound is Sen's one-sided 99.9% confidence
//!    limit, equivalent to the Mann-Kendall trend test, with the correction for ties. A program has thousands of series,
//!    so one false positive in a hundred would be too many.
//! 2. It has not slowed down: the slope of the second half is at least half the slope of the first. A cache that fills
//!    up fails here.
//! 3. It reaches a new maximum in at least a quarter of the runs. A few steps fail here; an object in every third run
//!    does not.
//! 4. The last new maximum is recent: at most twice the longest previous interval between maxima ago. A series that has
//!    reached its limit or was flushed fails here.
//!
//! Fewer than [`LEAST_RUNS`] runs never grow: they are too few to distinguish a trend from a step. With fewer than
//! [`RUNS_FOR_CONFIDENCE`] runs hardly any order of counts is unlikely enough for that limit, so the lower bound is the minimum
//! slope of all pairs: only a count that rises with every run grows. One object in every third run is detected from 15 runs on.
//!
//! Sources: H. Theil, "A rank-invariant method of linear and polynomial regression analysis", Proc. Kon. Ned. Akad.
//! Wetensch. 53 (1950); P. K. Sen, "Estimates of the regression coefficient based on Kendall's tau", J. Amer. Stat.
//! Assoc. 63 (1968) 1379-1389; R. O. Gilbert, "Statistical Methods for Environmental Pollution Monitoring" (1987),
//! 16.4 and 16.5, which spells out both as computed here. Rules 2 to 4 are our own; the tests measure how often they are wrong.

use std::ops::Range;

use serde::Serialize;

/// Series of fewer runs never grow.
pub const LEAST_RUNS: usize = 4;

/// Series of fewer runs grow only if each run adds something.
pub const RUNS_FOR_CONFIDENCE: usize = 8;

/// Longer series are averaged over equal stretches to at most this many points, as the work is quadratic.
const MOST_POINTS: usize = 60;

/// The 99.9% quantile of the normal distribution.
const Z: f64 = 3.09;

/// The trend of a series of live counts over the runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Fit {
    /// Objects per run: the median of the slopes of all pairs of runs; 0 for fewer than two runs.
    pub slope: f64,
    /// Lower bound of the slope.
    pub low: f64,
    /// True if the count grows and is likely to go on growing.
    pub grows: bool,
}

/// Fits a series of live counts, one per run, in the order of the runs, without those of the warm-up.
///
/// ```
/// use memprof_profile::growth::fit;
/// let leak: Vec<u64> = (0..20).map(|run| 100 + run).collect();
/// assert_eq!(fit(&leak).slope, 1.0);
/// assert!(fit(&leak).grows);
///
/// let cache: Vec<u64> = (0..20).map(|run| (100 + 10 * run).min(180)).collect();
/// assert!(!fit(&cache).grows);
/// ```
pub fn fit(counts: &[u64]) -> Fit {
    if counts.windows(2).all(|pair| pair[0] == pair[1]) {
        return Fit::default();
    }
    let points = thin(counts);
    let slopes = slopes(&points);
    let slope = median(&slopes);
    let low = lower_bound(&points, &slopes);
    let enough = counts.len() >= LEAST_RUNS;
    Fit { slope, low, grows: enough && low > 0.0 && keeps_pace(&points) && keeps_rising(&points) }
}

/// A run, or the mean of a stretch of runs, and its count.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Point {
    run: f64,
    count: f64,
}

/// The series as at most [`MOST_POINTS`] points.
fn thin(counts: &[u64]) -> Vec<Point> {
    let points = counts.len().min(MOST_POINTS);
    let stretch = |point: usize| point * counts.len() / points..(point + 1) * counts.len() / points;
    (0..points).map(|point| mean(counts, stretch(point))).collect()
}

fn mean(counts: &[u64], runs: Range<usize>) -> Point {
    let length = runs.len() as f64;
    let middle = (runs.start + runs.end - 1) as f64 / 2.0;
    let sum: f64 = counts[runs].iter().map(|&count| count as f64).sum();
    Point { run: middle, count: sum / length }
}

/// The slopes between all pairs of points, in order.
fn slopes(points: &[Point]) -> Vec<f64> {
    let mut slopes = Vec::with_capacity(points.len() * (points.len() - 1) / 2);
    for (index, a) in points.iter().enumerate() {
        for b in &points[index + 1..] {
            slopes.push((b.count - a.count) / (b.run - a.run));
        }
    }
    slopes.sort_unstable_by(f64::total_cmp);
    slopes
}

/// The median of sorted numbers.
fn median(sorted: &[f64]) -> f64 {
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 { sorted[middle] } else { (sorted[middle - 1] + sorted[middle]) / 2.0 }
}

/// The lower confidence limit of the slope at 99.9% (Gilbert 16.5, one-sided).
fn lower_bound(points: &[Point], slopes: &[f64]) -> f64 {
    if points.len() < RUNS_FOR_CONFIDENCE {
        return slopes[0];
    }
    let width = Z * kendall_variance(points).sqrt();
    let rank = ((slopes.len() as f64 - width) / 2.0).floor().max(1.0) as usize;
    slopes[rank - 1]
}

/// The variance of Kendall's statistic if the order of the counts were random (Gilbert 16.4.2).
fn kendall_variance(points: &[Point]) -> f64 {
    let term = |n: f64| n * (n - 1.0) * (2.0 * n + 5.0);
    let mut counts: Vec<f64> = points.iter().map(|point| point.count).collect();
    counts.sort_unstable_by(f64::total_cmp);
    let ties: f64 = counts.chunk_by(|a, b| a == b).map(|equal| term(equal.len() as f64)).sum();
    (term(points.len() as f64) - ties) / 18.0
}

/// True if the second half rises at least half as fast as the first.
fn keeps_pace(points: &[Point]) -> bool {
    let half = points.len() / 2;
    let (first, second) = points.split_at(points.len() - half);
    let (before, now) = (median(&slopes(first)), median(&slopes(second)));
    now > 0.0 && now >= before / 2.0
}

/// True if new maxima keep coming: in a quarter of the points, and up to the end.
fn keeps_rising(points: &[Point]) -> bool {
    let mut highest = points[0].count;
    let mut last = 0;
    let mut records = 0;
    let mut longest = 0;
    for (index, point) in points.iter().enumerate() {
        if point.count > highest {
            highest = point.count;
            longest = longest.max(index - last);
            last = index;
            records += 1;
        }
    }
    records * 4 >= points.len() && points.len() - 1 - last <= longest * 2
}

/// Laplace's statistic of a series of live counts, one per run: nearly normal with mean 0 and standard deviation 1 if objects
/// are added at a constant rate, negative if the rate falls, positive if it rises. 0 if nothing changes.
///
/// A leak adds objects at a constant rate. A memo with many possible keys looks the same for a while, but it adds fewer and
/// fewer as more of its keys are present. The centroid of the additions then lies before the middle of the runs. Each increase
/// is weighted by its own size, so that ten objects added at once are one event, not ten.
///
/// Source: D. R. Cox, P. A. W. Lewis, "The Statistical Analysis of Series of Events" (1966), 3.3.
///
/// ```
/// use memprof_profile::growth::acceleration;
/// assert_eq!(acceleration(&[100, 101, 102, 103, 104]), 0.0);
/// assert!(acceleration(&[0, 50, 75, 88, 94, 97, 99, 100]) < -1.5);
/// ```
pub fn acceleration(counts: &[u64]) -> f64 {
    let runs = counts.len().saturating_sub(1) as f64;
    let (mut moment, mut squares) = (0.0, 0.0);
    for (index, pair) in counts.windows(2).enumerate() {
        let added = pair[1] as f64 - pair[0] as f64;
        moment += added * (index as f64 + 1.0 - (runs + 1.0) / 2.0);
        squares += added * added;
    }
    let variance = squares * (runs * runs - 1.0) / 12.0;
    if variance > 0.0 { moment / variance.sqrt() } else { 0.0 }
}

#[cfg(test)]
mod tests;
