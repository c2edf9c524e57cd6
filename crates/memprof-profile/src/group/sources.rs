//! The source text of lines that allocated, read from the files when the report is written.
//!
//! A line that moved is found again by its text.

use std::collections::BTreeMap;
use std::fs;

use rustc_hash::{FxHashMap, FxHashSet};

use super::named;
use crate::profile::Profile;

/// Larger files are skipped.
const LARGEST: u64 = 8 << 20;
/// Maximum length of a line's text in characters.
const LONGEST: usize = 200;

impl Profile {
    /// Text of the lines with sites, by file and line, stripped. Unreadable files and non-files are omitted.
    pub fn sources(&self) -> BTreeMap<&str, BTreeMap<u32, String>> {
        let mut lines: FxHashMap<u32, FxHashSet<u32>> = FxHashMap::default();
        for row in &self.rows {
            let site = self.stacks[row.site as usize];
            let file = self.frames[site.frame as usize].file;
            lines.entry(file).or_default().insert(site.line);
        }
        let mut sources: BTreeMap<&str, BTreeMap<u32, String>> = BTreeMap::new();
        for (file, lines) in lines {
            let path = named(&self.files[file as usize]);
            let texts = texts(path, &lines);
            if !texts.is_empty() {
                sources.entry(path).or_default().extend(texts);
            }
        }
        sources
    }
}

fn texts(path: &str, lines: &FxHashSet<u32>) -> BTreeMap<u32, String> {
    let whole = fs::metadata(path)
        .is_ok_and(|file| file.is_file() && file.len() <= LARGEST)
        .then(|| fs::read(path).ok())
        .flatten()
        .unwrap_or_default();
    let numbered = (1u32..).zip(whole.split(|byte| *byte == b'\n'));
    let wanted = numbered.filter(|(number, _)| lines.contains(number));
    let texts = wanted.map(|(number, text)| {
        let text = String::from_utf8_lossy(text);
        (number, text.trim().chars().take(LONGEST).collect::<String>())
    });
    texts.filter(|(_, text)| !text.is_empty()).collect()
}
