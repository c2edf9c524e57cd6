//! The allocation site of a block.

use memprof_recording::Place;
use serde::Serialize;

use crate::analysis::Analysis;

/// The allocation site, if it was recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Allocated {
    /// `file:line`, or native code if no Ruby code was running.
    #[serde(skip_serializing_if = "Option::is_none")]
    allocated_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    method: Option<String>,
}

impl Allocated {
    pub fn of(analysis: &Analysis, number: u32) -> Allocated {
        let place = analysis.recorded().and_then(|recorded| recorded.place(number));
        place.map(Allocated::at).unwrap_or_default()
    }

    pub fn at(place: &Place) -> Allocated {
        Allocated {
            allocated_at: Some(place.location.clone()),
            method: (!place.method.is_empty()).then(|| place.method.clone()),
        }
    }
}
