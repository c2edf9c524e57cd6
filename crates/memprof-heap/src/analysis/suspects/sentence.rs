//! Suspects in plain sentences.

use super::super::describe::Site;
use super::super::units::{bytes, thousands};
use super::super::words;
use super::{Accumulated, Nature, Search, Suspect};

impl Search<'_> {
    /// A suspect in a sentence.
    pub fn sentence(&self, suspect: &Suspect, nodes: &[u32]) -> String {
        let share = format!("{} ({:.1} %)", bytes(suspect.retained), suspect.percent);
        let most = suspect.accumulated.first();
        let made = |class: &Accumulated| match &class.site {
            Some(site) if class.at_site == class.count => format!(", made at {}", place(site)),
            Some(site) => format!(", most of them made at {}", place(site)),
            None => String::new(),
        };
        let held = match nodes.split_last() {
            Some((_, before)) if before.iter().any(|&node| !self.is_root(node)) => {
                format!(" It is held by {}.", holder(&suspect.path.sentence))
            }
            Some((node, [root])) => {
                format!(
                    " It is held by {}.",
                    self.describer.words.step(*root, *node)
                )
            }
            _ => String::new(),
        };
        let alone = suspect.object.size.saturating_mul(10) >= suspect.retained.saturating_mul(9);
        match (suspect.kind, most) {
            (Nature::Object, Some(class)) if !alone => {
                let part = if class.retained * 10 >= suspect.retained * 9 {
                    ""
                } else {
                    "mostly "
                };
                format!(
                    "{} retains {share}, {part}in {}{}.{held}",
                    suspect.object.text,
                    counted(class.count, &class.class),
                    made(class)
                )
            }
            (Nature::Object, _) => {
                let site = suspect
                    .site
                    .as_ref()
                    .map_or_else(String::new, |site| format!(", made at {}", place(site)));
                format!(
                    "{} takes {share} by itself{}{site}.{held}",
                    suspect.object.text,
                    if suspect.object.class == "Thread" {
                        ", for its stack"
                    } else {
                        ""
                    }
                )
            }
            (Nature::Group, Some(class)) => format!(
                "{} retain {share}{}; no single object holds all of them. The largest is held by {}.",
                counted(class.count, &class.class),
                made(class),
                holder(&suspect.path.sentence)
            ),
            (Nature::Group, None) => String::new(),
        }
    }

    /// What spoils the picture, or that there is nothing in it.
    pub fn remarks(&self, suspects: &[Suspect]) -> Vec<String> {
        let mut remarks = Vec::new();
        if self.heap.categories().is_empty() {
            remarks.push(
                "The dump has no roots (it was made with `since:`, or has tracked objects only): what keeps objects alive \
                 cannot be told."
                    .to_owned(),
            );
        } else if suspects.is_empty() {
            remarks.push(
                "Nothing holds that much: no single object, and no class below one holder."
                    .to_owned(),
            );
        }
        if !suspects.is_empty() && suspects.iter().all(|suspect| suspect.site.is_none()) {
            remarks.push(
                "The dump does not say where objects were made: call Memprof.start (or require \"memprof/signal\") before \
                 they are, and dump again."
                    .to_owned(),
            );
        }
        if self.heap.source.truncated {
            remarks
                .push("The dump was cut: what its missing part holds is missing here.".to_owned());
        }
        remarks
    }
}

fn place(site: &Site) -> String {
    words::place(&site.file, site.line)
}

/// The path without its last step, which is the object itself.
fn holder(sentence: &str) -> &str {
    sentence
        .rsplit_once(" -> ")
        .map_or(sentence, |(holder, _)| holder)
}

fn counted(count: u64, class: &str) -> String {
    format!("{} {class}", thousands(count))
}
