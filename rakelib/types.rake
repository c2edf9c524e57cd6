# frozen_string_literal: true

require "rbconfig"

# RBS comes with Ruby as a bundled gem, on Debian without a command on PATH.
RBS = [RbConfig.ruby, "-e", 'load Gem.bin_path("rbs", "rbs")', "--"].freeze

desc "Validate the signatures in sig/, which are those of the public API"
task(:types) { sh(*RBS, "-I", "sig", "validate", "--silent") }
