# frozen_string_literal: true

require "rbconfig"

# RBS comes with Ruby as a bundled gem, on Debian without a command on PATH.
RBS = [RbConfig.ruby, "-e", 'load Gem.bin_path("rbs", "rbs")', "--"].freeze

desc "Validate the signatures in sig/"
task(:types) { sh(*RBS, "-I", "sig", "validate", "--silent") }

desc "Run the specs with every call into the gem checked against sig/"
task "types:spec" do
  rspec(*ENV.fetch("SPEC", "").split, env: {
    "RBS_TEST_TARGET" => "Memprof,Memprof::*",
    "RBS_TEST_OPT" => "-I sig",
    "RBS_TEST_LOGLEVEL" => "error",
    "RUBYOPT" => "-rrbs/test/setup"
  })
end
