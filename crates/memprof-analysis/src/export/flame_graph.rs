//! The dominator tree as a flame graph: one self-contained HTML page with zoom and search.
//!
//! Source of truth: the page itself, `flame_graph.html`, which reads four numbers per frame: its parent frame, its name,
//! its own bytes, its objects.

use std::io::{self, Write};

use super::frames::Frames;
use super::out::Out;
use super::{Counts, Options};
use memprof_heap::Heap;

/// Frames that a browser can draw at once.
const LIMIT: usize = 20_000;

const PAGE: &str = include_str!("flame_graph.html");
const MARK: &str = "\"FRAMES\"";

/// Writes the page.
pub(super) fn write(heap: &Heap, options: &Options<'_>, out: &mut dyn Write) -> io::Result<Counts> {
    let (frames, counts) = Frames::new(heap, options, LIMIT)?;
    let (head, foot) = PAGE.split_once(MARK).unwrap_or((PAGE, ""));
    let mut out = Out::new(out);
    out.push(head);
    out.push("{\"names\":[");
    for (index, name) in frames.names.iter().enumerate() {
        out.push(if index > 0 { "," } else { "" });
        script(&mut out, name);
    }
    out.push("],\"frames\":[");
    for (index, frame) in frames.frames.iter().enumerate() {
        out.push(if index > 0 { ",\n" } else { "" });
        out.push(&format!("{},{},{},{}", frame.parent, frame.name, frame.own, frame.objects));
        out.flush_if_full()?;
    }
    out.push("]}");
    out.push(foot);
    out.finish()?;
    Ok(counts)
}

/// A text as JSON within a script: it must not contain `<`, as `</script>` ends it and `<!--` changes its meaning.
fn script(out: &mut Out<'_>, text: &str) {
    let text = serde_json::to_string(text).expect("a text is always JSON");
    let text = text.replace('<', "\\u003c");
    let text = text.replace('\u{2028}', "\\u2028");
    out.push(&text.replace('\u{2029}', "\\u2029"));
}
