//! Whether growth slows down: Laplace's test for a trend in the rate of events.
//!
//! A leak adds objects at a constant rate. A memo with many possible keys looks the same for a while, but it adds fewer and
//! fewer as more of its keys are present. The centroid of the additions then lies before the middle of the runs. Each increase
//! is weighted by its own size, so that ten objects added at once are one event, not ten.
//!
//! Source: D. R. Cox, P. A. W. Lewis, "The Statistical Analysis of Series of Events" (1966), 3.3.

/// Laplace's statistic of a series of live counts, one per run: nearly normal with mean 0 and standard deviation 1 if objects
/// are added at a constant rate, negative if the rate falls, positive if it rises. 0 if nothing changes.
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
    if variance > 0.0 {
        moment / variance.sqrt()
    } else {
        0.0
    }
}
