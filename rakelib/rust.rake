# frozen_string_literal: true

# CI requires the committed Cargo.lock; during development a new dependency may change it.
CARGO_LOCKED = ENV.fetch("CI", "").empty? ? [] : ["--locked"]

# With the extension, and where `rake compile` builds: so the crates are compiled once for both.
desc "Test the crates and the extension's own units (TEST=name for some of the tests)"
task("rust:test") do
  runner = "target.'cfg(unix)'.runner = '#{File.expand_path("run_tests_twice.sh", __dir__)}'"
  sh({ **MemprofBuild::ENVIRONMENT, "FLAKY" => File.expand_path(SpecRun::FLAKY) },
    "cargo", "test", *CARGO_LOCKED, "--workspace", "--config", runner, *ENV.fetch("TEST", "").split)
end

desc "Build the documentation of the crates and the extension, warnings are errors"
task("rust:doc") do
  sh({ **MemprofBuild::ENVIRONMENT, "RUSTDOCFLAGS" => "-D warnings" },
    "cargo", "doc", *CARGO_LOCKED, "--workspace", "--no-deps", "--document-private-items")
end

desc "Format the Rust code"
task("rust:format") { sh("cargo", "fmt", "--all") }
