use std::ops::Range;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::thread;

/// Maximum number of threads: beyond that, memory is the bottleneck.
const THREADS: usize = 8;

/// The default number of items that a thread takes at a time: enough that taking them costs nothing, and few enough that the
/// threads end together. Small in tests, whose small heaps must have several parts.
pub const PART: usize = if cfg!(test) { 64 } else { 1 << 16 };

/// Processes the numbers below `length` in several threads, part by part, each thread with a state of its own. Returns the
/// states. A thread gets arbitrary parts in ascending order.
pub fn in_parts<S: Send>(
    length: usize,
    part: usize,
    state: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, Range<usize>) + Sync,
) -> Vec<S> {
    let parts = (0..length).step_by(part);
    let parts = parts.map(|start| start..(start + part).min(length));
    share(length.div_ceil(part), parts, state, work)
}

/// A value for each number below `length`, computed in several threads.
pub fn filled<T: Copy + Default + Send>(length: usize, value: impl Fn(u32) -> T + Sync) -> Vec<T> {
    let mut values = vec![T::default(); length];
    let parts = values.chunks_mut(PART).zip((0..).step_by(PART));
    let fill = |(): &mut (), (part, start): (&mut [T], u32)| {
        for (place, number) in part.iter_mut().zip(start..) {
            *place = value(number);
        }
    };
    share(length.div_ceil(PART), parts, || (), fill);
    values
}

/// The length of pieces with a fixed cost each: long, but short enough that threads still end together.
pub fn piece_of(length: usize) -> usize {
    length.div_ceil(threads(usize::MAX) * 2).max(PART)
}

fn threads(items: usize) -> usize {
    let available = thread::available_parallelism().map_or(1, usize::from);
    available.min(THREADS).min(items).max(1)
}

/// Distributes items among several threads, one at a time.
pub fn share<I: Iterator + Send, S: Send>(
    count: usize,
    items: I,
    state: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, I::Item) + Sync,
) -> Vec<S> {
    let (items, states) = (Mutex::new(items), Mutex::new(Vec::new()));
    let run = || {
        let mut state = state();
        loop {
            let item = items.lock().unwrap_or_else(PoisonError::into_inner).next();
            let Some(item) = item else {
                break;
            };
            work(&mut state, item);
        }
        let mut states = states.lock().unwrap_or_else(PoisonError::into_inner);
        states.push(state);
    };
    in_threads(threads(count), &run);
    states.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Runs a closure in so many threads, including the caller's. Not generic, so it is compiled once.
fn in_threads(count: usize, run: &(dyn Fn() + Sync)) {
    thread::scope(|scope| {
        // Threads that fail to start are not needed: the calling thread does the rest.
        let start = |_| thread::Builder::new().spawn_scoped(scope, run).ok();
        let others: Vec<_> = (1..count).map_while(start).collect();
        run();
        for other in others {
            if let Err(panic) = other.join() {
                std::panic::resume_unwind(panic);
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_is_met_once() {
        for length in [0, 1, 9, 10, 11, 1000] {
            let states = in_parts(length, 10, Vec::new, |seen: &mut Vec<usize>, part| {
                seen.extend(part);
            });
            assert!(states.iter().all(|seen| seen.is_sorted()));
            let mut seen = states.concat();
            seen.sort_unstable();
            assert_eq!(seen, (0..length).collect::<Vec<_>>());
        }
    }

    #[test]
    fn each_number_has_its_value() {
        for length in [0, 1, PART - 1, PART, 3 * PART + 1] {
            let values = filled(length, |number| number + 1);
            assert_eq!(values, (1..=length as u32).collect::<Vec<_>>());
        }
    }
}
