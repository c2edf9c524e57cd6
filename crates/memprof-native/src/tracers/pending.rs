//! What has to be remembered between two calls, without allocating.

use std::sync::atomic::{
    AtomicU64, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};

use super::sql::{self, Kind};
use crate::clock;

const CONNECTIONS: usize = 64;
const STATEMENTS: usize = 4096;

/// Queries that were sent, and whose answers nobody has seen yet, by connection. A connection is used by one thread
/// at a time. If there are more than 64, the time of some is not counted.
pub(super) struct Sent {
    places: [(AtomicUsize, AtomicU64, AtomicU64); CONNECTIONS],
}

impl Sent {
    pub const fn new() -> Sent {
        Sent {
            places: [const { (AtomicUsize::new(0), AtomicU64::new(0), AtomicU64::new(0)) };
                CONNECTIONS],
        }
    }

    /// Remembers that a query was sent.
    pub fn begin(&self, connection: usize, kind: Kind, begun: u64) {
        let holds = |wanted: usize| {
            self.places
                .iter()
                .find(move |place| place.0.load(Relaxed) == wanted)
        };
        let take = |place: &&(AtomicUsize, AtomicU64, AtomicU64)| {
            place
                .0
                .compare_exchange(0, connection, Acquire, Relaxed)
                .is_ok()
        };
        let place = holds(connection).or_else(|| self.places.iter().find(take));
        // Full of connections that were closed in the middle of a query: one of them makes room.
        let place = place.unwrap_or(&self.places[connection / 64 % CONNECTIONS]);
        place.1.store(begun, Relaxed);
        place.2.store(kind as u64, Relaxed);
        place.0.store(connection, Release);
    }

    /// Counts the time since the query was sent, once.
    pub fn end(&self, connection: usize, base: usize) {
        let Some(place) = self
            .places
            .iter()
            .find(|place| place.0.load(Acquire) == connection)
        else {
            return;
        };
        let (begun, kind) = (
            place.1.load(Relaxed),
            Kind::from_index(place.2.load(Relaxed)),
        );
        if place
            .0
            .compare_exchange(connection, 0, Release, Relaxed)
            .is_ok()
        {
            sql::spent(base, kind, 0, clock::since(begun));
        }
    }
}

/// The kinds of prepared statements, by what names them. A statement may lose its place to another one with the same
/// hash; its kind is unknown then.
pub(super) struct Prepared {
    places: [AtomicU64; STATEMENTS],
}

impl Prepared {
    pub const fn new() -> Prepared {
        Prepared {
            places: [const { AtomicU64::new(0) }; STATEMENTS],
        }
    }

    pub fn set(&self, name: u64, kind: Kind) {
        let hash = mix(name);
        self.places[hash as usize % STATEMENTS].store(hash & !7 | kind as u64, Relaxed);
    }

    pub fn get(&self, name: u64) -> Kind {
        let hash = mix(name);
        let found = self.places[hash as usize % STATEMENTS].load(Relaxed);
        if found & !7 == hash & !7 {
            Kind::from_index(found & 7)
        } else {
            Kind::Unknown
        }
    }
}

fn mix(name: u64) -> u64 {
    let hash = (name ^ (name >> 31)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    // Never that of an empty place.
    (hash ^ (hash >> 29)) | 1 << 63
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_of_statements() {
        let prepared = Prepared::new();
        assert_eq!(prepared.get(0), Kind::Unknown);
        for name in 0..50 {
            prepared.set(name * 64, Kind::from_index(name % 5));
        }
        let right = (0..50)
            .filter(|name| prepared.get(name * 64) == Kind::from_index(name % 5))
            .count();
        assert!(right >= 45, "{right} of 50 are known");
        assert_eq!(prepared.get(12_345), Kind::Unknown);
    }

    #[test]
    fn more_connections_than_places() {
        let sent = Sent::new();
        for connection in 1..=200 {
            sent.begin(connection * 64, Kind::Select, 1);
        }
        assert!(sent.places.iter().all(|place| place.0.load(Relaxed) != 0));
    }
}
