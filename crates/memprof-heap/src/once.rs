//! Values computed on first use, which may fail.

use std::sync::{Mutex, OnceLock, PoisonError};

/// A value computed at most once.
pub(super) struct Once<T> {
    value: OnceLock<T>,
    /// Locked while a thread computes the value; other threads wait for it.
    finding: Mutex<()>,
}

impl<T> Default for Once<T> {
    fn default() -> Once<T> {
        Once { value: OnceLock::new(), finding: Mutex::new(()) }
    }
}

impl<T> From<T> for Once<T> {
    fn from(value: T) -> Once<T> {
        Once { value: OnceLock::from(value), finding: Mutex::new(()) }
    }
}

impl<T> Once<T> {
    /// The value, if it is computed.
    pub fn get(&self) -> Option<&T> {
        self.value.get()
    }

    /// The value. If computing it fails, the next call tries again.
    pub fn get_or<E>(&self, find: impl FnOnce() -> Result<T, E>) -> Result<&T, E> {
        if let Some(value) = self.value.get() {
            return Ok(value);
        }
        let _finding = self.finding.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(value) = self.value.get() {
            return Ok(value);
        }
        let value = find()?;
        Ok(self.value.get_or_init(|| value))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[test]
    fn what_several_ask_for_is_found_out_once() {
        let (once, found) = (Once::default(), AtomicU32::new(0));
        let find = || {
            std::thread::sleep(std::time::Duration::from_millis(20));
            Ok::<u32, ()>(found.fetch_add(1, Ordering::Relaxed))
        };
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| assert_eq!(once.get_or(find), Ok(&0)));
            }
        });
        assert_eq!((once.get(), found.into_inner()), (Some(&0), 1));
    }

    #[test]
    fn what_failed_is_tried_again() {
        let once = Once::default();
        assert_eq!(once.get_or(|| Err::<u32, _>("no")), Err("no"));
        assert_eq!(once.get(), None);
        assert_eq!(once.get_or(|| Ok::<_, ()>(7)), Ok(&7));
        assert_eq!(once.get_or(|| Err("no")), Ok(&7));
    }
}
