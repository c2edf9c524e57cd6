# frozen_string_literal: true

require "fileutils"
require "rbconfig"

desc "Build the gem into pkg/"
task :package do
  specification = Gem::Specification.load("memprof.gemspec")
  FileUtils.mkdir_p("pkg")
  FileUtils.rm_f(Dir["pkg/memprof-*.gem"]) # one gem is there afterwards: this one
  sh(RbConfig.ruby, "-S", "gem", "build", "memprof.gemspec", "--strict",
    "--output", "pkg/#{specification.file_name}")
end

desc "Install the gem of pkg/ into an empty GEM_HOME and use it"
task("package:test") { rspec("--tag", "package", paths: ["spec/integration/package_spec.rb"]) }
