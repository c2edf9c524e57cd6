# frozen_string_literal: true

require_relative "lib/memprof/version"

Gem::Specification.new do |spec|
  spec.name = "memprof"
  spec.version = Memprof::VERSION
  spec.authors = ["The memprof authors"]
  spec.homepage = "https://github.com/memprof/memprof"
  spec.license = "MIT"
  spec.summary = "A memory profiler: which lines allocate objects, and which of them are retained"
  spec.description = "memprof shows which lines of a Ruby program allocate objects, which of them are " \
    "retained, and what retains them: tracking at low cost, heap dumps with leak suspects, traces of " \
    "requests; with a command, a web interface, Rack middleware, and matchers for RSpec and Minitest."

  spec.metadata = {
    "source_code_uri" => spec.homepage,
    "bug_tracker_uri" => "#{spec.homepage}/issues",
    "changelog_uri" => "#{spec.homepage}/blob/main/CHANGELOG.md",
    "documentation_uri" => "#{spec.homepage}/tree/main/docs",
    "rubygems_mfa_required" => "true",
    "cargo_crate_name" => "memprof"
  }

  spec.required_ruby_version = ">= 3.1"
  # Includes Cargo.lock: users build with the tested crates.
  spec.files = Dir.chdir(__dir__) do
    Dir[
      "*.md", "LICENSE.txt", "Cargo.{toml,lock}", ".cargo/config.toml", ".yardopts",
      "{crates,ext}/**/*.{html,md,rb,rs,toml}", "docs/*.md", "{exe,lib,sig,web}/**/*"
    ].select { |path| File.file?(path) }.reject { |path| path.match?(/\.(so|bundle|new|debug)\z/) }.sort
  end
  spec.bindir = "exe"
  spec.executables = ["memprof"]
  spec.require_paths = ["lib"]
  # Of everything in lib/, ri would make 19 MB; docs/ and YARD describe what is public.
  spec.rdoc_options = ["--exclude", "."]
  spec.extensions = ["ext/memprof/extconf.rb"]
end
