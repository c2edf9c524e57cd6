//! How much rarer bursts have to be than wanted, so that a sampler stays within its budget.

/// Times by which bursts become rarer at most.
const RAREST: f64 = 64.0;

/// Adapts to the measured cost. Weights of samples follow the time between bursts, so estimates remain unbiased.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    slower: f64,
}

impl Default for Pace {
    fn default() -> Self {
        Pace { slower: 1.0 }
    }
}

impl Pace {
    /// The factor by which bursts are rarer: 1 if the budget permits all.
    pub fn slower(&self) -> f64 {
        self.slower
    }

    /// The sampler used `cost` of CPU time where `allowed` was permitted. A single measurement changes the pace by half or
    /// double at most, as a burst of a busy machine costs several times what others do.
    pub fn measured(&mut self, cost: f64, allowed: f64) {
        if cost >= 0.0 && allowed > 0.0 {
            self.slower = (self.slower * (cost / allowed).clamp(0.5, 2.0)).clamp(1.0, RAREST);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The pace after 20 measurements of a sampler whose bursts cost `share` of the budget at full pace.
    fn settled(share: f64) -> f64 {
        let mut pace = Pace::default();
        (0..20).for_each(|_| pace.measured(share / pace.slower(), 1.0));
        pace.slower()
    }

    #[test]
    fn costs_what_is_allowed() {
        assert_eq!(settled(0.3), 1.0);
        assert!((settled(5.0) - 5.0).abs() < 0.01, "{}", settled(5.0));
        assert_eq!(settled(1000.0), RAREST);
    }

    #[test]
    fn recovers_when_the_cost_is_gone() {
        let mut pace = Pace::default();
        pace.measured(100.0, 1.0);
        pace.measured(100.0, 1.0);
        assert_eq!(pace.slower(), 4.0);
        (0..3).for_each(|_| pace.measured(0.0, 1.0));
        assert_eq!(pace.slower(), 1.0);
    }

    #[test]
    fn ignores_what_it_cannot_judge() {
        let mut pace = Pace::default();
        pace.measured(1.0, 0.0);
        pace.measured(f64::NAN, 1.0);
        assert_eq!(pace.slower(), 1.0);
    }
}
