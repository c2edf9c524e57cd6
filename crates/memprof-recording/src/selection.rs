//! The part of a recording to summarize: a time range, without known leaks.

use std::str::FromStr;

use crate::stacks::{Counts, Frame, Stacks};

/// The part to summarize.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// Start of the range for calls and the peak, in milliseconds since the start. Live blocks may have been allocated earlier.
    pub from_ms: u64,
    /// End of the range; None for the end of the recording.
    pub to_ms: Option<u64>,
    /// Known leaks to hide.
    pub suppressions: Suppressions,
}

/// Suppressions in the syntax of LeakSanitizer: lines of `leak:` and a pattern for a function, file or object of any frame of a
/// stack. <https://github.com/google/sanitizers/wiki/AddressSanitizerLeakSanitizer#suppressions>
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Suppressions(Vec<Pattern>);

/// A pattern matched anywhere; `*` matches anything, `^` and `$` match the ends.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Pattern {
    pieces: Vec<String>,
    at_start: bool,
    at_end: bool,
}

impl FromStr for Suppressions {
    type Err = String;

    fn from_str(text: &str) -> Result<Suppressions, String> {
        let mut patterns = Vec::new();
        for (line, number) in text.lines().zip(1..) {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            match line.split_once(':') {
                Some(("leak", pattern)) if !pattern.is_empty() => {
                    patterns.push(Pattern::new(pattern));
                }
                _ => return Err(format!("line {number} is not a suppression: {line}")),
            }
        }
        Ok(Suppressions(patterns))
    }
}

impl Pattern {
    fn new(text: &str) -> Pattern {
        let (text, at_start) = match text.strip_prefix('^') {
            Some(rest) => (rest, true),
            None => (text, false),
        };
        let (text, at_end) = match text.strip_suffix('$') {
            Some(rest) => (rest, true),
            None => (text, false),
        };
        Pattern { pieces: text.split('*').map(str::to_owned).collect(), at_start, at_end }
    }

    fn matches(&self, text: &str) -> bool {
        let mut rest = text;
        let last = self.pieces.len() - 1;
        for (at, piece) in self.pieces.iter().enumerate() {
            if at == last && self.at_end {
                let is_whole = at == 0 && self.at_start;
                return if is_whole { rest == piece } else { rest.ends_with(piece.as_str()) };
            }
            let found = if at == 0 && self.at_start {
                rest.starts_with(piece.as_str()).then_some(0)
            } else {
                rest.find(piece.as_str())
            };
            let Some(found) = found else { return false };
            rest = &rest[found + piece.len()..];
        }
        true
    }
}

impl Suppressions {
    fn match_frame(&self, frame: &Frame) -> bool {
        let any = |texts: &[&str]| {
            let matches = |text: &&str| self.0.iter().any(|pattern| pattern.matches(text));
            texts.iter().any(matches)
        };
        match frame {
            Frame::Ruby { path, method, .. } => any(&[path, method, &frame.location()]),
            Frame::Native(native) => any(&[&native.module, &native.function, &native.file]),
        }
    }

    /// Subtracts the leaks of stacks with a matching frame, and returns them.
    pub(crate) fn apply(&self, stacks: &mut Stacks) -> Counts {
        let mut taken = Counts::default();
        if self.0.is_empty() {
            return taken;
        }
        let frames = stacks.frames.iter();
        let known: Vec<bool> = frames.map(|frame| self.match_frame(frame)).collect();
        let nodes = &stacks.nodes;
        let is_known = |node: u32| {
            let mut path = Stacks::path_in(nodes, node);
            path.any(|node| known[nodes[node as usize].frame as usize])
        };
        for (node, counts) in &mut stacks.counts {
            if counts.leaked > 0 && is_known(*node) {
                taken.leaked += std::mem::take(&mut counts.leaked);
                taken.leaked_bytes += std::mem::take(&mut counts.leaked_bytes);
            }
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_those_of_leak_sanitizer() {
        let cases = [
            ("pq", "/lib/libpq.so", true),
            ("^pq", "/lib/libpq.so", false),
            ("^/lib", "/lib/libpq.so", true),
            ("so$", "/lib/libpq.so", true),
            ("lib$", "/lib/libpq.so", false),
            ("^/lib*so$", "/lib/libpq.so", true),
            ("lib*lib*so", "/lib/libpq.so", true),
            ("lib*lib*lib", "/lib/libpq.so", false),
            ("^*$", "", true),
            ("^abc$", "abc", true),
            ("^abc$", "abcabc", false),
            ("a*a$", "a", false),
        ];
        for (pattern, text, expected) in cases {
            assert_eq!(Pattern::new(pattern).matches(text), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn other_lines_are_refused() {
        let parse = |text: &str| text.parse::<Suppressions>();
        assert_eq!(parse("# known\n\n  leak:libpq \n").unwrap().0.len(), 1);
        for text in ["race:libpq", "leak:", "libpq"] {
            assert!(parse(&format!("leak:a\n{text}")).unwrap_err().starts_with("line 2 is no"));
        }
    }
}
