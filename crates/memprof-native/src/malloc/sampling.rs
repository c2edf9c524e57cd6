//! Malloc sampling: on average, one of each `period` bytes that a thread allocates is sampled, and the block around it is
//! recorded.
//!
//! Gaps between samples are exponentially distributed. So a block of S bytes is sampled with probability p = 1 - exp(-S /
//! period), whatever was allocated before, and stands for 1 / p blocks like it: the estimates are unbiased. A block is
//! recorded only once, however many samples it contains.
//!
//! All other blocks cost a subtraction when allocated. When a block is freed, a filter usually proves that it is not in the
//! table of live blocks. Otherwise it is looked up there.

use std::sync::atomic::{
    AtomicU8, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};

use memprof_recording::{Scale, Weight};

use super::{tallies, thread_memory};
use crate::counters;

/// Mean number of bytes between samples; 0: all blocks are recorded.
static PERIOD: AtomicU64 = AtomicU64::new(0);

/// Mean number of bytes between samples. None: all blocks are recorded.
pub(super) fn period() -> Option<u64> {
    Some(PERIOD.load(Relaxed)).filter(|&period| period > 0)
}

/// Prepares for a new recording. The table of live blocks must be empty.
pub(super) fn set_period(period: Option<u64>) {
    PERIOD.store(period.unwrap_or(0), Relaxed);
    FILTER.iter().for_each(|count| count.store(0, Relaxed));
    for block in counters::blocks() {
        block.set_until_sample(-1);
    }
}

#[inline(always)]
pub(super) fn is_on() -> bool {
    PERIOD.load(Relaxed) != 0
}

/// Whether a new block of a thread may be recorded. [`is_sample`] decides.
#[inline(always)]
pub(super) fn may_be_sample(thread: &counters::Block, size: u64) -> bool {
    thread.samples(bytes(size))
}

/// Whether the block is a sample, after [`may_be_sample`] returned true. The thread is in the recorder.
#[cold]
pub(super) fn is_sample(thread: &counters::Block, size: u64) -> bool {
    let (Some(period), Some(memory)) = (period(), thread_memory::of(thread)) else {
        return false;
    };
    // SAFETY: the thread's own memory; it is in the recorder.
    let sampler = unsafe { &mut memory.own().sampler };
    let recording = tallies::recording();
    let is_first = sampler.recording != recording;
    sampler.recording = recording;
    let gap = sampler.gap(period, thread.owner());
    if is_first && gap >= bytes(size) as i64 {
        thread.set_until_sample(gap - bytes(size) as i64);
        return false;
    }
    thread.set_until_sample(gap);
    true
}

/// An empty block counts as one byte, so that it can be sampled at all.
#[inline(always)]
fn bytes(size: u64) -> u64 {
    size.max(1)
}

/// Draws the gaps of a thread.
pub(super) struct Sampler {
    /// The recording that the thread's gap belongs to.
    recording: u64,
    state: u64,
}

impl Sampler {
    fn gap(&mut self, period: u64, seed: u64) -> i64 {
        while self.state == 0 {
            self.state = mix(seed ^ std::ptr::from_ref(self) as u64 ^ crate::clock::now());
        }
        // xorshift64*
        self.state ^= self.state >> 12;
        self.state ^= self.state << 25;
        self.state ^= self.state >> 27;
        let random = self.state.wrapping_mul(0x2545_f491_4f6c_dd1d);
        // In (0, 1].
        let uniform = ((random >> 11) + 1) as f64 / (1u64 << 53) as f64;
        // Rounded down: the block at the end of the gap makes it negative.
        (-uniform.ln() * period as f64) as i64
    }
}

fn mix(seed: u64) -> u64 {
    let seed = (seed ^ seed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (seed ^ seed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb)
}

/// The weight of a block of this size.
#[inline(always)]
pub(super) fn weight(size: u64) -> Weight {
    scale().weight(size)
}

/// The factors that turn sums of weights into blocks and bytes.
#[inline(always)]
pub(super) fn scale() -> Scale {
    Scale::new(period())
}

/// Number of blocks in the table per address hash. Saturated counters stay at the maximum. The filter fits into the
/// first-level cache, along with the program's data.
static FILTER: [AtomicU8; 1 << FILTER_BITS] = [const { AtomicU8::new(0) }; 1 << FILTER_BITS];
const FILTER_BITS: u32 = 14;

#[inline(always)]
fn filter(address: usize) -> &'static AtomicU8 {
    let hash = (address as u64 >> 3).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    &FILTER[(hash >> (64 - FILTER_BITS)) as usize]
}

