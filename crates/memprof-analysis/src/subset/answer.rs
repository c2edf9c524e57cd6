//! A subset as an answer: its members with their annotations.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::Deref;

use serde::Serialize;

use super::Subset;
use crate::questions::Error;
use crate::questions::describe::{Described, Describer};
use memprof_heap::Heap;

/// A member.
#[derive(Clone, Debug, Serialize)]
pub struct Member {
    /// The object, root or group.
    #[serde(flatten)]
    pub object: Described,
    /// Numbers of the members that it references.
    pub references: Vec<u32>,
    /// Its annotations.
    pub annotations: BTreeMap<String, u64>,
}

/// Members of a subset.
#[derive(Clone, Debug, Serialize)]
pub struct Answer {
    /// All members.
    pub count: u64,
    /// Sum of their memsizes.
    pub size: u64,
    /// The members on this page.
    pub members: Vec<Member>,
}

impl<H: Deref<Target = Heap> + Clone> Subset<H> {
    /// Members ordered by number, or by an annotation, largest first.
    ///
    /// # Errors
    /// See [`Subset::all`].
    pub fn answer(&self, by: Option<&str>, offset: usize, limit: usize) -> Result<Answer, Error> {
        let mut nodes: Vec<u32> = self.iter().collect();
        if let Some(by) = by {
            nodes.sort_by_key(|&node| Reverse(self.annotation(by, node)));
        }
        let describer = Describer::new(&self.heap)?;
        let page = nodes.into_iter().skip(offset).take(limit).map(|node| {
            let marks = self
                .annotations()
                .filter_map(|(name, marks)| Some((name.to_owned(), *marks.get(&node)?)));
            Ok(Member {
                object: self.described(&describer, node),
                references: self.children(node)?,
                annotations: marks.collect(),
            })
        });
        let members = page.collect::<Result<Vec<_>, Error>>()?;
        Ok(Answer { count: self.len() as u64, size: self.size()?, members })
    }

    fn described(&self, describer: &Describer<'_>, node: u32) -> Described {
        let described = describer.describe(node);
        match self.grouped(node) {
            Some(group) => Described {
                r#type: "group",
                class: group.name.clone(),
                text: format!("{} ({} objects)", group.name, group.count),
                size: group.size,
                ..described
            },
            None => described,
        }
    }
}
