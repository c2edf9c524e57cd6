//! GEXF 1.3, Gephi's native format: nodes with class, size and retained size; their drawn size grows with the retained
//! size.
//!
//! Source of truth: the schemas of <https://gexf.net/schema.html>, `gexf.xsd` and `viz.xsd` of version 1.3.

use std::io::{self, Write};

use super::drawing::Drawing;
use super::out::Out;
use super::{Counts, Options};
use memprof_heap::Heap;

/// Objects that Gephi can still lay out.
const LIMIT: usize = 20_000;

const HEAD: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<gexf xmlns="http://gexf.net/1.3" xmlns:viz="http://gexf.net/1.3/viz" version="1.3">
<meta><creator>memprof</creator></meta>
<graph defaultedgetype="directed" mode="static">
<attributes class="node">
<attribute id="type" title="type" type="string"/>
<attribute id="class" title="class" type="string"/>
<attribute id="size" title="size" type="long"/>
<attribute id="retained" title="retained" type="long"/>
</attributes>
<nodes>
"#;

/// Writes the graph.
pub(super) fn write(heap: &Heap, options: &Options<'_>, out: &mut dyn Write) -> io::Result<Counts> {
    let drawing = Drawing::new(heap, options, LIMIT)?;
    let most = drawing.most()?.max(1) as f64;
    let mut out = Out::new(out);
    out.push(HEAD);
    drawing.nodes(|node| {
        out.push("<node id=\"");
        out.number(node.id);
        text(&mut out, "\" label=\"", node.title);
        text(&mut out, "\"><attvalues><attvalue for=\"type\" value=\"", node.kind);
        text(&mut out, "\"/><attvalue for=\"class\" value=\"", node.class);
        number(&mut out, "\"/><attvalue for=\"size\" value=\"", node.size);
        number(&mut out, "\"/><attvalue for=\"retained\" value=\"", node.retained);
        // The area grows with the bytes.
        let size = 4.0 + 96.0 * (node.retained as f64 / most).min(1.0).sqrt();
        out.push(&format!("\"/></attvalues><viz:size value=\"{size:.2}\"/></node>\n"));
        out.flush_if_full()
    })?;
    out.push("</nodes>\n<edges>\n");
    let counts = drawing.edges(|edge| {
        number(&mut out, "<edge id=\"", edge.id);
        number(&mut out, "\" source=\"", edge.from.into());
        number(&mut out, "\" target=\"", edge.to.into());
        text(&mut out, "\" label=\"", edge.label);
        out.push("\"/>\n");
        out.flush_if_full()
    })?;
    out.push("</edges>\n</graph>\n</gexf>\n");
    out.finish()?;
    Ok(counts)
}

fn number(out: &mut Out<'_>, before: &str, number: u64) {
    out.push(before);
    out.number(number);
}

/// Titles contain no characters that XML forbids.
fn text(out: &mut Out<'_>, before: &str, text: &str) {
    out.push(before);
    for character in text.chars() {
        match character {
            '"' => out.push("&quot;"),
            '&' => out.push("&amp;"),
            '<' => out.push("&lt;"),
            '>' => out.push("&gt;"),
            _ => out.push(character.encode_utf8(&mut [0; 4])),
        }
    }
}
