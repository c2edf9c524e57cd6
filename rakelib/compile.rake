# frozen_string_literal: true

require "rbconfig"

# A native extension fits only the Ruby it was built for, and several Rubies may share this checkout. So each
# has its own directory below lib/memprof/ (where lib/memprof/native.rb looks first) and below target/.
module MemprofBuild
  extend Rake::DSL

  RUBY_API = RbConfig::CONFIG["ruby_version"][/\A\d+\.\d+/]
  EXTENSION = "lib/memprof/#{RUBY_API}/memprof.#{RbConfig::CONFIG["DLEXT"]}".freeze
  TARGET_DIR = File.join(File.expand_path(ENV.fetch("CARGO_TARGET_DIR", "target")), "ruby-#{RUBY_API}")
  # rb-sys asks the Ruby named in RUBY, else the first on PATH: name the one that runs this task.
  ENVIRONMENT = { "RUBY" => RbConfig.ruby, "CARGO_TARGET_DIR" => TARGET_DIR }.freeze

  # Builds with cargo, and puts the library where Ruby looks for it.
  def self.with_cargo(profile)
    sh(ENVIRONMENT, "cargo", "build", *CARGO_LOCKED, "--package", "memprof", "--profile", profile)
    built = "#{TARGET_DIR}/#{profile == "dev" ? "debug" : profile}/libmemprof.#{RbConfig::CONFIG["SOEXT"]}"
    mkdir_p(File.dirname(EXTENSION), verbose: false)
    # Never write into the old file: a process may have it mapped, and would run half of each.
    cp(built, "#{EXTENSION}.new", verbose: false)
    mv("#{EXTENSION}.new", EXTENSION, verbose: false)
    puts "built #{EXTENSION} (#{profile})"
  end
end

desc "Build the extension for this Ruby (fast build)"
task(:compile) { MemprofBuild.with_cargo("dev") }

desc "Build the extension as it is published (optimised)"
task("compile:release") { MemprofBuild.with_cargo("release") }
