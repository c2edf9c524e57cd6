//! Suspects in plain sentences, made of what is known of them.

use super::super::phrase::Phrase;
use super::super::units::{bytes, thousands};
use super::own_code::Origin;
use super::{Accumulated, Nature, Search, Suspect};
use crate::questions::Site;
use crate::questions::tracking::{self, Tracking};

impl Search<'_> {
    /// A suspect in a sentence.
    pub fn sentence(&self, suspect: &Suspect, nodes: &[u32]) -> Phrase {
        let share = format!("{} ({:.1} %)", bytes(suspect.retained), suspect.percent);
        let object = nodes.last().copied().unwrap_or(suspect.object.id);
        let object = self.describer.words.object_phrase(object);
        let alone = suspect.object.size.saturating_mul(10) >= suspect.retained.saturating_mul(9);
        match (suspect.kind, suspect.accumulated.first()) {
            (Nature::Object, Some(class)) if !alone => {
                let (part, whole) = (class.retained, suspect.retained);
                let part = if part.saturating_mul(10) >= whole.saturating_mul(9) {
                    String::new()
                } else if part.saturating_mul(2) > whole {
                    "mostly ".to_owned()
                } else {
                    format!("{} of it ", bytes(part))
                };
                let sentence = object.text(format!(" retains {share}, {part}in "));
                retained_by(accumulated(sentence, class).text("."), suspect)
            }
            (Nature::Object, _) => {
                let sentence = object.text(format!(" takes {share} by itself"));
                let sentence = match &suspect.site {
                    Some(site) => allocated_at(sentence, ", ", site),
                    None => sentence,
                };
                retained_by(sentence.text("."), suspect)
            }
            (Nature::Group, Some(class)) => {
                let sentence = Phrase::from(instances(class.count, &class.class));
                let sentence = sentence.text(format!(" retain {share}"));
                let sentence =
                    sites(sentence, class).text("; no single object retains all of them.");
                if suspect.retained_by.is_empty() {
                    return sentence;
                }
                let sentence = sentence.text(" The largest is retained by ");
                sentence.phrase(suspect.retained_by.clone()).text(".")
            }
            (Nature::List, Some(class)) => {
                let sentence = object.text(format!(" retains {share}, in a list of "));
                let sentence =
                    accumulated(sentence, class).text(", each retained by the one before.");
                retained_by(sentence, suspect)
            }
            (Nature::Group | Nature::List, None) => Phrase::default(),
        }
    }

    /// What spoils the picture, or that there is nothing in it.
    pub fn remarks(&self, suspects: &[Suspect]) -> Vec<String> {
        let mut remarks = Vec::new();
        if self.heap.categories().is_empty() {
            remarks.push(
                "The dump has no roots (it was written with `since:`, or has tracked objects only): what retains objects \
                 is not known."
                    .to_owned(),
            );
        } else if suspects.is_empty() {
            remarks.push("No single object or class retains more than the threshold.".to_owned());
        }
        if !suspects.is_empty() && !suspects.iter().any(knows_lines) {
            remarks.push(match Tracking::of(self.heap) {
                Tracking::On => "It is not known where the suspects were allocated: it was before tracking began, or by C code."
                    .to_owned(),
                unknown => format!("The dump does not say where objects were allocated: {}, and dump again.", unknown.advice()),
            });
        }
        if self.heap.source.truncated {
            remarks.push(
                "The dump was cut: what its missing part retains is missing here.".to_owned(),
            );
        }
        remarks.extend(tracking::not_learned(self.heap));
        remarks.extend(tracking::left_out(self.heap));
        remarks
    }
}

/// Whether it is known where some of what a suspect retains was allocated: several lines may share in that.
fn knows_lines(suspect: &Suspect) -> bool {
    let own = suspect.own.as_ref();
    suspect.site.is_some()
        || suspect
            .accumulated
            .iter()
            .any(|class| class.at_site * 10 >= class.count && class.at_site > 0)
        || own.is_some_and(|own| own.kind == Origin::Allocation && own.share >= 10.0)
}

/// "5,000 Session instances, allocated at app.rb:27".
fn accumulated(sentence: Phrase, class: &Accumulated) -> Phrase {
    sites(sentence.text(instances(class.count, &class.class)), class)
}

/// Where they were allocated, if that is one line for most of them.
fn sites(sentence: Phrase, class: &Accumulated) -> Phrase {
    match &class.site {
        Some(site) if class.at_site == class.count => allocated_at(sentence, ", ", site),
        Some(site) if class.is_mostly_at_site() => allocated_at(sentence, ", most of them ", site),
        _ => sentence,
    }
}

fn allocated_at(sentence: Phrase, before: &str, site: &Site) -> Phrase {
    if site.file.is_empty() {
        return sentence;
    }
    let sentence = sentence.text(before).text("allocated at ");
    sentence.place(&site.file, site.line)
}

fn retained_by(sentence: Phrase, suspect: &Suspect) -> Phrase {
    // Of a class or module the name says where it is.
    if suspect.retained_by.is_empty() || matches!(suspect.object.r#type, "class" | "module") {
        return sentence;
    }
    let sentence = sentence.text(" It is retained by ");
    sentence.phrase(suspect.retained_by.clone()).text(".")
}

fn instances(count: u64, class: &str) -> String {
    let instances = if count == 1 { "instance" } else { "instances" };
    format!("{} {class} {instances}", thousands(count))
}
