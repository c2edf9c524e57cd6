# frozen_string_literal: true

require "rbconfig"

# Whether this Ruby can find a checker. One that is not installed is left out with a warning, so that `rake`
# is of use without it; in CI that is a failure.
def checker?(name)
  return true if system(RbConfig.ruby, "-S", name, "--version", %i[out err] => File::NULL)

  message = "#{name} is not installed for Ruby #{RUBY_VERSION} (bin/setup installs it)"
  ENV.fetch("CI", "").empty? ? warn("left out: #{message}") : abort(message)
end

desc "Check style, crates, types and docs: lint:rust, lint:crates, lint:ruby, types, doc, rust:doc"
task lint: %i[lint:rust lint:crates lint:ruby types doc rust:doc]

desc "Check the Rust code: rustfmt, and clippy with warnings as errors"
task "lint:rust" do
  sh("cargo", "fmt", "--all", "--", "--check")
  # The extension is part of it, so clippy too needs to know for which Ruby.
  sh(MemprofBuild::ENVIRONMENT,
    "cargo", "clippy", *CARGO_LOCKED, "--workspace", "--all-targets", "--", "-D", "warnings")
end

# cargo-deny compiles for minutes, so bin/setup does not install it; the workflow runs it on every change.
desc "Check licences, sources, duplicates and, with a network, advisories of the crates (cargo-deny)"
task("lint:crates") do
  next warn("left out: cargo-deny is not installed (cargo install cargo-deny)") unless
    system("cargo", "deny", "--version", %i[out err] => File::NULL)

  deny = %w[cargo deny --locked]
  sh(*deny, "--offline", "check", "-D", "warnings", "bans", "licenses", "sources")
  if system(*deny, "fetch", %i[out err] => File::NULL)
    sh(*deny, "check", "-D", "warnings", "advisories")
  else
    warn("left out: advisories of crates, whose database can't be reached")
  end
end

desc "Check the Ruby code with RuboCop (RUBOCOP_OPTS=-a corrects)"
task("lint:ruby") do
  sh(RbConfig.ruby, "-S", "rubocop", *ENV.fetch("RUBOCOP_OPTS", "").split) if checker?("rubocop")
end
