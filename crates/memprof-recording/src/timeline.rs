//! Consumption over time, in a bounded number of points however long the recording is.

use serde::Serialize;

/// A point has what was measured at its end, and the most that was live since the one before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Point {
    /// Milliseconds since the start.
    pub ms: u64,
    /// Most live bytes since the point before.
    pub live_bytes: u64,
    /// RSS in bytes.
    pub rss: u64,
    /// Calls since the start.
    pub allocations: u64,
}

/// Points side by side are merged when there are too many.
const MOST: usize = 512;

#[derive(Debug, Default)]
pub(crate) struct Timeline {
    points: Vec<Point>,
    /// How many clocks a point stands for.
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
