//! Costs of requests for one kind.

use serde::Serialize;

use crate::kinds::Unit;
use crate::number::{Number, Sum};

/// Costs of requests for one kind.
#[derive(Clone, Debug, Serialize)]
pub struct Cost {
    /// Kind of cost.
    pub kind: String,
    /// Unit of the numbers.
    pub unit: Unit,
    /// Sum over all requests.
    pub total: Number,
    /// Mean per request.
    pub mean: f64,
    /// Percentiles by nearest rank: values that occurred.
    pub p50: Number,
    /// See `p50`.
    pub p90: Number,
    /// See `p50`.
    pub p95: Number,
    /// See `p50`.
    pub p99: Number,
    /// Maximum of a request.
    pub max: Number,
}

impl Cost {
    /// The costs given, and 0 for the other requests. `None` if all are 0.
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
