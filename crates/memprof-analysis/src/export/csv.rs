//! Comma-separated tables of objects and of references, for spreadsheets, databases and Gephi.
//!
//! Source of truth: RFC 4180, with a header line and CR LF line ends. A text that a spreadsheet would evaluate as a
//! formula (it begins with `=`, `+`, `-`, `@`, a tab or a line end, also after blanks) gets an apostrophe in front, as
//! OWASP advises ("CSV Injection"): the instance variable `@user` is `'@user`. `lib/memprof/csv_text.rb` does the same.

use std::io::{self, Write};

use super::naming::Naming;
use super::out::Out;
use super::table::Table;
use super::{Counts, Options};
use memprof_heap::Heap;

/// Writes a line for each object.
pub(super) fn objects(
    heap: &Heap,
    options: &Options<'_>,
    out: &mut dyn Write,
) -> io::Result<Counts> {
    let table = Table::new(heap, options)?;
    let mut naming = Naming::new(heap)?;
    let mut out = Out::new(out);
    out.push("id,label,address,type,class,size,retained,dominator,reachable,generation,file,line,method,length,flags\r\n");
    for row in table.objects() {
        out.number(row.id);
        out.push(",");
        text(&mut out, &naming.title_in_order(row.id)?);
        out.push(&format!(",{:#x},{},", row.address, row.kind));
        text(&mut out, row.class);
        number(&mut out, Some(row.size));
        number(&mut out, Some(row.retained));
        number(&mut out, row.dominator);
        out.push(if row.reachable { ",true" } else { ",false" });
        number(&mut out, row.generation);
        out.push(",");
        text(&mut out, row.site.map_or("", |site| heap.name(site.file)));
        number(&mut out, row.site.map(|site| site.line).filter(|&line| line > 0));
        out.push(",");
        text(
            &mut out,
            row.site.and_then(|site| site.method).map_or("", |method| heap.name(method)),
        );
        number(&mut out, row.length);
        out.push(",");
        for (index, name) in row.flags.names().enumerate() {
            out.push(if index > 0 { " " } else { "" });
            out.push(name);
        }
        out.push("\r\n");
        out.flush_if_full()?;
    }
    out.finish()?;
    Ok(table.counts())
}

/// Writes a line for each reference between them.
pub(super) fn references(
    heap: &Heap,
    options: &Options<'_>,
    out: &mut dyn Write,
) -> io::Result<Counts> {
    let table = Table::new(heap, options)?;
    let mut out = Out::new(out);
    let mut count = 0;
    out.push("source,target,label\r\n");
    table.references(|source, target, label| {
        out.number(source);
        out.push(",");
        out.number(target);
        out.push(",");
        text(&mut out, label);
        out.push("\r\n");
        count += 1;
        out.flush_if_full()
    })?;
    out.finish()?;
    Ok(Counts { references: count, ..table.counts() })
}

fn number(out: &mut Out<'_>, number: Option<impl itoa::Integer>) {
    out.push(",");
    if let Some(number) = number {
        out.number(number);
    }
}

pub(super) fn text(out: &mut Out<'_>, text: &str) {
    // Spreadsheets skip blanks, and read full-width signs as the usual ones.
    let unindented = text.trim_start_matches([' ', '\t', '\r', '\n', '\x0b', '\x0c']);
    let is_formula = text.starts_with(['\t', '\r', '\n'])
        || unindented.starts_with(['=', '+', '-', '@', '＝', '＋', '－', '＠']);
    let special = |byte: u8| matches!(byte, b'"' | b',' | b'\r' | b'\n' | b'\0');
    if !is_formula && !text.bytes().any(special) {
        return out.push(text);
    }
    out.push(if is_formula { "\"'" } else { "\"" });
    // Many CSV readers end a text at a NUL.
    out.push(&text.replace('"', "\"\"").replace('\0', "\u{fffd}"));
    out.push("\"");
}
