//! Leak suspects: what keeps a large part of the heap alive, and why.
//!
//! As in Eclipse's Memory Analyzer, an object that retains a tenth of the heap is looked at more closely. The search goes
//! down the dominator tree as long as there is a child that is as large as that. Where there is none, memory has
//! accumulated: that object is a suspect, with what it holds by class. A linked list accumulates nothing in any one place,
//! so its first element stands for all. What is left over beside large children, or below the roots, is a suspect if the objects of one class together are as large.

mod accumulated;
mod own_code;
mod search;
mod sentence;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;

use serde::{Deserialize, Serialize};

use super::describe::{Described, Site};
use super::path::{self, Path};
use super::{Error, Phrase, own_files};
use crate::order;
use accumulated::Accumulated;
use memprof_heap::Heap;
use own_code::{Finder, OwnCode};
use search::{Found, Search};

/// Percent of the heap that make a suspect.
const THRESHOLD: f64 = 10.0;

/// `suspects`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Question {
    /// Percent of the heap that make a suspect; 10.
    pub threshold: Option<f64>,
    /// Maximum number of suspects; 10.
    pub limit: Option<usize>,
    /// A regexp for the paths of the application's files; what belongs to no gem or standard library.
    pub own: Option<String>,
}

/// What a suspect is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Nature {
    /// One object.
    Object,
    /// Many objects of one class.
    Group,
    /// Many objects, each retained by the one before.
    List,
}

/// What may be a leak.
#[derive(Clone, Debug, Serialize)]
pub struct Suspect {
    /// One object, many or a list.
    pub kind: Nature,
    /// The object; of a group, the largest one; of a list, the first.
    pub object: Described,
    /// Bytes retained.
    pub retained: u64,
    /// In percent of the memsize of the whole heap.
    pub percent: f64,
    /// What has accumulated, the largest first.
    pub accumulated: Vec<Accumulated>,
    /// From a root to the object; of a group, to the largest one.
    pub path: Path,
    /// What retains it, in words: the path without the object.
    pub retained_by: Phrase,
    /// Where the object, or most of what it accumulates, was allocated.
    pub site: Option<Site>,
    /// The line of the application behind it.
    pub own: Option<OwnCode>,
    /// All of it in a sentence.
    pub sentence: String,
    /// The same, with places in files apart.
    pub phrase: Phrase,
}

/// The answer.
#[derive(Clone, Debug, Serialize)]
pub struct Answer {
    /// Bytes that are reachable.
    pub total: u64,
    /// Percent that make a suspect.
    pub threshold: f64,
    /// The largest first.
    pub suspects: Vec<Suspect>,
    /// Suspects that are not returned.
    pub more: usize,
    /// In words, if nothing was found, or something that spoils the picture.
    pub remarks: Vec<String>,
}

impl Question {
    /// The answer.
    ///
    /// # Errors
    /// If the index cannot be read.
    pub fn answer(&self, heap: &Heap) -> Result<Answer, Error> {
        let threshold = self.threshold.unwrap_or(THRESHOLD);
        if !(threshold > 0.0 && threshold <= 100.0) {
            return Err(Error::Question(
                "threshold must be a percentage between 0 and 100".to_owned(),
            ));
        }
        let own = own_files(self.own.as_deref())?;
        let search = Search::new(heap, threshold)?;
        let mut finder = Finder::new(&search, own.as_ref());
        let mut found = search.found();
        order::sort_by_key(&mut found, |found| (Reverse(found.retained), found.node));
        let limit = self.limit.unwrap_or(10);
        let more = found.len().saturating_sub(limit);
        found.truncate(limit);
        let suspects = found
            .into_iter()
            .map(|found| search.suspect(&found, finder.line(&found)))
            .collect::<Result<Vec<_>, _>>()?;
        let remarks = search.remarks(&suspects);
        Ok(Answer {
            total: search.total,
            threshold,
            suspects,
            more,
            remarks,
        })
    }
}

impl Search<'_> {
    fn suspect(&self, found: &Found, own: Option<OwnCode>) -> Result<Suspect, Error> {
        let object = self.describer.describe(found.node);
        let accumulated = self.accumulated(found);
        let nodes = path::to(self.heap, found.node)?;
        let path = path::described(&self.describer, &nodes);
        let percent = self.describer.percent(found.retained);
        let of_most = accumulated
            .first()
            .and_then(Accumulated::main_site)
            .cloned();
        let its = object.site.clone().filter(|site| !site.file.is_empty());
        let site = match found.nature {
            Nature::Object => of_most.or(its),
            Nature::Group | Nature::List => of_most,
        };
        let mut suspect = Suspect {
            kind: found.nature,
            object,
            retained: found.retained,
            percent,
            accumulated,
            path,
            retained_by: self.retained_by(&nodes),
            site,
            own,
            sentence: String::new(),
            phrase: Phrase::default(),
        };
        suspect.phrase = self.sentence(&suspect, &nodes);
        suspect.sentence = suspect.phrase.to_string();
        Ok(suspect)
    }

    /// The path to a suspect without the suspect itself.
    fn retained_by(&self, nodes: &[u32]) -> Phrase {
        self.describer.words.holder(nodes)
    }
}
