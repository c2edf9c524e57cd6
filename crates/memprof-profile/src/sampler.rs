//! Selects the objects to record: one in `n` on average, chosen so that counts times `n` are unbiased.

/// Draws the gaps between recorded objects from the geometric distribution with mean `n`, so that each object is recorded with
/// probability 1/n regardless of earlier ones: a program with a periodic pattern can't fall in step.
#[derive(Debug)]
pub struct Sampler {
    interval: u32,
    state: u64,
}

impl Sampler {
    /// Records all objects until an interval is set. `seed` chooses the sequence.
    pub fn new(seed: u64) -> Self {
        let mut sampler = Sampler { interval: 1, state: 1 };
        sampler.reseed(seed);
        sampler
    }

    /// Restarts with another sequence. Seeds that differ in one bit give unrelated sequences.
    pub fn reseed(&mut self, seed: u64) {
        // The finalizer of splitmix64 (Steele, Lea, Flood 2014); xorshift must not start at 0.
        let mut mixed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        self.state = (mixed ^ (mixed >> 31)).max(1);
    }

    /// Records one object in `interval` on average from now on; 1 records all. Continues the sequence.
    pub fn set_interval(&mut self, interval: u32) {
        self.interval = interval.max(1);
    }

    /// Mean number of objects per recorded object.
    pub fn interval(&self) -> u32 {
        self.interval
    }

    /// Objects to skip before the next one to record.
    #[inline]
    pub fn gap(&mut self) -> u32 {
        if self.interval == 1 {
            return 0;
        }
        // Inversion: floor(ln U / ln(1 - 1/n)) is geometric on 0, 1, 2, ... (Devroye 1986, chapter X.2).
        let miss = 1.0 - 1.0 / f64::from(self.interval);
        (self.uniform().ln() / miss.ln()).min(f64::from(u32::MAX)) as u32
    }

    /// Exponential with mean 1.
    pub fn exponential(&mut self) -> f64 {
        -self.uniform().ln()
    }

    /// Uniform in (0, 1], from xorshift64* (Vigna 2016).
    pub(crate) fn uniform(&mut self) -> f64 {
        self.state ^= self.state >> 12;
        self.state ^= self.state << 25;
        self.state ^= self.state >> 27;
        let bits = self.state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11;
        (bits + 1) as f64 / (1u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_of_one_takes_all() {
        let mut sampler = Sampler::new(42);
        assert!((0..1000).all(|_| sampler.gap() == 0));
    }

    #[test]
    fn seeds_that_are_alike_start_unlike_sequences() {
        let first_gaps: std::collections::HashSet<u32> = (0..100)
            .map(|seed| {
                let mut sampler = Sampler::new(seed);
                sampler.set_interval(1_000_000);
                sampler.gap()
            })
            .collect();
        assert!(first_gaps.len() > 95, "{}", first_gaps.len());
    }

    #[test]
    fn takes_one_in_n_without_a_rhythm() {
        for interval in [2u32, 10, 1000] {
            let mut sampler = Sampler::new(7);
            sampler.set_interval(interval);
            let allocations = 4_000_000u32;
            // Objects of two alternating kinds must be sampled equally often.
            let mut taken = [0u32; 2];
            let mut next = sampler.gap();
            while next < allocations {
                taken[(next % 2) as usize] += 1;
                next += 1 + sampler.gap();
            }
            let expected = f64::from(allocations) / f64::from(interval) / 2.0;
            // Five standard deviations of a binomial count.
            let bound = 5.0 * (expected * (1.0 - 1.0 / f64::from(interval))).sqrt();
            for count in taken {
                let difference = (f64::from(count) - expected).abs();
                assert!(difference < bound, "1 in {interval}: {count} for {expected}");
            }
        }
    }
}
