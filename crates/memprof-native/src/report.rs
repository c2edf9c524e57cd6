//! The report of a trace: plain data.

use std::borrow::Cow;

/// One entry for each requested tracer, in that order; an empty map if it has nothing to report.
pub type Report = Vec<(&'static str, Node)>;

/// A value in a report.
#[derive(Clone, Debug, PartialEq)]
pub enum Node {
    /// A number of calls, bytes or events.
    Count(u64),
    /// A duration.
    Seconds(f64),
    /// Values by name, in display order.
    Map(Vec<(Cow<'static, str>, Node)>),
}

impl Node {
    /// The entry with this name, if this is a map that has one.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Node> {
        match self {
            Node::Map(entries) => {
                entries.iter().find(|(name, _)| name == key).map(|(_, node)| node)
            }
            _ => None,
        }
    }

    /// The number, if this is one.
    #[must_use]
    pub fn count(&self) -> Option<u64> {
        match self {
            Node::Count(count) => Some(*count),
            _ => None,
        }
    }

    /// The duration in seconds, if this is one.
    #[must_use]
    pub fn seconds(&self) -> Option<f64> {
        match self {
            Node::Seconds(seconds) => Some(*seconds),
            _ => None,
        }
    }
}

#[cfg(target_os = "linux")]
pub(crate) fn map(entries: Vec<(&'static str, Node)>) -> Node {
    Node::Map(entries.into_iter().map(|(name, node)| (Cow::Borrowed(name), node)).collect())
}
