//! Nodes of `std::list`: `{next, previous, element}` in a ring with the header `{next, previous, number of elements}`. libc++
//! swaps the two pointers, which makes no difference here.

use super::Container;
use super::finder::{Finder, Place};

const PREVIOUS: u64 = 8;
const COUNT: u64 = 16;

impl Finder<'_> {
    /// Walks the ring if this member may be its header.
    pub(super) fn list(&mut self, place: &Place<'_>, next: u32) {
        let (Some(previous), Some(count)) = (place.word(1), place.word(2)) else {
            return;
        };
        // A numeric element may look like the header's count, so each ring is walked only once.
        if !self.is_count(count) || self.is_seen(next) || self.used_at(previous).is_none() {
            return;
        }
        let at = place.at;
        let next = place.word(0).unwrap_or_default();
        if self.word(next, PREVIOUS) == Some(at) && self.word(previous, 0) == Some(at) {
            if let Some(nodes) = self.ring(at) {
                self.found_nodes(&nodes, Container::ListNode);
            }
        }
    }

    /// The nodes of a ring: all pointers are consistent, and one member, the header, has their number.
    fn ring(&mut self, start: u64) -> Option<Vec<u32>> {
        let mut members = Vec::new();
        // The header, if it is in a variable or in the middle of a block. All nodes are at the beginning of a block.
        let mut header = None;
        let mut at = start;
        loop {
            match self.used_at(at) {
                Some((number, _)) => {
                    self.see(number);
                    members.push(number);
                }
                None if header.replace(at).is_some() => return None,
                None => {}
            }
            let next = self.word(at, 0)?;
            if self.word(next, PREVIOUS)? != at || !self.step() {
                return None;
            }
            if next == start {
                break;
            }
            at = next;
        }
        match header {
            Some(header) => {
                let is_known = self.word(header, COUNT)? == members.len() as u64;
                is_known.then_some(members)
            }
            None => {
                let count = members.len() as u64 - 1;
                let mut headers = Vec::new();
                for (place, number) in members.iter().enumerate() {
                    if self.word(self.address(*number)?, COUNT)? == count {
                        headers.push(place);
                    }
                }
                let [header] = headers[..] else {
                    return None; // an element is the same number
                };
                members.swap_remove(header);
                Some(members)
            }
        }
    }
}
