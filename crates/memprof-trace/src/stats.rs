//! What requests cost of one kind.

use serde::Serialize;

use crate::kinds::Unit;
use crate::number::{Number, Sum};

/// What requests cost of one kind.
#[derive(Clone, Debug, Serialize)]
pub struct Cost {
    /// Of cost.
    pub kind: String,
    /// What it is counted in.
    pub unit: Unit,
    /// Of all requests.
    pub total: Number,
    /// Of a request.
    pub mean: f64,
    /// Percentiles, by nearest rank: values that there were.
    pub p50: Number,
    /// See `p50`.
    pub p90: Number,
    /// See `p50`.
    pub p95: Number,
    /// See `p50`.
    pub p99: Number,
    /// Of the request with most.
    pub max: Number,
}

impl Cost {
    /// Of what some of the requests cost; for the others it was 0. `None` if that is nothing in all.
    pub fn of(kind: &str, mut costs: Vec<Number>, requests: u64) -> Option<Cost> {
        let missing = usize::try_from(requests).ok()?.checked_sub(costs.len())?;
        costs.resize(costs.len() + missing, Number::Int(0));
        costs.sort_by(Number::compare);
        let total = costs.iter().copied().collect::<Sum>().total();
        if total.is_zero() {
            return None;
        }
        let percentile = |percent: usize| {
            let rank = (percent * costs.len()).div_ceil(100);
            costs[rank.saturating_sub(1).min(costs.len() - 1)]
        };
        Some(Cost {
            kind: kind.to_owned(),
            unit: Unit::of(kind),
            total,
            mean: total.float() / requests as f64,
            p50: percentile(50),
            p90: percentile(90),
            p95: percentile(95),
            p99: percentile(99),
            max: *costs.last()?,
        })
    }
}
