//! `threads`: the state of each thread, and the objects that its stack references.

use rustc_hash::FxHashSet;
use serde::{Deserialize, Serialize};

use super::describe::{Described, Describer};
use super::list::{BY_VALUE, List, Measured, Page};
use super::object::{Reference, json};
use super::{Error, Limit, Selection};
use memprof_dump::record::Kind;
use memprof_heap::{FOLDED, Heap, Label, Packed};

/// `threads`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Question {
    /// Filter for the threads (default: all).
    pub r#where: Option<String>,
    /// Maximum number of threads.
    pub limit: Limit<20>,
    /// Threads to skip (default: none).
    pub offset: usize,
    /// Maximum number of local variables, and of other objects, per thread.
    pub held_limit: Limit<10>,
}

/// A thread.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The thread.
    #[serde(flatten)]
    pub object: Described,
    /// Facts in the dump: name, status, backtrace, variables.
    pub facts: Vec<(String, serde_json::Value)>,
    /// Local variables of its frames, and those visible to blocks: those that retain most.
    pub locals: Vec<Reference>,
    /// Total number.
    pub locals_count: usize,
    /// Other referenced objects, each once, without the VM's own: those that retain most.
    pub held: Vec<Reference>,
    /// Total number.
    pub held_count: usize,
}

/// The answer.
#[derive(Clone, Debug, Serialize)]
pub struct Answer {
    /// Threads, those that retain most first.
    pub rows: Vec<Row>,
    /// Threads after those that are shown.
    pub more: usize,
    /// Threads.
    pub count: usize,
    /// Sum of their memsizes.
    pub size: u64,
}

