//! Steps of a thread from a caller's site to the site of a frame that it called.
//!
//! A line after another mostly allocates in the same order as before: a step is expected to follow the step that it followed
//! last time, which is checked with one read. Steps are stored in the order in which they were met, so those that follow each
//! other mostly share a cache line. Only others are looked up in the index.

use super::site_cache::mixed;
use super::sites::SiteId;

/// Most steps, the root included: their numbers fit in half a word of the index.
const MOST: usize = 1 << 16;
/// Size of the index.
const PLACES: usize = MOST * 2;

/// Not a step: it stands for a stack without frames.
pub(super) const ROOT: u32 = 0;

#[derive(Clone, Copy)]
struct Step {
    /// The frame's instruction, or its return address.
    instruction: usize,
    /// The number of the caller's site + 1; 0: it has none.
    caller: u32,
    /// The same for the frame itself.
    site: u32,
    /// The step with the same callers that came after this one.
    next: u32,
    /// The first step from this one when its frame was called.
    inner: u32,
}

/// All zero: empty.
pub(super) struct Steps {
    /// The first one is [`ROOT`].
    steps: [Step; MOST],
    /// Number of steps, without the root.
    count: usize,
    /// Numbers of steps by caller and instruction, each with the mark in its upper half; with another mark: free.
    places: [u32; PLACES],
    /// Number of times that the index was cleared.
    clearings: u16,
}

fn number(site: Option<SiteId>) -> u32 {
    site.map_or(0, |site| site.0 + 1)
}

impl Steps {
    /// The site that a step leads to.
    #[inline(always)]
    pub(super) fn site(&self, step: u32) -> Option<SiteId> {
        self.steps[step as usize].site.checked_sub(1).map(SiteId)
    }

    /// The step from the callers' site to this frame, if it is the expected one after the callers' step and, with the same
    /// callers, the previous one ([`ROOT`]: none).
    #[inline(always)]
    pub(super) fn expected(
        &self,
        (callers, previous): (u32, u32),
        caller: Option<SiteId>,
        instruction: usize,
    ) -> Option<u32> {
        let step = match previous {
            ROOT => self.steps[callers as usize].inner,
            _ => self.steps[previous as usize].next,
        };
        self.is(step, number(caller), instruction).then_some(step)
    }

    /// Whether it is the step from this caller to this instruction.
    #[inline(always)]
    fn is(&self, step: u32, caller: u32, instruction: usize) -> bool {
        let Some(known) = self.steps.get(step as usize) else { return false };
        step != ROOT && known.instruction == instruction && known.caller == caller
    }

    /// Expects this step next time.
    #[inline(always)]
    pub(super) fn expect(&mut self, (callers, previous): (u32, u32), step: u32) {
        match previous {
            ROOT => self.steps[callers as usize].inner = step,
            _ => self.steps[previous as usize].next = step,
        }
    }

    /// The step to this frame, if it is known.
    #[inline(never)]
    pub(super) fn find(&self, caller: Option<SiteId>, instruction: usize) -> Option<u32> {
        let caller = number(caller);
        let mut at = place(caller, instruction);
        loop {
            let step = self.taken(at)?;
            if self.is(step, caller, instruction) {
                return Some(step);
            }
            at = (at + 1) % PLACES;
        }
    }

    /// Adds the step to an unknown frame, and returns it. If there is no room, all others are forgotten.
    pub(super) fn add(
        &mut self,
        caller: Option<SiteId>,
        instruction: usize,
        site: Option<SiteId>,
    ) -> u32 {
        if self.count + 1 == MOST {
            self.clear();
        }
        self.count += 1;
        let caller = number(caller);
        self.steps[self.count] =
            Step { instruction, caller, site: number(site), next: ROOT, inner: ROOT };
        let mut at = place(caller, instruction);
        while self.taken(at).is_some() {
            at = (at + 1) % PLACES;
        }
        let step = self.count as u32;
        self.places[at] = self.mark() << 16 | step;
        step
    }

