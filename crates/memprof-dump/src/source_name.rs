//! Names of source files. A program may give evaluated code any name, which is then one of the program's values: a dump
//! without contents omits it.

use super::values::HIDDEN;

/// Ruby's own names for code without a file.
const OWN: [&str; 6] = ["", ".", "-", "-e", "(eval)", "(irb)"];

/// Whether Ruby itself gives this name to code without a file.
pub fn is_own(name: &str) -> bool {
    OWN.contains(&name) || name.starts_with("<internal:")
}

/// Whether this is a full path or one of Ruby's own names: the only criterion when the files are not available.
pub fn matches(name: &str) -> bool {
    let path = behind_eval(name);
    is_own(path) || path.starts_with('/')
}

/// Ruby 3.3 and later name evaluated code after the `eval`, such as `(eval at app.rb:3)`: returns the file of the `eval`.
/// Other names are unchanged.
pub fn behind_eval(name: &str) -> &str {
    name.strip_prefix("(eval at ")
        .and_then(|rest| rest.strip_suffix(')'))
        .and_then(|place| place.rsplit_once(':'))
        .filter(|(_, line)| line.bytes().all(|byte| byte.is_ascii_digit()))
        .map_or(name, |(path, _)| path)
}

/// A backtrace line, such as `app.rb:3:in 'call'`, without a name that does not look like a file's.
pub(super) fn line(line: &str) -> String {
    let bytes = line.as_bytes();
    // The last colon before a line number: the name may contain colons, too.
    let ends_name = |at: &usize| {
        let digits = bytes[at + 1..].iter().take_while(|byte| byte.is_ascii_digit());
        let end = at + 1 + digits.count();
        end > at + 1 && (end == bytes.len() || bytes[end..].starts_with(b":in "))
    };
    let mut colons = line.match_indices(':').map(|(at, _)| at);
    let name_end = colons.rfind(ends_name).unwrap_or(line.len());
    let (name, rest) = line.split_at(name_end);
    if matches(name) { line.to_owned() } else { format!("{HIDDEN}{rest}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_paths_and_names_of_rubys_own_are_shown() {
        let shown = ["/app/a b.x", "-e", "(eval)", "<internal:kernel>", "(eval at -e:12)"];
        assert!(shown.into_iter().all(matches));
        let hidden = ["card 4111.rb", "(eval at card:1)", "(eval at /x)", "(eval 4111)"];
        assert!(!hidden.into_iter().any(matches));
    }

    #[test]
    fn backtraces_keep_the_rest_of_a_line() {
        assert_eq!(line("/app.rb:3:in 'call'"), "/app.rb:3:in 'call'");
        assert_eq!(line("card:41:11:3:in 'call'"), "(hidden):3:in 'call'");
        assert_eq!(line("(eval at -e:1):2"), "(eval at -e:1):2");
        assert_eq!(line("card"), "(hidden)");
    }
}