/// Whether a block may be in the table.
#[inline(always)]
pub(super) fn may_be_known(address: usize) -> bool {
    filter(address).load(Acquire) != 0
}

/// Adds a block of the table to the filter; no thread frees it before this returns.
#[inline(always)]
pub(super) fn added(address: usize) {
    if is_on() {
        change(address, |count| count.saturating_add(1));
    }
}

/// Removes a block taken from the table from the filter.
#[inline(always)]
pub(super) fn removed(address: usize) {
    if is_on() {
        change(address, |count| if count == u8::MAX { count } else { count.saturating_sub(1) });
    }
}

fn change(address: usize, to: impl Fn(u8) -> u8) {
    let _ = filter(address).fetch_update(Release, Relaxed, |count| Some(to(count)));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Allocates blocks of known sizes, one run per estimate.
    fn estimate(sizes: &[u64], period: u64, seed: u64) -> (f64, f64) {
        let mut sampler = Sampler { recording: 0, state: mix(seed) };
        let scale = Scale::new(Some(period));
        let (mut blocks, mut total) = (0, 0);
        let mut left = sampler.gap(period, 0);
        for &size in sizes {
            left -= bytes(size) as i64;
            if left < 0 {
                let weight = scale.weight(size);
                (blocks, total) = (blocks + weight.blocks, total + weight.bytes);
                left = sampler.gap(period, 0);
            }
        }
        (scale.blocks(blocks) as f64, scale.bytes(total) as f64)
    }

    /// Typical sizes: many small ones, few larger than the period.
    fn sizes() -> Vec<u64> {
        (0..20_000u64)
            .map(|number| match number % 1_000 {
                0 => 200_000,
                1..20 => 9_000 + number,
                _ => 16 + mix(number) % 600,
            })
            .collect()
    }

    #[test]
    fn estimates_are_within_three_sigma_in_200_runs_and_unbiased() {
        let (sizes, period) = (sizes(), 16 * 1024);
        let exact = [sizes.len() as f64, sizes.iter().sum::<u64>() as f64];
        // The variance of a sum over blocks, each sampled with its own probability.
        let variance = |of: fn(f64) -> f64| -> f64 {
            let each = sizes.iter().map(|&size| {
                let probability = 1.0 - (-(size as f64) / period as f64).exp();
                of(size as f64).powi(2) * (1.0 - probability) / probability
            });
            each.sum()
        };
        let sigma = [variance(|_| 1.0).sqrt(), variance(|size| size).sqrt()];
        let mut sums = [0.0, 0.0];
        let mut outside = 0;
        for run in 0..200 {
            let (blocks, bytes) = estimate(&sizes, period, run + 1);
            for (of, found) in [blocks, bytes].into_iter().enumerate() {
                sums[of] += found;
                outside += usize::from((found - exact[of]).abs() > 3.0 * sigma[of]);
            }
        }
        // The expected number of outliers among 400 estimates is 1.1.
        assert!(outside <= 4, "{outside} of 400 outside of 3 sigma");
        for of in 0..2 {
            let mean = sums[of] / 200.0;
            let error = (mean - exact[of]).abs() / (sigma[of] / 200f64.sqrt());
            assert!(error < 3.0, "the mean is {error} sigma off");
        }
    }

    #[test]
    fn the_filter_lets_through_what_was_added() {
        let addresses = (0..5_000).map(|number| 0x7f11_0000_0000 + number * 7_216);
        addresses.clone().for_each(|address| change(address, |count| count.saturating_add(1)));
        assert!(addresses.clone().all(may_be_known));
        addresses.clone().for_each(|address| {
            change(address, |count| if count == u8::MAX { count } else { count - 1 });
        });
        assert!(addresses.filter(|&address| may_be_known(address)).count() < 10);
    }
}
