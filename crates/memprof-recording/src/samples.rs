//! Weights of blocks in a sampled recording.
//!
//! Of each `period` bytes that a thread allocates, one is sampled on average, with exponentially distributed gaps. So a block
//! of S bytes is sampled with probability 1 - exp(-S / period), and represents the reciprocal number of similar blocks: sums of
//! weights are unbiased. The weight follows from size and period, so recordings store only these.

/// Fractional bits in sums of weights: a block may represent 1.3 blocks.
const BLOCK_BITS: u32 = 16;
const BYTE_BITS: u32 = 8;

/// Weight of a block: one block, or more in a sampled recording. [`Scale`] defines the unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Weight {
    /// Blocks.
    pub blocks: u64,
    /// Bytes.
    pub bytes: u64,
}

impl Weight {
    /// Weight of a block if all are recorded.
    #[inline(always)]
    #[must_use]
    pub fn of_block(size: u64) -> Weight {
        Weight { blocks: 1, bytes: size }
    }

    /// Weight of a sample. As in the sampler, a block of zero bytes counts as one byte.
    #[cold]
    #[must_use]
    pub fn of_sample(size: u64, period: u64) -> Weight {
        let probability = -(-(size.max(1) as f64) / period as f64).exp_m1();
        let blocks = 1.0 / probability;
        Weight {
            blocks: (blocks * f64::from(1 << BLOCK_BITS)).round() as u64,
            bytes: (blocks * size as f64 * f64::from(1 << BYTE_BITS)).round() as u64,
        }
    }
}

/// Converts sums of weights to blocks and bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scale {
    period: Option<u64>,
}

impl Scale {
    /// `period`: bytes between samples, or None if all blocks are recorded.
    #[must_use]
    pub fn new(period: Option<u64>) -> Scale {
        Scale { period }
    }

    /// Bytes between samples.
    #[must_use]
    pub fn period(self) -> Option<u64> {
        self.period
    }

    /// Weight of a block.
    #[inline(always)]
    #[must_use]
    pub fn weight(self, size: u64) -> Weight {
        match self.period {
            None => Weight::of_block(size),
            Some(period) => Weight::of_sample(size, period),
        }
    }

    /// A sum of weights in blocks.
    #[must_use]
    pub fn blocks(self, sum: u64) -> u64 {
        self.round(sum, BLOCK_BITS)
    }

    /// A sum of weights in bytes.
    #[must_use]
    pub fn bytes(self, sum: u64) -> u64 {
        self.round(sum, BYTE_BITS)
    }

    fn round(self, sum: u64, bits: u32) -> u64 {
        match self.period {
            None => sum,
            Some(_) => sum.saturating_add(1 << (bits - 1)) >> bits,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_much_larger_than_the_period_stands_for_itself() {
        let scale = Scale::new(Some(1 << 19));
        let weight = scale.weight(1 << 30);
        assert_eq!((scale.blocks(weight.blocks), scale.bytes(weight.bytes)), (1, 1 << 30));
        // A block of zero bytes counts as a block.
        assert!(scale.blocks(scale.weight(0).blocks) >= 500_000);
        assert_eq!(scale.weight(0).bytes, 0);
    }

    #[test]
    fn a_small_block_stands_for_a_period_of_bytes() {
        let scale = Scale::new(Some(1 << 19));
        let weight = scale.weight(100);
        assert_eq!(scale.bytes(weight.bytes), (1 << 19) + 50);
        assert_eq!(scale.blocks(weight.blocks), ((1 << 19) + 50) / 100);
        assert_eq!(Scale::default().weight(100), Weight::of_block(100));
        assert_eq!(Scale::default().bytes(100), 100);
    }
}
