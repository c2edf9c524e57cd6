//! Suggestions for misspelled words.

use strsim::osa_distance;

/// Longer words are ignored: all known ones are shorter.
const LONGEST: usize = 32;

/// The known word that differs least from `word`, unless all differ much.
pub(super) fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    if word.len() > LONGEST {
        return None;
    }
    let word = word.to_lowercase();
    let distances = known.map(|known| (osa_distance(&word, &known.to_lowercase()), known));
    let (distance, nearest) = distances.min_by_key(|(distance, _)| *distance)?;
    (distance <= (word.chars().count() / 3).max(1) && distance < nearest.len()).then_some(nearest)
}
