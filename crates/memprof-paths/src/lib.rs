//! What a path says about the code in it: the gem it belongs to, and a form short enough to read.
//!
//! The names are those that users of the memory_profiler gem know (`rack-3.1.0`, `json`, `myapp/app`, `other`); what it
//! does not know is added: Debian's `vendor_ruby`, directories of one architecture, and files of the VM itself.

use std::borrow::Cow;

/// Directories that make a path an application's, as `shop` in `/srv/shop/app/models/user.rb`.
const APP_DIRECTORIES: [&str; 3] = ["bin", "app", "lib"];

/// First words of the names of architecture directories, as `x86_64-linux` or `arm64-darwin23`.
const ARCHITECTURES: [&str; 13] = [
    "x86_64",
    "x64",
    "x86",
    "i386",
    "i586",
    "i686",
    "aarch64",
    "arm",
    "arm64",
    "powerpc64le",
    "riscv64",
    "s390x",
    "universal",
];

/// Name of the gem, standard library or application that the file at `path` belongs to; `other` if the path names none.
///
/// ```
/// use memprof_paths::guess_gem;
/// assert_eq!(guess_gem("/usr/lib/ruby/gems/3.3.0/gems/rack-3.1.0/lib/rack/lint.rb"), "rack-3.1.0");
/// assert_eq!(guess_gem("/usr/lib/ruby/3.1.0/set.rb"), "set");
/// assert_eq!(guess_gem("/srv/shop/app/models/user.rb"), "shop/app");
/// assert_eq!(guess_gem("script.rb"), "other");
/// ```
pub fn guess_gem(path: &str) -> &str {
    if path.starts_with("<internal:") {
        return "ruby";
    }
    if let Some(start) = gem_start(path) {
        return segment(&path[start..]);
    }
    if path.contains("/rubygems/") || path.contains("/rubygems.") {
        return "rubygems";
    }
    if let Some(start) = library_start(path) {
        let name = segment(&path[start..]);
        return name.split('.').next().unwrap_or(name);
    }
    match app_range(path) {
        Some((start, end)) => &path[start..end],
        None => "other",
    }
}

/// `path` without what precedes the gem, standard library or application; other paths are returned as they are.
///
/// What follows the path, as a line number, is kept.
///
/// ```
/// use memprof_paths::short_path;
/// assert_eq!(short_path("/var/lib/gems/3.1.0/gems/rack-3.1.0/lib/rack/lint.rb:42"), "rack-3.1.0/lib/rack/lint.rb:42");
/// assert_eq!(short_path("/usr/lib/ruby/3.1.0/json/common.rb"), "ruby/lib/json/common.rb");
/// ```
pub fn short_path(path: &str) -> Cow<'_, str> {
    if path.starts_with("<internal:") {
        return Cow::Borrowed(path);
    }
    library_path(path).unwrap_or_else(|| match app_range(path) {
        Some((start, _)) => Cow::Borrowed(&path[start..]),
        None => Cow::Borrowed(path),
    })
}

/// `path` from the gem or standard library on; `None` for a file of neither.
pub fn library_path(path: &str) -> Option<Cow<'_, str>> {
    if let Some(start) = gem_start(path) {
        return Some(Cow::Borrowed(&path[start..]));
    }
    library_start(path).map(|start| Cow::Owned(format!("ruby/lib/{}", &path[start..])))
}

/// True for a file that belongs to no installed gem, no library of Ruby and not to the VM: most likely the application's.
///
/// A gem in a directory of the application has no version there, and is the application's. Commands that gems install
/// only start it. Code without a file belongs where it was evaluated.
///
/// ```
/// use memprof_paths::is_application;
/// assert!(is_application("/srv/shop/app/models/user.rb"));
/// assert!(is_application("/srv/shop/gems/billing/lib/billing.rb"));
/// assert!(is_application("(eval at /srv/shop/app/models/user.rb:12)"));
/// assert!(!is_application("/var/lib/gems/3.1.0/gems/rack-3.1.0/lib/rack/lint.rb"));
/// assert!(!is_application("/usr/local/bin/puma"));
/// assert!(!is_application("(eval)"));
/// ```
pub fn is_application(path: &str) -> bool {
    let path = evaluated_at(path).map_or(path, |(file, _)| file);
    !path.is_empty()
        && !path.starts_with(['<', '('])
        && !path.contains("/rubygems/")
        && !path.contains("/rubygems.")
        && !is_command(path)
        && library_start(path).is_none()
        && gem_start(path).is_none_or(|start| !is_installed(path, start))
}

/// True for a command beside Ruby's own.
fn is_command(path: &str) -> bool {
    let Some((directory, _)) = path.rsplit_once('/') else {
        return false;
    };
    let managers = ["/.rbenv/", "/.rvm/", "/.asdf/", "/rubies/", "/mise/"];
    directory.ends_with("/bin")
        && (directory.starts_with("/usr/") || managers.iter().any(|name| directory.contains(name)))
}

