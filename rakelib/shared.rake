# frozen_string_literal: true

require "fileutils"
require "rbconfig"

# Builds the extension as in platform gems: in two libraries, of which the larger knows no Ruby. A gem has it
# once for all Rubies. It contains the standard library of Rust, so that it needs no third.
module MemprofShared
  extend Rake::DSL

  LIBRARY = "libmemprof_core.so"

  class << self
    # Gives the path of the library for that Ruby. The shared one is beside it.
    def build(ruby: RbConfig.ruby, version: MemprofBuild::RUBY_API)
      target = MemprofBuild.target_of(version)
      host = `rustc -vV`[/^host: (.+)/, 1]
      # With --target, so that the flags do not apply to build scripts and macros.
      sh(environment(ruby, version, sysroot("#{target}/sysroot", host)), "cargo", "build", *CARGO_LOCKED,
        "--package", "memprof", "--features", "shared", "--release", "--target", host)
      library = MemprofBuild.extension_of(version)
      { LIBRARY => "#{File.dirname(library)}/#{LIBRARY}", "libmemprof.so" => library }
        .each { |built, path| MemprofBuild.replace("#{target}/#{host}/release/#{built}", path) }
      puts "built #{library} and #{LIBRARY}"
      library
    end

    private

    # Functions of the shared library call each other directly, as in a single one.
    def environment(ruby, version, sysroot)
      flags = [ENV.fetch("RUSTFLAGS", nil), "--sysroot", sysroot, "-Clink-arg=-Wl,-Bsymbolic"].compact
      MemprofBuild.environment(ruby: ruby, version: version).merge("RUSTFLAGS" => flags.join(" "))
    end

    # The compiler's libraries, but the standard library only as an archive: rustc would prefer it as a shared
    # object, and refuse a library that contains it.
    def sysroot(directory, host)
      from = "#{`rustc --print sysroot`.chomp}/lib/rustlib/#{host}"
      to = "#{directory}/lib/rustlib/#{host}"
      FileUtils.rm_rf(directory)
      FileUtils.mkdir_p("#{to}/lib")
      FileUtils.ln_s(Dir["#{from}/*"] - ["#{from}/lib"], to)
      FileUtils.ln_s(Dir["#{from}/lib/*"].grep_v(%r{/libstd-\w+\.so\z}), "#{to}/lib")
      directory
    end
  end
end

desc "Build the extension as in platform gems: all Rubies share what knows no Ruby"
task("compile:shared") { MemprofShared.build }
