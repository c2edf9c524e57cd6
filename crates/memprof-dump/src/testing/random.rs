//! Random numbers for all tests with generated dumps, heaps and graphs.

/// Pseudorandom numbers, the same in each run.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) % limit.max(1)
    }

    pub fn one_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }
}