/// True if the name of a gem's directory ends with a version, as that of any gem that was installed, or Bundler installed it
/// from Git.
fn is_installed(path: &str, start: usize) -> bool {
    let version = segment(&path[start..]).rsplit_once('-');
    path[..start].ends_with("/bundler/gems/")
        || version.is_some_and(|(_, version)| version.starts_with(|it: char| it.is_ascii_digit()))
}

/// True for what is in place of a file where no user's code runs: the VM's own code in Ruby, and the frame in which it
/// loads a compiled extension, which has the extension's path and no line.
///
/// ```
/// use memprof_paths::is_vms;
/// assert!(is_vms(b"<internal:marshal>"));
/// assert!(is_vms(b"/usr/lib/ruby/3.1.0/ripper.so"));
/// assert!(!is_vms(b"/srv/shop/app/models/user.rb"));
/// ```
pub fn is_vms(path: &[u8]) -> bool {
    let extensions: [&[u8]; 3] = [b".so", b".bundle", b".dll"];
    path.starts_with(b"<internal:") || extensions.iter().any(|ending| path.ends_with(ending))
}

/// Where code was evaluated that has no file: Ruby 3.3 and newer say it in place of a path.
///
/// ```
/// use memprof_paths::evaluated_at;
/// assert_eq!(evaluated_at("(eval at /srv/shop/app.rb:20)"), Some(("/srv/shop/app.rb", 20)));
/// assert_eq!(evaluated_at("(eval)"), None);
/// ```
pub fn evaluated_at(path: &str) -> Option<(&str, u32)> {
    let mut place = None;
    let mut outer = path;
    // What is evaluated may evaluate, too.
    while let Some(inner) = outer.strip_prefix("(eval at ") {
        let (file, line) = inner.strip_suffix(')')?.rsplit_once(':')?;
        place = Some((file, line.parse().ok()?));
        outer = file;
    }
    place
}

/// Where the name of the gem begins: behind the last `/gems/` that is followed by a directory.
///
/// A directory of an ABI version (`/usr/lib/ruby/gems/3.1.0/specifications`) holds gems and is none.
fn gem_start(path: &str) -> Option<usize> {
    const MARK: &str = "/gems/";
    let mut end = path.len();
    while let Some(at) = path[..end].rfind(MARK) {
        let start = at + MARK.len();
        let rest = &path[start..];
        let name = segment(rest);
        if !name.is_empty() && name.len() < rest.len() && !is_version(name) {
            return Some(start);
        }
        // Occurrences may share a slash: `/gems/gems/`.
        end = at + 1;
    }
    None
}

/// Where the path inside a Ruby library directory begins, as `json/common.rb` in `/usr/lib/ruby/3.1.0/json/common.rb`.
///
/// Library directories are `ruby/VERSION`, `ruby/vendor_ruby` and `ruby/site_ruby`, the latter two with or without a
/// version, and all of them with or without an architecture.
fn library_start(path: &str) -> Option<usize> {
    const MARK: &str = "ruby/";
    let mut end = path.len();
    while let Some(at) = path[..end].rfind(MARK) {
        let start = at + MARK.len();
        let directory = &path[..start - 1];
        let named = ["/vendor_ruby", "/site_ruby"]
            .iter()
            .any(|name| directory.ends_with(name));
        let mut inside = start;
        let versioned = skip_segment(path, &mut inside, is_version);
        skip_segment(path, &mut inside, is_architecture);
        if (versioned || named)
            && !segment(&path[inside..]).starts_with(['.', '/'])
            && inside < path.len()
        {
            return Some(inside);
        }
        end = at + MARK.len() - 1;
    }
    None
}

/// Moves `at` behind the directory that begins there if `wanted` says so of its name.
fn skip_segment(path: &str, at: &mut usize, wanted: fn(&str) -> bool) -> bool {
    let rest = &path[*at..];
    let name = segment(rest);
    let skipped = name.len() < rest.len() && wanted(name);
    if skipped {
        *at += name.len() + 1;
    }
    skipped
}

/// The range of the first `NAME/app`, `NAME/bin` or `NAME/lib` in `path`.
fn app_range(path: &str) -> Option<(usize, usize)> {
    let mut start = 0;
    let mut previous: Option<usize> = None;
    for name in path.split('/') {
        let end = start + name.len();
        let directory = end < path.len();
        match previous {
            Some(before) if directory && APP_DIRECTORIES.contains(&name) => {
                return Some((before, end));
            }
            _ => previous = (!name.is_empty()).then_some(start),
        }
        start = end + 1;
    }
    None
}

/// What precedes the first slash.
fn segment(path: &str) -> &str {
    path.split('/').next().unwrap_or(path)
}

/// True for `3.1.0`, `3.4.0+1`, `2.7`.
fn is_version(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes.next().is_some_and(|byte| byte.is_ascii_digit()) && bytes.next() == Some(b'.')
}

/// True for `x86_64-linux`, `arm64-darwin23`, `x86_64-linux-gnu`.
fn is_architecture(name: &str) -> bool {
    name.split_once('-')
        .is_some_and(|(cpu, _)| ARCHITECTURES.contains(&cpu))
}

#[cfg(test)]
mod tests;
