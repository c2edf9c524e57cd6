use super::*;

#[test]
fn names_the_gem_behind_the_last_gems_directory() {
    for (path, gem) in [
        (
            "/home/me/.rbenv/versions/3.3.0/lib/ruby/gems/3.3.0/gems/rack-3.1.0/lib/rack/lint.rb",
            "rack-3.1.0",
        ),
        (
            "/usr/share/rubygems-integration/all/gems/memory_profiler-0.9.14/lib/memory_profiler.rb",
            "memory_profiler-0.9.14",
        ),
        ("/usr/lib/ruby/gems/3.1.0/gems/rbs-2.1.0/lib/rbs.rb", "rbs-2.1.0"),
        ("/srv/shop/vendor/bundle/ruby/3.1.0/gems/puma-6.4.0/lib/puma/server.rb", "puma-6.4.0"),
        ("/usr/lib/ruby/gems/3.3.0/bundler/gems/foo-abc123/lib/foo.rb", "foo-abc123"),
        ("/x/gems/outer-1.0/vendor/gems/inner-2.0/lib/inner.rb", "inner-2.0"),
        ("/x/gems/outer-1.0/lib/outer/gems/file.rb", "outer-1.0"),
        ("/x/gems/gems/odd/lib/odd.rb", "odd"),
        ("(eval at /x/gems/erb-4.0/lib/erb.rb:12)", "erb-4.0"),
    ] {
        assert_eq!(guess_gem(path), gem, "{path}");
    }
}

#[test]
fn names_rubygems_and_the_vm() {
    for (path, gem) in [
        ("/usr/lib/ruby/vendor_ruby/rubygems/specification.rb", "rubygems"),
        ("/usr/lib/ruby/vendor_ruby/rubygems.rb", "rubygems"),
        ("/usr/local/lib/ruby/3.3.0/rubygems/core_ext/kernel_require.rb", "rubygems"),
        ("<internal:kernel>", "ruby"),
        ("<internal:/usr/lib/ruby/vendor_ruby/rubygems/core_ext/kernel_require.rb>", "ruby"),
    ] {
        assert_eq!(guess_gem(path), gem, "{path}");
    }
}

#[test]
fn names_standard_and_vendored_libraries() {
    for (path, gem) in [
        ("/usr/lib/ruby/3.1.0/set.rb", "set"),
        ("/usr/lib/ruby/3.1.0/json/common.rb", "json"),
        ("/opt/hostedtoolcache/Ruby/3.3.0/x64/lib/ruby/3.3.0/json/common.rb", "json"),
        ("/home/me/.asdf/installs/ruby/3.1.2/lib/ruby/3.1.0/json/common.rb", "json"),
        ("/opt/ruby/lib/ruby/3.4.0+1/erb.rb", "erb"),
        ("/usr/lib/ruby/vendor_ruby/rack/x.rb", "rack"),
        ("/usr/lib/ruby/vendor_ruby/rack.rb", "rack"),
        ("/usr/local/lib/site_ruby/3.1.0/tool.rb", "tool"),
        ("/usr/lib/x86_64-linux-gnu/ruby/vendor_ruby/3.1.0/nio/bytebuffer.so", "nio"),
        ("/usr/lib/x86_64-linux-gnu/ruby/3.1.0/stringio.so", "stringio"),
        ("/usr/local/lib/ruby/3.3.0/x86_64-linux/json/ext/parser.so", "json"),
        ("/usr/local/lib/ruby/site_ruby/3.3.0/arm64-darwin23/fast.bundle", "fast"),
    ] {
        assert_eq!(guess_gem(path), gem, "{path}");
    }
}

#[test]
fn names_applications_by_their_first_app_bin_or_lib_directory() {
    for (path, gem) in [
        ("/srv/shop/app/models/user.rb", "shop/app"),
        ("/srv/shop/lib/tasks/app/x.rb", "shop/lib"),
        ("shop/bin/run", "shop/bin"),
        ("/home/me/tools/ruby/lib/tool.rb", "ruby/lib"),
        ("/srv/shop/library/x.rb", "other"),
        ("/app/models/user.rb", "other"),
        ("lib/user.rb", "other"),
        ("script.rb", "other"),
        ("-e", "other"),
        ("(irb)", "other"),
        ("", "other"),
        ("///", "other"),
        ("/gems/", "other"),
        ("ruby/3.1.0/", "other"),
    ] {
        assert_eq!(guess_gem(path), gem, "{path}");
    }
}

#[test]
fn shortens_what_it_knows_and_nothing_else() {
    for (path, short) in [
        ("/a/gems/3.1.0/gems/rack-3.1.0/lib/rack/lint.rb", "rack-3.1.0/lib/rack/lint.rb"),
        ("/a/gems/3.1.0/gems/rack-3.1.0/lib/rack/lint.rb:7", "rack-3.1.0/lib/rack/lint.rb:7"),
        ("/usr/lib/ruby/3.1.0/json/common.rb", "ruby/lib/json/common.rb"),
        ("/usr/lib/ruby/3.1.0/set.rb:12", "ruby/lib/set.rb:12"),
        ("/usr/lib/ruby/vendor_ruby/rack/x.rb", "ruby/lib/rack/x.rb"),
        (
            "/usr/local/lib/ruby/3.3.0/x86_64-linux/json/ext/parser.so",
            "ruby/lib/json/ext/parser.so",
        ),
        ("/srv/shop/app/models/user.rb", "shop/app/models/user.rb"),
        ("<internal:kernel>", "<internal:kernel>"),
        ("/tmp/script.rb", "/tmp/script.rb"),
        ("(no name)", "(no name)"),
        ("", ""),
    ] {
        assert_eq!(short_path(path), short, "{path}");
    }
}

#[test]
fn distinguishes_the_application_from_libraries() {
    for path in
        ["/srv/shop/app/models/user.rb", "lib/user.rb", "app.rb", "-e", "/home/me/ruby/app.rb"]
    {
        assert!(is_application(path), "{path}");
    }
    for path in [
        "",
        "(eval)",
        "(irb)",
        "<internal:kernel>",
        "/usr/lib/ruby/3.1.0/set.rb",
        "/usr/lib/ruby/vendor_ruby/active_support/notifications/fanout.rb",
        "/usr/lib/ruby/vendor_ruby/rubygems.rb",
        "/x/bundler/gems/foo-abc123/lib/foo.rb",
        "/srv/shop/vendor/bundle/ruby/3.1.0/gems/puma-6.4.0/lib/puma/server.rb",
    ] {
        assert!(!is_application(path), "{path}");
    }
}

#[test]
fn knows_where_code_was_evaluated() {
    for (path, place) in [
        ("(eval at /srv/app.rb:20)", Some(("/srv/app.rb", 20))),
        ("(eval at (eval at /srv/app.rb:20):3)", Some(("/srv/app.rb", 20))),
        ("(eval at /srv/app.rb)", None),
        ("/srv/app.rb:20", None),
        ("(eval)", None),
        ("", None),
    ] {
        assert_eq!(evaluated_at(path), place, "{path}");
    }
}

#[test]
fn takes_any_text() {
    for path in
        ["ü/gems/é-1/ß", "/gems//", "ruby/ruby/3./", "ruby/vendor_ruby/.hidden", "\u{0}/lib/"]
    {
        guess_gem(path);
        short_path(path);
        is_application(path);
        evaluated_at(path);
    }
}
