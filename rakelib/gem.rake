# frozen_string_literal: true

require "fileutils"
require "rbconfig"
require "rubygems/package"

# Gems that have the extension compiled, for Rubies that nothing has to be built on.
module NativeGem
  extend Rake::DSL

  # Debian has these (bin/in-root). Others are those of MEMPROF_RUBIES: /opt/ruby-4.0/bin/ruby:/opt/...
  DEBIANS = %w[3.1 3.3 3.4].freeze
  # The newest glibc that a library may need: that of Debian 12, Ubuntu 22.04 and RHEL 9 has all of it.
  GLIBC = Gem::Version.new("2.34")
  NO_ROOT = 77 # what bin/in-root exits with if it can't make a root
  STAGE = "tmp/native-gem"
  OUTPUT = "pkg/native"

  class << self
    def build
      libraries = compiled
      abort("no library could be built") if libraries.empty?
      stage(libraries)
      specification = specification(libraries)
      FileUtils.mkdir_p(OUTPUT)
      FileUtils.rm_f(Dir["#{OUTPUT}/*.gem"])
      file = File.expand_path(File.join(OUTPUT, specification.file_name))
      Dir.chdir(STAGE) { Gem::Package.build(specification, false, true, file) }
      puts "#{OUTPUT}/#{specification.file_name}: #{megabytes(file)}, for Ruby #{libraries.keys.join(", ")}"
    end

    private

    # The library of each Ruby that can be had here, by the Ruby's version.
    def compiled
      built = { MemprofBuild::RUBY_API => MemprofBuild::EXTENSION }
      Rake::Task["compile:release"].invoke
      (DEBIANS - built.keys).each do |version|
        next puts("not built: no root with Ruby #{version}") unless in_root?(version)

        built[version] = "lib/memprof/#{version}/memprof.so"
      end
      ENV.fetch("MEMPROF_RUBIES", "").split(":").each do |ruby|
        version = IO.popen([ruby, "-e", "print RbConfig::CONFIG['ruby_version'][/\\d+\\.\\d+/]"], &:read)
        built[version] = MemprofBuild.with_cargo("release", ruby: ruby, version: version)
      end
      built.sort_by { |version, _| Gem::Version.new(version) }.to_h
    end

    def in_root?(version)
      system("bin/in-root", version, "ruby", "-S", "rake", "--quiet", "compile:release")
      status = $?.exitstatus
      abort("compile:release failed with Ruby #{version}") unless [0, NO_ROOT].include?(status)
      status.zero?
    end

    # Copies what the gem has, with libraries without the names of functions, which are an eighth of them.
    def stage(libraries)
      FileUtils.rm_rf(STAGE)
      (files + ["memprof.gemspec"]).each do |path|
        FileUtils.mkdir_p(File.dirname(File.join(STAGE, path)))
        FileUtils.cp(path, File.join(STAGE, path))
      end
      libraries.each do |version, library|
        target = File.join(STAGE, "lib/memprof/#{version}/memprof.so")
        FileUtils.mkdir_p(File.dirname(target))
        sh("objcopy", "--strip-all", library, target, verbose: false)
        newest = needed_glibc(target)
        abort("#{library} needs glibc #{newest}") if newest > GLIBC
      end
    end

    def needed_glibc(library)
      symbols = IO.popen(["objdump", "-T", library], &:read)
      symbols.scan(/GLIBC_([\d.]+)/).flatten.map { |version| Gem::Version.new(version) }.max
    end

    def files
      source = Gem::Specification.load("memprof.gemspec").files
      source.reject { |path| path.start_with?("crates/", "ext/", "Cargo.") }
    end

    def specification(libraries)
      Gem::Specification.load("memprof.gemspec").dup.tap do |spec|
        after = Gem::Version.new("#{libraries.keys.last}.0").bump
        spec.required_ruby_version = [">= #{libraries.keys.first}", "< #{after}.dev"]
        spec.platform = "#{RbConfig::CONFIG["host_cpu"]}-linux-gnu"
        spec.extensions = []
        spec.files = (files + libraries.keys.map { |version| "lib/memprof/#{version}/memprof.so" }).sort
      end
    end

    def megabytes(file) = format("%.1f MB", File.size(file) / 1e6)
  end
end

desc "Build a gem into pkg/native/ that has the extension compiled for all Rubies that can be had here"
task("gem:native") { NativeGem.build }
