//! Memory use over time, in a bounded number of points however long the recording is.

use serde::Serialize;

/// A point has the values at its end, and the maximum of live bytes since the previous one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Point {
    /// Milliseconds since the start.
    pub ms: u64,
    /// Maximum of live bytes since the previous point.
    pub live_bytes: u64,
    /// RSS in bytes.
    pub rss: u64,
    /// Calls since the start.
    pub allocations: u64,
}

/// Above this number, adjacent points are merged.
const MOST: usize = 512;

#[derive(Debug, Default)]
pub(crate) struct Timeline {
    points: Vec<Point>,
    /// Number of clocks per point.
    clocks_a_point: usize,
    clocks: usize,
}

impl Timeline {
    pub(crate) fn add(&mut self, point: Point) {
        if self.clocks % self.clocks_a_point.max(1) == 0 {
            self.points.push(point);
        } else if let Some(last) = self.points.last_mut() {
            *last = merged(*last, point);
        }
        self.clocks += 1;
        if self.points.len() > MOST {
            self.points = self.points.chunks(2).map(merge_all).collect();
            self.clocks_a_point = self.clocks_a_point.max(1) * 2;
            self.clocks = self.points.len() * self.clocks_a_point;
        }
    }

    pub(crate) fn into_points(self) -> Vec<Point> {
        self.points
    }
}

fn merge_all(points: &[Point]) -> Point {
    points.iter().copied().reduce(merged).unwrap_or_default()
}

fn merged(first: Point, second: Point) -> Point {
    Point {
        live_bytes: first.live_bytes.max(second.live_bytes),
        rss: first.rss.max(second.rss),
        ..second
    }
}
