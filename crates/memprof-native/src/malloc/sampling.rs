//! Samples of malloc: of each `period` bytes that a thread allocates, one is sampled on average, and the block that it is
//! in is recorded.
//!
//! Gaps between samples have an exponential distribution. So a block of S bytes is sampled with the probability
//! 1 - exp(-S / period), whatever was allocated before, and stands for 1 / that many blocks like it: the estimates are
//! unbiased. A block is recorded once at most, however many samples are in it.
//!
//! All others cost a subtraction when they are allocated. When one is freed, a filter says that it is certainly not in the
//! table of live blocks. What the filter lets through is looked up there.

use std::sync::atomic::{
    AtomicU8, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};

use memprof_recording::{Scale, Weight};

use super::{tallies, thread_memory};
use crate::counters;

/// Bytes between samples on average; 0: all blocks are recorded.
static PERIOD: AtomicU64 = AtomicU64::new(0);

/// Bytes between samples on average. None: all blocks are recorded.
pub(super) fn period() -> Option<u64> {
    Some(PERIOD.load(Relaxed)).filter(|&period| period > 0)
}

/// For the recording that starts now. Nothing is in the table of live blocks.
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

/// Whether a block that a thread allocates may be recorded. [`is_sample`] decides.
#[inline(always)]
pub(super) fn may_be_sample(thread: &counters::Block, size: u64) -> bool {
    thread.samples(bytes(size))
}

/// Whether the block is a sample, once [`may_be_sample`] has said so. The thread is in the recorder.
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

/// A block of no bytes counts as one of one byte, so that it is seen at all.
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
        // Rounded down: the block that the gap ends in takes it below 0.
        (-uniform.ln() * period as f64) as i64
    }
}

fn mix(seed: u64) -> u64 {
    let seed = (seed ^ seed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (seed ^ seed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb)
}

/// What a block of that size counts for.
#[inline(always)]
pub(super) fn weight(size: u64) -> Weight {
    scale().weight(size)
}

/// How sums of weights become blocks and bytes.
#[inline(always)]
pub(super) fn scale() -> Scale {
    Scale::new(period())
}

/// How many blocks of the table have an address of that hash. One that came to the most stays there. It fits into the
/// first cache of a processor, beside what the program has there.
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

/// A block came into the table; no thread frees it before this returns.
#[inline(always)]
pub(super) fn added(address: usize) {
    if is_on() {
        change(address, |count| count.saturating_add(1));
    }
}

/// A block was taken from the table.
#[inline(always)]
pub(super) fn removed(address: usize) {
    if is_on() {
        change(address, |count| {
            if count == u8::MAX {
                count
            } else {
                count.saturating_sub(1)
            }
        });
    }
}

fn change(address: usize, to: impl Fn(u8) -> u8) {
    let _ = filter(address).fetch_update(Release, Relaxed, |count| Some(to(count)));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Allocates blocks of known sizes until each run has its estimates.
    fn estimate(sizes: &[u64], period: u64, seed: u64) -> (f64, f64) {
        let mut sampler = Sampler {
            recording: 0,
            state: mix(seed),
        };
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

    /// Sizes as programs have them: many small ones, few that are larger than the period.
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
        // The variance of a sum of blocks, each of which is there with its own probability.
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
        // Of 400 estimates 1.1 are outside on average.
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
        addresses
            .clone()
            .for_each(|address| change(address, |count| count.saturating_add(1)));
        assert!(addresses.clone().all(may_be_known));
        addresses.clone().for_each(|address| {
            change(
                address,
                |count| if count == u8::MAX { count } else { count - 1 },
            );
        });
        assert!(addresses.filter(|&address| may_be_known(address)).count() < 10);
    }
}
