//! Which objects are recorded: one in `n` on average, chosen so that counts times `n` are unbiased.

/// Draws the gaps between recorded objects from the geometric distribution with mean `n`, so that each object is
/// recorded with probability 1/n whatever came before it: a program that allocates in a rhythm can't fall in step.
#[derive(Debug)]
pub struct Sampler {
    interval: u32,
    state: u64,
}

impl Sampler {
    /// Records one object in `interval` on average; 1 records all. `seed` chooses the sequence.
    pub fn new(interval: u32, seed: u64) -> Self {
        Sampler {
            interval: interval.max(1),
            state: seed | 1,
        }
    }

    /// Mean number of objects per recorded object.
    pub fn interval(&self) -> u32 {
        self.interval
    }

    /// Objects to pass over before the next that is recorded.
    #[inline]
    pub fn gap(&mut self) -> u32 {
        if self.interval == 1 {
            return 0;
        }
        // Inversion: floor(ln U / ln(1 - 1/n)) is geometric on 0, 1, 2, ... (Devroye 1986, chapter X.2).
        let miss = 1.0 - 1.0 / f64::from(self.interval);
        (self.uniform().ln() / miss.ln()).min(f64::from(u32::MAX)) as u32
    }

    /// Uniform in (0, 1], from xorshift64* (Vigna 2016).
    fn uniform(&mut self) -> f64 {
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
        let mut sampler = Sampler::new(1, 42);
        assert!((0..1000).all(|_| sampler.gap() == 0));
    }

    #[test]
    fn takes_one_in_n_without_a_rhythm() {
        for interval in [2u32, 10, 1000] {
            let mut sampler = Sampler::new(interval, 7);
            let births = 4_000_000u32;
            // Objects of two kinds that alternate: both must be met equally often.
            let mut taken = [0u32; 2];
            let mut next = sampler.gap();
            while next < births {
                taken[(next % 2) as usize] += 1;
                next += 1 + sampler.gap();
            }
            let expected = f64::from(births) / f64::from(interval) / 2.0;
            // Five standard deviations of a binomial count.
            let bound = 5.0 * (expected * (1.0 - 1.0 / f64::from(interval))).sqrt();
            for count in taken {
                let difference = (f64::from(count) - expected).abs();
                assert!(
                    difference < bound,
                    "1 in {interval}: {count} for {expected}"
                );
            }
        }
    }
}
