# frozen_string_literal: true

require "rbconfig"

# Builds the extension for a processor that this machine does not have: with Debian's cross compiler, and with
# the headers of a Debian root of that processor (MEMPROF_SYSROOT), for its Ruby. Nothing of the root runs.
module MemprofCross
  extend Rake::DSL

  # The standard library of Rust comes with `rustup target add`, or on Debian 13 with libstd-rust-dev:arm64.
  Target = Struct.new(:rust, :debian, :packages, keyword_init: true) do
    # What rb-sys reads of the root: rbconfig.rb, whose paths begin where the file is.
    def rbconfig(sysroot)
      Dir.glob("#{sysroot}/usr/lib/#{debian}/ruby/[0-9]*/rbconfig.rb").max ||
        abort("#{sysroot} has no Ruby for #{debian}: set MEMPROF_SYSROOT to a Debian root with ruby-dev")
    end

    def environment(sysroot, target)
      {
        "RUBY" => RbConfig.ruby, "RUBYLIB" => File.dirname(rbconfig(sysroot)), "CARGO_TARGET_DIR" => target,
        "CARGO_TARGET_#{rust.upcase.tr("-", "_")}_LINKER" => "#{debian}-gcc",
        "BINDGEN_EXTRA_CLANG_ARGS_#{rust.tr("-", "_")}" => "-I/usr/#{debian}/include"
      }
    end
  end

  TARGETS = {
    "aarch64" => Target.new(rust: "aarch64-unknown-linux-gnu", debian: "aarch64-linux-gnu",
      packages: "gcc-aarch64-linux-gnu libc6-dev-arm64-cross")
  }.freeze

  # Gives the path of the library, which is not in lib/: this machine can't load it.
  def self.build(processor, profile: "release", sysroot: ENV.fetch("MEMPROF_SYSROOT", "/"))
    target = TARGETS.fetch(processor)
    version = File.dirname(target.rbconfig(sysroot))[/\d+\.\d+/]
    abort("this is Ruby #{MemprofBuild::RUBY_API}, and #{sysroot} has #{version}: rbconfig.rb refuses") unless
      version == MemprofBuild::RUBY_API
    abort("the cross compiler is missing: apt-get install #{target.packages}") unless
      system("#{target.debian}-gcc", "--version", %i[out err] => File::NULL)

    into = MemprofBuild.target_of("#{version}-#{processor}")
    sh(target.environment(sysroot, into), "cargo", "build", *CARGO_LOCKED, "--package", "memprof",
      "--profile", profile, "--target", target.rust)
    "#{into}/#{target.rust}/#{profile == "dev" ? "debug" : profile}/libmemprof.so"
  end
end

MemprofCross::TARGETS.each_key do |processor|
  desc "Build the extension for #{processor} (MEMPROF_SYSROOT: a Debian root of it; PROFILE=dev: fast build)"
  task("compile:#{processor}") do
    puts "built #{MemprofCross.build(processor, profile: ENV.fetch("PROFILE", "release"))}"
  end
end