impl Question {
    /// The answer.
    ///
    /// # Errors
    /// If the filter is invalid, or the index cannot be read.
    pub fn answer(&self, heap: &Heap) -> Result<Answer, Error> {
        let selection = Selection::new(heap, self.r#where.as_deref())?;
        let is_thread: Vec<bool> = heap
            .groups()
            .iter()
            .map(|group| {
                let name = group.name.map(|name| heap.name(name));
                group.kind == Kind::DATA && matches!(name, Some("VM/thread" | "thread"))
            })
            .collect();
        let groups = heap.group_numbers()?.iter().zip(0..);
        let threads = groups.filter(|&(&group, id)| {
            is_thread.get(group as usize) == Some(&true) && selection.contains(id)
        });
        let threads: Vec<u32> = threads.map(|(_, id)| id).collect();
        let (memsizes, retained) = (heap.memsizes()?, heap.retained()?);
        let count = threads.len();
        let size = threads.iter().fold(0_u64, |sum, &id| sum.saturating_add(memsizes.get(id)));
        let by_retained = Measured(|id, _| Some(retained.get(id)));
        let list = List::new(&by_retained, BY_VALUE);
        let Page { shown, more } = list.page(threads, self.limit, self.offset);
        let describer = Describer::new(heap)?;
        let row = |&id: &u32| row(heap, &describer, id, self.held_limit);
        Ok(Answer { rows: shown.iter().map(row).collect::<Result<_, Error>>()?, more, count, size })
    }
}

fn row(
    heap: &Heap,
    describer: &Describer<'_>,
    thread: u32,
    limit: Limit<10>,
) -> Result<Row, Error> {
    let words = &describer.words;
    let labels = heap.labels()?;
    let label = |edge: usize| Packed(labels.get(edge).copied().unwrap_or(0)).label();
    let edges = |node: u32| words.row(node).unwrap_or(0..0);
    let is_env =
        |edge: &usize| matches!(label(*edge), Label::Role(role) if heap.name(role) == "env");
    let environments = edges(thread).filter(is_env).map(|edge| words.target(edge));
    let mut seen = FxHashSet::default();
    let environments: Vec<u32> = environments.filter(|&node| seen.insert(node)).collect();
    let flags = heap.flag_words()?;
    // Frames on a stack, the VM's own objects and memprof's do not explain why an object is retained.
    let ours = |edge: &usize| {
        let target = words.target(*edge);
        let is_folded = (flags.get(target as usize)).is_some_and(|flags| flags & FOLDED.0 != 0);
        !is_folded && heap.kind(target).ok().flatten() != Some(Kind::IMEMO)
    };
    let mut listed = FxHashSet::default();
    let places = std::iter::once(thread).chain(environments);
    let locals: Vec<usize> = places
        .flat_map(edges)
        .filter(|&edge| {
            matches!(label(edge), Label::Local(_))
                && listed.insert((labels[edge], words.target(edge)))
        })
        .collect();
    let named: FxHashSet<u32> = locals.iter().map(|&edge| words.target(edge)).collect();
    let mut once = FxHashSet::default();
    let held: Vec<usize> = edges(thread)
        .filter(|edge| ours(edge) && !named.contains(&words.target(*edge)))
        .filter(|&edge| once.insert(words.target(edge)))
        .collect();
    let retained = heap.retained()?;
    let first = |edges: &[usize]| {
        let by_retained =
            Measured(|row: u32, _| Some(retained.get(words.target(edges[row as usize]))));
        let list = List::new(&by_retained, BY_VALUE);
        let page = list.page(0..edges.len() as u32, limit, 0);
        let shown = page.shown.into_iter().map(|row| edges[row as usize]);
        let reference = |edge| Reference {
            label: words.label_of(edge),
            object: describer.describe(words.target(edge)),
        };
        shown.map(reference).collect()
    };
    Ok(Row {
        object: describer.describe(thread),
        facts: heap
            .facts()
            .of(thread)
            .map(|(name, value)| (heap.name(name).to_owned(), json(heap, value)))
            .collect(),
        locals_count: locals.len(),
        locals: first(&locals),
        held_count: held.len(),
        held: first(&held),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::tests::ask;
    use memprof_dump::record::Kind;
    use memprof_heap::testing::{Fact, address, heap, string, thing};

    fn threads(parameters: Value) -> Value {
        let heap = heap(
            &[("vm", &[address(0), address(1)])],
            &[
                thing(address(0), Kind::DATA, "Thread")
                    .named("VM/thread")
                    .fact("name", Fact::Text("worker".to_owned()))
                    .to("env", address(2))
                    .to("env", address(2))
                    .to("", address(3))
                    .to("", address(3))
                    .to("", address(4))
                    .to("", address(5)),
                thing(address(1), Kind::DATA, "Thread").named("VM/thread").size(30),
                thing(address(2), Kind::IMEMO, "").named("env").to("local queue", address(4)),
                string(address(3), "on the stack").size(500),
                thing(address(4), Kind::ARRAY, "Array").size(300),
                thing(address(5), Kind::IMEMO, "").named("iseq").size(900),
                thing(address(6), Kind::DATA, "Proc").named("proc"),
            ],
        );
        ask(&heap, "threads", parameters).expect("an answer")
    }

    #[test]
    fn threads_are_listed_with_what_their_stacks_reference() {
        let answer = threads(json!({}));
        assert_eq!((&answer["count"], &answer["size"]), (&json!(2), &json!(70)));
        let worker = &answer["rows"][0];
        assert_eq!(worker["facts"], json!([["name", "worker"]]));
        assert_eq!(worker["locals_count"], 1);
        assert_eq!(worker["locals"][0]["label"], "local queue");
        assert_eq!(worker["locals"][0]["text"], "Array");
        assert_eq!(worker["held_count"], 1);
        assert_eq!(worker["held"][0]["text"], "String \"on the stack\"");
        assert_eq!(answer["rows"][1]["held_count"], 0);
    }

    #[test]
    fn threads_can_be_chosen_and_passed_over() {
        let answer = threads(json!({ "limit": 1 }));
        assert_eq!((&answer["count"], &answer["more"]), (&json!(2), &json!(1)));
        let second = threads(json!({ "limit": 1, "offset": 1 }));
        assert_eq!(second["rows"][0]["size"], 30);
        assert_eq!(second["more"], 0);
        assert_eq!(threads(json!({ "where": "name = worker" }))["count"], 1);
        assert_eq!(threads(json!({ "held_limit": 0 }))["rows"][0]["held"], json!([]));
    }
}
