//! Changes between small heaps: hand-written cases, and random ones against a slow algorithm.

mod answers;
mod identity;
mod random;

use memprof_heap::Heap;
use serde_json::Value;

use super::Diff;
use crate::tests::parsed;

impl Diff<&Heap> {
    /// [`Diff::ask`], with the answer parsed.
    fn answer_to(&self, question: &str, parameters: Value) -> Value {
        parsed(&self.ask(question, parameters).expect("an answer"))
    }
}

fn diff<'h>(before: &'h Heap, after: &'h Heap) -> Diff<&'h Heap> {
    Diff::new(before, after, None).expect("in memory")
}

fn new(diff: &Diff<&Heap>) -> Vec<u64> {
    diff.changes().new.iter().map(|id| diff.after().addresses().of(id)).collect()
}

fn gone(diff: &Diff<&Heap>) -> Vec<u64> {
    diff.changes().gone.iter().map(|id| diff.before().addresses().of(id)).collect()
}
