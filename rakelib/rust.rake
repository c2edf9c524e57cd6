# frozen_string_literal: true

# CI requires the committed Cargo.lock; during development a new dependency may change it.
CARGO_LOCKED = ENV.fetch("CI", "").empty? ? [] : ["--locked"]

desc "Test the crates that know no Ruby (TEST=name for some of the tests)"
task("rust:test") { sh("cargo", "test", *CARGO_LOCKED, *ENV.fetch("TEST", "").split) }

desc "Test the extension's own units with this Ruby (TEST=name for some of the tests)"
task("rust:test:extension") do
  sh(MemprofBuild::ENVIRONMENT, "cargo", "test", *CARGO_LOCKED, "--package", "memprof", "--lib",
    *ENV.fetch("TEST", "").split)
end

desc "Build the documentation of the crates, warnings are errors (target/doc)"
task("rust:doc") do
  sh({ "RUSTDOCFLAGS" => "-D warnings" },
    "cargo", "doc", *CARGO_LOCKED, "--no-deps", "--document-private-items")
end

desc "Format the Rust code"
task("rust:format") { sh("cargo", "fmt", "--all") }
