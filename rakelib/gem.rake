# frozen_string_literal: true

require "rbconfig"
require_relative "crate_licences"
require_relative "native_gem"

# Platform gems are rows of data: what a library may need, and for each Ruby how its library is built.
module NativeGems
  extend Rake::DSL

  NO_ROOT = 77 # what bin/in-root exits with if it can't create a root
  STAGE = "tmp/native-gem"
  OUTPUT = "pkg/native"

  # Each takes the version of a Ruby, and gives the path of its library, or nil if it can't be built here.
  # With LIBRARIES, a directory of libraries as 3.4/memprof.so, nothing is built.
  module Ways
    extend Rake::DSL

    module_function

    # With this Ruby, or in the Debian that has it.
    def root(version)
      return MemprofShared.build if version == MemprofBuild::RUBY_API

      system("bin/in-root", version, "ruby", "-S", "rake", "--quiet", "compile:shared")
      status = $?.exitstatus
      abort("compile:shared failed with Ruby #{version}") unless [0, NO_ROOT].include?(status)
      MemprofBuild.extension_of(version) if status.zero?
    end

    # With the headers of a root of that processor (rakelib/cross.rake).
    def cross(version)
      MemprofCross.build("aarch64") if version == MemprofBuild::RUBY_API && ENV.key?("MEMPROF_SYSROOT")
    end

    # Only where it runs.
    def elsewhere(_version) = nil

    def given(version) = ["#{ENV.fetch("LIBRARIES")}/#{version}/memprof.so"].find { |path| File.exist?(path) }

    # With a Ruby of MEMPROF_RUBIES, a list like PATH: /opt/ruby-3.2/bin/ruby:/opt/ruby-4.0/bin/ruby
    def named(version)
      ruby = ENV.fetch("MEMPROF_RUBIES", "").split(File::PATH_SEPARATOR).find do |path|
        IO.popen([path, "-e", "print RUBY_VERSION[/\\A\\d+\\.\\d+/]"], &:read) == version
      end
      MemprofShared.build(ruby: ruby, version: version) if ruby
    end
  end

  PLATFORMS = {
    # Debian 12, Ubuntu 22.04, RHEL 9 and newer.
    NativeGem::Platform.new(
      name: "x86_64-linux-gnu", machine: "i386:x86-64", libc: { "GLIBC" => "2.34" }, binutils: ""
    ) => { "3.1" => :root, "3.2" => :named, "3.3" => :root, "3.4" => :root, "4.0" => :named },
    NativeGem::Platform.new(
      name: "aarch64-linux-gnu", machine: "aarch64", libc: { "GLIBC" => "2.34" },
      binutils: RUBY_PLATFORM.start_with?("aarch64") ? "" : "aarch64-linux-gnu-"
    ) => NativeGem::RUBIES.to_h { |version| [version, :cross] },
    NativeGem::Platform.new(
      name: "x86_64-linux-musl", machine: "i386:x86-64", libc: {}, binutils: "", rubygems: ">= 3.3.22"
    ) => NativeGem::RUBIES.to_h { |version| [version, :elsewhere] }
  }.freeze

  class << self
    def build(name)
      platform, ways = PLATFORMS.find { |row, _| row.name == name } ||
        abort("no platform is named #{name}; expected one of: #{PLATFORMS.keys.map(&:name).join(", ")}")
      libraries = ways.to_h do |version, way|
        [version, Ways.public_send(ENV.key?("LIBRARIES") ? :given : way, version)]
      end.compact
      abort("no library could be built for #{name}") if libraries.empty?
      report_missing(ways.keys - libraries.keys)
      pack(platform, libraries)
    end

    private

    # A release must not lack one, so that is a failure in CI.
    def report_missing(versions)
      return if versions.empty?

      message = "no library could be built for Ruby #{versions.join(", ")}, which would get the source gem"
      ENV.fetch("CI", "").empty? ? warn(message) : abort(message)
    end

    def pack(platform, libraries)
      file = NativeGem.new(platform, libraries, licences: CrateLicences.text).write(OUTPUT, stage: STAGE)
      installed = Dir["#{STAGE}/**/*"].select { |path| File.file?(path) }.sum { |path| File.size(path) }
      puts format("%<file>s: %<size>.1f MB, installed %<installed>.1f MB, for Ruby %<versions>s", file: file,
        size: File.size(file) / 1e6, installed: installed / 1e6, versions: libraries.keys.join(", "))
    rescue NativeGem::Unfit => e
      abort(e.message)
    end
  end
end

desc "Build a gem with the compiled extension of all Rubies that can be had here into #{NativeGems::OUTPUT}/"
task("gem:native", [:platform]) do |_, arguments|
  NativeGems.build(arguments.fetch(:platform, NativeGems::PLATFORMS.keys.first.name))
end
