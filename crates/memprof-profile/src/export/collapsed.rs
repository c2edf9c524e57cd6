//! Collapsed stacks: one line per stack, `outermost;...;innermost weight`, as flame graph scripts expect.
//!
//! Frames read `method (file:line)`, or `method` for methods written in C, which have no location. The last frame is the class
//! of the objects. Lines are sorted, so that two profiles can be compared as text.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, Write};

use super::Value;
use crate::group::Names;
use crate::profile::Profile;

/// Writes the stacks with a nonzero `value`.
///
/// # Errors
/// Errors of `out`.
pub fn write(profile: &Profile, value: Value, out: &mut impl Write) -> io::Result<()> {
    let names = Names::new(profile);
    let mut lines: BTreeMap<String, u64> = BTreeMap::new();
    for row in names.rows() {
        let weight = value.of(&row);
        if weight > 0 {
            *lines.entry(line(profile, &names, row.stack, row.class)).or_default() += weight;
        }
    }
    for (stack, weight) in lines {
        writeln!(out, "{stack} {weight}")?;
    }
    Ok(())
}

/// The frames of a stack and the class, joined.
fn line(profile: &Profile, names: &Names<'_>, stack: u32, class: u32) -> String {
    let mut path: Vec<u32> = names.path(stack).collect();
    path.reverse();
    let mut line = String::new();
    for node in path {
        push_escaped(&mut line, names.method(node));
        if !profile.frame(node as usize).native {
            let (file, number) = names.place(node);
            line.push_str(" (");
            push_escaped(&mut line, file);
            write!(line, ":{number})").expect("a string takes all that is written to it");
        }
        line.push(';');
    }
    push_escaped(&mut line, names.class(class));
    line
}

/// Appends `text`, escaped so that it ends neither the frame nor the line: `;`, `\` and control characters become `\xNN`.
fn push_escaped(line: &mut String, text: &str) {
    for character in text.chars() {
        match character {
            ';' | '\\' | '\0'..='\x1f' | '\x7f' => {
                write!(line, "\\x{:02x}", u32::from(character))
                    .expect("a string takes all that is written to it");
            }
            // Readers split at every Unicode line or paragraph separator.
            '\u{85}' | '\u{2028}' | '\u{2029}' => line.push(' '),
            _ => line.push(character),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export::sample::profile;

    fn collapsed(value: Value) -> String {
        let mut out = Vec::new();
        write(&profile(), value, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn has_one_sorted_line_per_stack_and_class() {
        let fetch = "<main> (app.rb:1);Rack::Lint#call (/g/gems/rack-3.1.0/lib/rack.rb:12);Cache#fetch (app.rb:22)";
        let odd = "<main> (app.rb:1);odd\\x3b\\x0a \"name\" ü (app.rb:3);Odd\\x3bClass";
        let lines = format!("{fetch};Array#map;String 200\n{fetch};Hash 168\n{odd} 280\n");
        assert_eq!(collapsed(Value::AllocatedBytes), lines);
    }

    #[test]
    fn leaves_out_what_has_none_of_the_value() {
        assert_eq!(collapsed(Value::RetainedObjects).lines().count(), 1);
        assert!(collapsed(Value::RetainedObjects).ends_with(";Array#map;String 3\n"));
    }
}
