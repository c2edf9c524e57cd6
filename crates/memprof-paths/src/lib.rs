//! Derives from a path the gem its code belongs to, and a short form for display.
//!
//! Names follow the memory_profiler gem (`rack-3.1.0`, `json`, `myapp/app`, `other`), extended by Debian's `vendor_ruby`,
//! architecture directories, and files of the VM itself.

use std::borrow::Cow;

/// Directories that mark a path as an application's, such as `shop` in `/srv/shop/app/models/user.rb`.
const APP_DIRECTORIES: [&str; 3] = ["bin", "app", "lib"];

/// First words of the names of architecture directories, such as `x86_64-linux` or `arm64-darwin23`.
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

/// Name of the gem, standard library or application that the file at `path` belongs to; `other` if the path doesn't tell.
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

/// `path` without the part before the gem, standard library or application; other paths are unchanged.
///
/// Anything after the path, such as a line number, is preserved.
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

/// `path` starting at the gem or standard library; `None` for a file of neither.
pub fn library_path(path: &str) -> Option<Cow<'_, str>> {
    if let Some(start) = gem_start(path) {
        return Some(Cow::Borrowed(&path[start..]));
    }
    library_start(path).map(|start| Cow::Owned(format!("ruby/lib/{}", &path[start..])))
}

/// True for a file outside of installed gems, Ruby's libraries and the VM: most likely the application's.
///
/// A gem in a directory of the application has no version there, and counts as the application's. Commands installed by gems
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

/// True for a file in a bin directory of the system or of a Ruby version manager.
fn is_command(path: &str) -> bool {
    let Some((directory, _)) = path.rsplit_once('/') else {
        return false;
    };
    let managers = ["/.rbenv/", "/.rvm/", "/.asdf/", "/rubies/", "/mise/"];
    directory.ends_with("/bin")
        && (directory.starts_with("/usr/") || managers.iter().any(|name| directory.contains(name)))
}

/// True for a gem installed by RubyGems, whose directory name ends with a version, or from Git by Bundler.
fn is_installed(path: &str, start: usize) -> bool {
    let version = segment(&path[start..]).rsplit_once('-');
    path[..start].ends_with("/bundler/gems/")
        || version.is_some_and(|(_, version)| version.starts_with(|it: char| it.is_ascii_digit()))
}

/// True for pseudo files where no user code runs: the VM's own Ruby code, and the frame that loads a compiled extension, which
/// has the extension's path and no line.
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

/// The place that evaluated code without a file: Ruby 3.3 and newer give it in place of a path.
///
/// ```
/// use memprof_paths::evaluated_at;
/// assert_eq!(evaluated_at("(eval at /srv/shop/app.rb:20)"), Some(("/srv/shop/app.rb", 20)));
/// assert_eq!(evaluated_at("(eval)"), None);
/// ```
pub fn evaluated_at(path: &str) -> Option<(&str, u32)> {
    let mut place = None;
    let mut outer = path;
    // Evaluated code may itself evaluate code.
    while let Some(inner) = outer.strip_prefix("(eval at ") {
        let (file, line) = inner.strip_suffix(')')?.rsplit_once(':')?;
        place = Some((file, line.parse().ok()?));
        outer = file;
    }
    place
}

/// Start of the gem's name: after the last `/gems/` that is followed by a directory.
///
/// The directory of an ABI version (`/usr/lib/ruby/gems/3.1.0/specifications`) contains gems but is not a gem.
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

/// Start of the path inside a Ruby library directory, such as `json/common.rb` in `/usr/lib/ruby/3.1.0/json/common.rb`.
///
/// Library directories are `ruby/VERSION`, `ruby/vendor_ruby` and `ruby/site_ruby`. The latter two may have a version, and all
/// of them an architecture.
fn library_start(path: &str) -> Option<usize> {
    const MARK: &str = "ruby/";
    let mut end = path.len();
    while let Some(at) = path[..end].rfind(MARK) {
        let start = at + MARK.len();
        let directory = &path[..start - 1];
        let named = ["/vendor_ruby", "/site_ruby"].iter().any(|name| directory.ends_with(name));
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

/// Moves `at` past the directory that begins there if `wanted` accepts its name.
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

/// The part before the first slash.
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
    name.split_once('-').is_some_and(|(cpu, _)| ARCHITECTURES.contains(&cpu))
}

#[cfg(test)]
mod tests;
