//! Start times of GC generations.
//!
//! Reading the clock at each allocation would double its cost, so an object's time is that of its generation.

/// Generations stored one by one; beyond that every second one, then every fourth.
const MOST: usize = 1 << 16;

/// Start times of generations, oldest first.
#[derive(Debug)]
pub struct Generations {
    begun: Vec<(u32, u64)>,
    /// Distance between stored generations.
    step: u32,
}

impl Default for Generations {
    fn default() -> Self {
        Generations { begun: Vec::new(), step: 1 }
    }
}

impl Generations {
    /// Stores the start of a generation.
    pub fn push(&mut self, generation: u32, time: u64) {
        let due = |(last, _): &(u32, u64)| generation.wrapping_sub(*last) >= self.step;
        if !self.begun.last().is_none_or(due) {
            return;
        }
        if self.begun.len() >= MOST {
            self.step = self.step.saturating_mul(2);
            let mut keep = false;
            self.begun.retain(|_| {
                keep = !keep;
                keep
            });
        }
        self.begun.push((generation, time));
    }

    /// Start time of the generation or of one shortly before it; 0 if it is older than all stored ones.
    pub fn time(&self, generation: u32) -> u64 {
        let after = self.begun.partition_point(|(begun, _)| *begun <= generation);
        let known = after.checked_sub(1).and_then(|index| self.begun.get(index));
        known.map_or(0, |(_, time)| *time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_when_a_generation_began() {
        let mut generations = Generations::default();
        for (generation, time) in [(3, 30), (3, 31), (5, 50)] {
            generations.push(generation, time);
        }
        let times: Vec<u64> = (2..=6).map(|generation| generations.time(generation)).collect();
        assert_eq!(times, [0, 30, 30, 50, 50]);
    }

    #[test]
    fn stays_small_and_near_the_truth() {
        let mut generations = Generations::default();
        for generation in 0..1_000_000 {
            generations.push(generation, u64::from(generation) * 10);
        }
        assert!(generations.begun.len() <= MOST);
        for generation in [0, 1, 65_536, 500_000, 999_999] {
            let late = u64::from(generation) * 10 - generations.time(generation);
            assert!(late <= 32 * 10, "{late} too early for {generation}");
        }
    }
}
