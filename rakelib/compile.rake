# frozen_string_literal: true

require "rbconfig"

# A native extension fits only the Ruby it was built for, and several Rubies may share this checkout. So each
# has its own directory below lib/memprof/ (where lib/memprof/native.rb looks first) and below target/.
module MemprofBuild
  extend Rake::DSL

  RUBY_API = RbConfig::CONFIG["ruby_version"][/\A\d+\.\d+/]
  EXTENSION = "lib/memprof/#{RUBY_API}/memprof.#{RbConfig::CONFIG["DLEXT"]}".freeze

  def self.target_of(version)
    File.join(File.expand_path(ENV.fetch("CARGO_TARGET_DIR", "target")), "ruby-#{version}")
  end

  # rb-sys asks the Ruby named in RUBY, else the first on PATH: name the one that runs this task.
  def self.environment(ruby: RbConfig.ruby, version: RUBY_API)
    { "RUBY" => ruby, "CARGO_TARGET_DIR" => target_of(version) }
  end

  # Where Ruby looks for the library of that version.
  def self.extension_of(version) = EXTENSION.sub(RUBY_API, version)

  # Builds with cargo, and puts the library where Ruby looks for it. Gives its path.
  def self.with_cargo(profile, ruby: RbConfig.ruby, version: RUBY_API)
    sh(environment(ruby: ruby, version: version),
      "cargo", "build", *CARGO_LOCKED, "--package", "memprof", "--profile", profile)
    directory = profile == "dev" ? "debug" : profile
    built = "#{target_of(version)}/#{directory}/libmemprof.#{RbConfig::CONFIG["SOEXT"]}"
    library = extension_of(version)
    replace(built, library)
    puts "built #{library} (#{profile})"
    library
  end

  # Never writes into the old file: a process may have it mapped, and would run half of each.
  def self.replace(from, to)
    mkdir_p(File.dirname(to), verbose: false)
    cp(from, "#{to}.new", verbose: false)
    mv("#{to}.new", to, verbose: false)
  end

  ENVIRONMENT = environment.freeze
end

desc "Build the extension for this Ruby (fast build)"
task(:compile) { MemprofBuild.with_cargo("dev") }

desc "Build the extension as it is published (optimised)"
task("compile:release") { MemprofBuild.with_cargo("release") }