    /// The step in a place of the index; None if it is free.
    #[inline(always)]
    fn taken(&self, at: usize) -> Option<u32> {
        let place = self.places[at];
        (place >> 16 == self.mark()).then_some(place & 0xffff)
    }

    /// Distinguishes the index from those before it was cleared; not 0.
    #[inline(always)]
    fn mark(&self) -> u32 {
        u32::from(!self.clearings)
    }

    /// Forgets all steps. Their numbers may then be those of others.
    pub(super) fn clear(&mut self) {
        if self.count == 0 {
            return;
        }
        self.count = 0;
        self.steps[ROOT as usize].inner = ROOT;
        self.clearings += 1;
        if self.mark() == 0 {
            self.clearings = 0;
            self.places.fill(0);
        }
    }
}

#[inline(always)]
fn place(caller: u32, instruction: usize) -> usize {
    (mixed(instruction, caller) >> 40) as usize % PLACES
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    fn steps() -> Box<Steps> {
        // SAFETY: all zero is empty.
        unsafe { Box::new_zeroed().assume_init() }
    }

    #[test]
    fn steps_are_found_as_in_a_map_whatever_was_expected() {
        let mut steps = steps();
        let mut known: HashMap<(u32, usize), u32> = HashMap::new();
        let mut state = 0x1234_5678_9abc_def1u64;
        let mut random = |below: u64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 20) % below
        };
        let (mut callers, mut previous) = (ROOT, ROOT);
        let mut expected = 0;
        for round in 0..300_000 {
            let (caller, instruction) = (random(300) as u32, 8 + random(400) as usize);
            let caller_site = caller.checked_sub(1).map(SiteId);
            let site = known.get(&(caller, instruction)).copied();
            let before = (callers, previous);
            let step = match steps.expected(before, caller_site, instruction) {
                Some(step) => {
                    expected += 1;
                    step
                }
                None => {
                    let step = steps.find(caller_site, instruction).unwrap_or_else(|| {
                        assert!(site.is_none_or(|_| steps.count < known.len()), "a step was lost");
                        let site = site.unwrap_or(round);
                        steps.add(caller_site, instruction, Some(SiteId(site)))
                    });
                    steps.expect(before, step);
                    step
                }
            };
            let found = steps.site(step).map(|site| site.0);
            assert_eq!(found, Some(*known.entry((caller, instruction)).or_insert(round)));
            (callers, previous) = match random(4) {
                0 => (step, ROOT),
                1 => (random(1 << 16) as u32, random(1 << 16) as u32),
                _ => (callers, step),
            };
            if round % 100_000 == 99_999 {
                steps.clear();
                assert_eq!(steps.find(caller_site, instruction), None);
            }
        }
        assert!(known.len() > MOST, "it was full");
        assert!(expected > 0);
    }

    #[test]
    fn a_sequence_is_expected_after_it_was_seen_once() {
        let mut steps = steps();
        for round in 0..3 {
            let (mut previous, mut unexpected) = (ROOT, 0);
            for instruction in 1..100 {
                let step = steps.expected((ROOT, previous), None, instruction);
                unexpected += u32::from(step.is_none());
                let step = step
                    .or_else(|| steps.find(None, instruction))
                    .unwrap_or_else(|| steps.add(None, instruction, Some(SiteId(7))));
                steps.expect((ROOT, previous), step);
                previous = step;
            }
            assert_eq!(unexpected, if round == 0 { 99 } else { 0 });
        }
    }

    #[test]
    fn what_was_cleared_is_not_found_however_often() {
        let mut steps = steps();
        for round in 0..70_000 {
            assert_eq!(steps.find(None, 8), None);
            let step = steps.add(None, 8, Some(SiteId(round)));
            assert_eq!(steps.find(None, 8), Some(step));
            steps.clear();
        }
    }
}
