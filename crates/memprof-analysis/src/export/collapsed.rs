//! The dominator tree as collapsed stacks, one line per frame, with bytes as the number:
//! `root;vm;Cache;Hash@items;String@[] 4096`. For flame graph scripts, speedscope and other profile viewers.
//!
//! Source of truth: the head of `stackcollapse.pl` and `flamegraph.pl` of Brendan Gregg's FlameGraph. Characters that would
//! end a frame or a line are escaped as in memprof's other collapsed stacks: `\x3b`.

use std::fmt::Write as _;
use std::io::{self, Write};

use super::frames::Frames;
use super::out::Out;
use super::{Counts, Options};
use memprof_heap::Heap;

/// Maximum number of lines.
const LIMIT: usize = 100_000;

/// Writes the stacks.
pub(super) fn write(heap: &Heap, options: &Options<'_>, out: &mut dyn Write) -> io::Result<Counts> {
    let (frames, counts) = Frames::new(heap, options, LIMIT)?;
    let names: Vec<String> = frames.names.iter().map(|name| escaped(name)).collect();
    let mut out = Out::new(out);
    for (frame, index) in frames.frames.iter().zip(0..).filter(|(frame, _)| frame.own > 0) {
        for (depth, &step) in frames.path(index).iter().enumerate() {
            out.push(if depth > 0 { ";" } else { "" });
            out.push(&names[frames.frames[step as usize].name as usize]);
        }
        out.push(" ");
        out.number(frame.own);
        out.push("\n");
        out.flush_if_full()?;
    }
    out.finish()?;
    Ok(counts)
}

fn escaped(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    for character in name.chars() {
        match character {
            ';' | '\\' | '\0'..='\x1f' | '\x7f' => {
                write!(text, "\\x{:02x}", u32::from(character))
                    .expect("a string takes all that is written to it");
            }
            // Readers split at every line or paragraph separator of Unicode.
            '\u{85}' | '\u{2028}' | '\u{2029}' => text.push(' '),
            _ => text.push(character),
        }
    }
    text
}
