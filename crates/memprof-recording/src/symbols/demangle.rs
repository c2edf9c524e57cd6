//! Demangles names of C++ and Rust functions.

use std::fmt::{self, Write};

use cpp_demangle::{DemangleOptions, Symbol};
use rustc_demangle::try_demangle;

/// Longer names are unchanged: a few bytes of a mangled name may expand to an endless text.
const MOST: usize = 1 << 12;

/// The demangled name without parameters, return type and Rust's hash, such as `Cache::fetch` for `_ZN5Cache5fetchEi`; names of
/// other languages are unchanged.
#[must_use]
pub fn demangled(function: String) -> String {
    if !function.starts_with('_') {
        return function;
    }
    let name = of_rust(&function).or_else(|| of_cpp(&function));
    name.unwrap_or(function)
}

fn of_rust(function: &str) -> Option<String> {
    let name = try_demangle(function).ok()?;
    // Before it had its own scheme, Rust used that of C++, with a hash at the end.
    let is_rusts = function.starts_with("_R") || name.to_string() != format!("{name:#}");
    let mut text = Limited(String::new());
    write!(text, "{name:#}").ok()?;
    is_rusts.then_some(text.0)
}

fn of_cpp(function: &str) -> Option<String> {
    if !function.starts_with("_Z") {
        return None;
    }
    let symbol = Symbol::new(function).ok()?;
    let options = DemangleOptions::new().no_params().no_return_type();
    let mut name = Limited(String::new());
    symbol.structured_demangle(&mut name, &options).ok()?;
    Some(name.0)
}

/// Text limited to [`MOST`] bytes.
struct Limited(String);

impl Write for Limited {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.0.len() + text.len() > MOST {
            return Err(fmt::Error);
        }
        self.0.push_str(text);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(function: &str) -> String {
        demangled(function.to_owned())
    }

    #[test]
    fn functions_have_the_names_of_their_sources() {
        assert_eq!(name("_ZN5Cache5fetchEi"), "Cache::fetch");
        assert_eq!(name("_Znwm"), "operator new");
        assert_eq!(name("_ZnamRKSt9nothrow_t"), "operator new[]");
        assert_eq!(
            name("_ZNSt6vectorIiSaIiEE9push_backEOi"),
            "std::vector<int, std::allocator<int> >::push_back"
        );
        // A variable of C++: nothing follows the name, as in Rust.
        assert_eq!(name("_ZN5Cache5tableE"), "Cache::table");
        assert_eq!(
            name("_ZN4core3fmt9Formatter3pad17h0123456789abcdefE"),
            "core::fmt::Formatter::pad"
        );
        assert_eq!(
            name("_ZN45_$LT$leakx..Cache$u20$as$u20$leakx..Store$GT$5fetch17h0123456789abcdefE"),
            "<leakx::Cache as leakx::Store>::fetch"
        );
        assert_eq!(name("_RNvC6_123foo3bar"), "123foo::bar");
        assert_eq!(name("rb_ary_push"), "rb_ary_push");
        assert_eq!(name("_Zebra"), "_Zebra");
        assert_eq!(name(""), "");
    }

    #[test]
    fn a_name_that_grows_without_end_is_left() {
        // Each pair consists of the previous one, twice.
        let pairs: String = (0..40)
            .map(|number| match number {
                0 => "St4pairIiiE".to_owned(),
                1 => "S_IS0_S0_E".to_owned(),
                _ => format!(
                    "S_IS{}_S{0}_E",
                    char::from_digit(number - 1, 36).unwrap_or('Z').to_ascii_uppercase()
                ),
            })
            .collect();
        let growing = format!("_Z1fIJ{pairs}EEvv");
        assert_eq!(name(&growing), growing);
    }
}
