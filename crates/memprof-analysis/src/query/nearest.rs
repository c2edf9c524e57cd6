//! Which word may have been meant.

/// Longer words are not looked at: none of the known ones is as long.
const LONGEST: usize = 32;

/// The known word that differs least from `word`, unless all differ much.
pub(super) fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    if word.len() > LONGEST {
        return None;
    }
    let word: Vec<char> = word.to_lowercase().chars().collect();
    let distances = known.map(|known| (distance(&word, known), known));
    let (distance, nearest) = distances.min_by_key(|(distance, _)| *distance)?;
    (distance <= (word.len() / 3).max(1) && distance < nearest.len()).then_some(nearest)
}

/// Characters to insert, delete, replace, or exchange with their neighbour, to make one word of the other. `word` is in
/// lower case, and `known` is taken for so.
fn distance(word: &[char], known: &str) -> usize {
    let known: Vec<char> = known.to_lowercase().chars().collect();
    let mut before = Vec::new();
    let mut above: Vec<usize> = (0..=known.len()).collect();
    for (i, a) in word.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, b) in known.iter().enumerate() {
            let replaced = above[j] + usize::from(a != b);
            let mut least = replaced.min(above[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *a == known[j - 1] && word[i - 1] == *b {
                let exchanged: &Vec<usize> = &before;
                least = least.min(exchanged[j - 1] + 1);
            }
            row.push(least);
        }
        before = std::mem::replace(&mut above, row);
    }
    above[known.len()]
}
