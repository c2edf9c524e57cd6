//! Names escaped for one line of a terminal.

/// Appends `text` to `line`. Control characters, line separators, and bidirectional marks are escaped as in a Ruby literal.
pub fn push(line: &mut String, text: &str) {
    // Branch-free, so that the compiler can vectorize it.
    if text.bytes().fold(true, |plain, byte| plain & (0x20..0x7f).contains(&byte)) {
        line.push_str(text);
        return;
    }
    for character in text.chars() {
        match character {
            '\u{7}' => line.push_str("\\a"),
            '\u{8}' => line.push_str("\\b"),
            '\t' => line.push_str("\\t"),
            '\n' => line.push_str("\\n"),
            '\u{b}' => line.push_str("\\v"),
            '\u{c}' => line.push_str("\\f"),
            '\r' => line.push_str("\\r"),
            '\u{1b}' => line.push_str("\\e"),
            '\0'..='\u{1f}' | '\u{7f}' => line.push_str(&format!("\\x{:02X}", character as u32)),
            '\u{80}'..='\u{9f}'
            | '\u{200e}'
            | '\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2066}'..='\u{2069}' => {
                line.push_str(&format!("\\u{:04X}", character as u32));
            }
            _ => line.push(character),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::push;

    fn line(text: &str) -> String {
        let mut line = String::new();
        push(&mut line, text);
        line
    }

    #[test]
    fn writes_what_acts_on_a_terminal_as_ruby_does() {
        assert_eq!(line("caf\u{e9} \u{65e5}"), "caf\u{e9} \u{65e5}");
        assert_eq!(line("a\nb\u{1b}[31m\0\u{7f}"), "a\\nb\\e[31m\\x00\\x7F");
        assert_eq!(line("\u{85}\u{2028}\u{202e}"), "\\u0085\\u2028\\u202E");
    }
}
