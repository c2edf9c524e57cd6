//! Closures called back by the VM: a panic must not unwind through its frames, and must not be lost either.

use std::any::Any;
use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// A closure, and the payload of its panic.
pub struct Visitor<F> {
    visit: F,
    panic: Option<Box<dyn Any + Send>>,
}

impl<F> Visitor<F> {
    pub fn new(visit: F) -> Self {
        Visitor { visit, panic: None }
    }

    /// Return value of the callback: ST_CONTINUE, or ST_STOP after a panic.
    #[inline(always)]
    pub fn call(&mut self, work: impl FnOnce(&mut F)) -> c_int {
        match catch_unwind(AssertUnwindSafe(|| work(&mut self.visit))) {
            Ok(()) => 0,
            Err(panic) => {
                self.panic = Some(panic);
                1
            }
        }
    }

    /// Resumes the panic, if there was one. Called after the VM has returned.
    #[inline(always)]
    pub fn end(self) {
        if let Some(panic) = self.panic {
            resume_unwind(panic);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_a_panic_until_the_vm_has_returned() {
        let mut seen = Vec::new();
        let mut visitor = Visitor::new(|number: u32| {
            assert!(number < 2, "too many");
            seen.push(number);
        });
        let outcomes = [1, 2].map(|number| visitor.call(|visit| visit(number)));
        assert_eq!(outcomes, [0, 1]);
        assert!(catch_unwind(AssertUnwindSafe(|| visitor.end())).is_err());
        assert_eq!(seen, [1]);
    }
}
