//! DOT, for Graphviz: `dot -Tsvg heap.dot -o heap.svg`. Boxes grow with their retained size.
//!
//! Source of truth: "DOT Language", <https://graphviz.org/doc/info/lang.html>, and for escapes in labels
//! <https://graphviz.org/docs/attr-types/escString/>: a backslash is doubled, `&` begins an HTML entity.

use std::io::{self, Write};

use super::drawing::Drawing;
use super::out::Out;
use super::{Counts, Options};
use memprof_heap::Heap;

/// Objects in a drawing that is still readable.
const LIMIT: usize = 200;

/// Writes the drawing.
pub(super) fn write(heap: &Heap, options: &Options<'_>, out: &mut dyn Write) -> io::Result<Counts> {
    let drawing = Drawing::new(heap, options, LIMIT)?;
    let most = drawing.most()?.max(1) as f64;
    let mut out = Out::new(out);
    out.push("digraph heap {\n  rankdir=LR;\n  node [shape=box, style=\"rounded,filled\", fontname=\"sans-serif\"];\n");
    out.push("  edge [fontname=\"sans-serif\", fontsize=9, color=\"#666666\"];\n");
    drawing.nodes(|node| {
        let part = (node.retained as f64 / most).min(1.0).sqrt();
        out.push("  n");
        out.number(node.id);
        text(&mut out, " [label=\"", node.title);
        // The nodes below it add to its retained size, so most boxes show two numbers.
        out.push("\\n");
        out.push(&bytes(node.retained));
        if node.size != node.retained {
            out.push(&format!(" retained, {} itself", bytes(node.size)));
        }
        let fill = match node.kind {
            "root" => "#d9d9d9",
            "more" => "#ffffff",
            "class" | "module" => "#d6e4f5",
            "imemo" => "#eee3d4",
            _ => "#dcefd8",
        };
        out.push(&format!(
            "\", fontsize={:.0}, penwidth={:.1}, fillcolor=\"{fill}\"",
            9.0 + 19.0 * part,
            1.0 + 3.0 * part
        ));
        out.push(if node.kind == "more" { ", style=\"rounded,dashed\"];\n" } else { "];\n" });
        out.flush_if_full()
    })?;
    let counts = drawing.edges(|edge| {
        out.push("  n");
        out.number(edge.from);
        out.push(" -> n");
        out.number(edge.to);
        text(&mut out, " [label=\"", edge.label);
        out.push(if edge.way { "\", style=dashed];\n" } else { "\"];\n" });
        out.flush_if_full()
    })?;
    out.push("}\n");
    out.finish()?;
    Ok(counts)
}

/// `12.3 KiB`.
fn bytes(bytes: u64) -> String {
    let units = ["KiB", "MiB", "GiB", "TiB"];
    let mut size = bytes as f64;
    let mut unit = "B";
    for next in units {
        if size < 1023.95 {
            break;
        }
        size /= 1024.0;
        unit = next;
    }
    if unit == "B" { format!("{bytes} B") } else { format!("{size:.1} {unit}") }
}

fn text(out: &mut Out<'_>, before: &str, text: &str) {
    out.push(before);
    for character in text.chars() {
        match character {
            '"' => out.push("\\\""),
            '\\' => out.push("\\\\"),
            '&' => out.push("&amp;"),
            '<' => out.push("&lt;"),
            '>' => out.push("&gt;"),
            _ => out.push(character.encode_utf8(&mut [0; 4])),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_sizes_in_units() {
        assert_eq!(bytes(1023), "1023 B");
        assert_eq!(bytes(1024), "1.0 KiB");
        assert_eq!(bytes(5 << 40), "5.0 TiB");
    }
}
