//! Events on their way from the hooks to the writer thread: a bounded ring of buffers.
//!
//! All threads share one ring, which keeps events in order: a block's free follows its allocation, and the peak is exact. A
//! thread that finds all buffers full waits for the writer, which needs no lock that a thread in a hook may have.

use std::ptr;

use super::block_entry::{MAX_SIZE, SITE_BITS, address_of, key_of};
use super::pages;
use super::sites::SiteId;

/// The allocation or the free of a block of a site.
#[derive(Clone, Copy)]
pub(super) struct Event {
    /// The size, above it whether it was freed, above that the site, as in the table of blocks.
    block: u64,
    /// The address divided by 8, as in the table: a leak checker would take the plain address for a reference.
    key: u64,
}

/// Marks a freed block.
const IS_FREE: u64 = MAX_SIZE + 1;

impl Event {
    #[inline(always)]
    pub(super) fn new(address: usize, site: SiteId, size: u64, is_free: bool) -> Event {
        Event {
            block: size.min(MAX_SIZE)
                | if is_free { IS_FREE } else { 0 }
                | u64::from(site.0) << (64 - SITE_BITS),
            key: key_of(address),
        }
    }

    pub(super) fn address(self) -> u64 {
        address_of(self.key)
    }

    /// The requested bytes.
    pub(super) fn size(self) -> u64 {
        self.block & MAX_SIZE
    }

    pub(super) fn site(self) -> SiteId {
        SiteId((self.block >> (64 - SITE_BITS)) as u32)
    }

    pub(super) fn is_free(self) -> bool {
        self.block & IS_FREE != 0
    }
}

/// Events per buffer.
const EVENTS: usize = 1 << 15;
const BUFFERS: usize = 16;

/// The outcome of pushing an event.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Pushed {
    /// The event is in a buffer.
    Yes,
    /// The event is in a buffer, and the writer has a full one to write.
    Filled,
    /// All buffers are full.
    Full,
    /// No recording is running.
    Off,
}

/// Buffers `first` to `first + full - 1` wait for the writer; the next one is being filled.
pub(super) struct Ring {
    /// Null until the first recording; never unmapped after that.
    events: *mut Event,
    is_on: bool,
    first: usize,
    full: usize,
    used: usize,
    /// Events in the full buffers.
    lengths: [usize; BUFFERS],
}

// SAFETY: the events are only accessed through the ring.
unsafe impl Send for Ring {}

impl Ring {
    pub(super) const fn new() -> Ring {
        Ring {
            events: ptr::null_mut(),
            is_on: false,
            first: 0,
            full: 0,
            used: 0,
            lengths: [0; BUFFERS],
        }
    }

    /// Empties the ring and starts to accept events. False if out of memory.
    pub(super) fn start(&mut self) -> bool {
        if self.events.is_null() {
            self.events = pages::map(EVENTS * BUFFERS);
        }
        (self.first, self.full, self.used) = (0, 0, 0);
        self.is_on = !self.events.is_null();
        self.is_on
    }

    /// Accepts no more events; those in the ring can still be taken.
    pub(super) fn stop(&mut self) {
        self.is_on = false;
    }

    #[inline(always)]
    pub(super) fn push(&mut self, event: Event) -> Pushed {
        if !self.is_on {
            return Pushed::Off;
        }
        if self.used == EVENTS {
            if !self.close() {
                return Pushed::Full;
            }
            self.put(event);
            return Pushed::Filled;
        }
        self.put(event);
        Pushed::Yes
    }

    #[inline(always)]
    fn put(&mut self, event: Event) {
        let buffer = (self.first + self.full) % BUFFERS;
        debug_assert!(self.used < EVENTS);
        // SAFETY: an index inside the mapping, which has `BUFFERS` times `EVENTS` events.
        unsafe { *self.events.add(buffer * EVENTS + self.used) = event };
        self.used += 1;
    }

    /// Passes the current buffer to the writer and starts the next one. False if none is free.
    fn close(&mut self) -> bool {
        if self.full + 1 == BUFFERS {
            return false;
        }
        self.lengths[(self.first + self.full) % BUFFERS] = self.used;
        self.full += 1;
        self.used = 0;
        true
    }

    /// Copies the oldest buffer and frees it for reuse. With `partial`, also one that is not full.
    pub(super) fn take(&mut self, partial: bool, into: &mut Vec<Event>) {
        into.clear();
        if self.full == 0 && !(partial && self.used > 0 && self.close()) {
            return;
        }
        let length = self.lengths[self.first].min(EVENTS);
        // SAFETY: a buffer of the mapping, of which this many events were written (`put`).
        let events =
            unsafe { std::slice::from_raw_parts(self.events.add(self.first * EVENTS), length) };
        into.extend_from_slice(events);
        self.first = (self.first + 1) % BUFFERS;
        self.full -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn push(ring: &mut Ring, number: usize) -> Pushed {
        ring.push(Event::new(
            number << 4,
            SiteId(number as u32 % 1000),
            number as u64,
            number % 3 == 0,
        ))
    }

    #[test]
    fn events_come_out_in_their_order_and_none_is_lost() {
        let mut ring = Ring::new();
        assert_eq!(push(&mut ring, 0), Pushed::Off);
        assert!(ring.start());
        let (mut pushed, mut taken) = (0, 0);
        let mut events = Vec::new();
        for round in 0..40 {
            for _ in 0..EVENTS / 2 + round * 1000 {
                match push(&mut ring, pushed) {
                    Pushed::Full => break,
                    Pushed::Off => unreachable!(),
                    Pushed::Yes | Pushed::Filled => pushed += 1,
                }
            }
            ring.take(round % 3 == 0, &mut events);
            for event in &events {
                assert_eq!(event.size(), taken as u64);
                assert_eq!(event.address(), (taken << 4) as u64);
                assert_eq!(event.site(), SiteId(taken as u32 % 1000));
                assert_eq!(event.is_free(), taken % 3 == 0);
                taken += 1;
            }
        }
        ring.stop();
        assert_eq!(push(&mut ring, 0), Pushed::Off);
        loop {
            ring.take(true, &mut events);
            taken += events.len();
            if events.is_empty() {
                break;
            }
        }
        assert_eq!(taken, pushed);
    }

    #[test]
    fn a_full_ring_says_so_until_there_is_room() {
        let mut ring = Ring::new();
        assert!(ring.start());
        let mut count = 0;
        while push(&mut ring, count) != Pushed::Full {
            count += 1;
        }
        assert_eq!(count, EVENTS * BUFFERS);
        let mut events = Vec::new();
        ring.take(false, &mut events);
        assert_eq!(events.len(), EVENTS);
        assert_eq!(push(&mut ring, count), Pushed::Filled);
    }
}
