# frozen_string_literal: true

require "fileutils"
require "rbconfig"
require "tmpdir"

# What `gem install memprof` says at once, and not after minutes, if something is missing.
RSpec.describe "ext/memprof/extconf.rb" do
  around { |example| Dir.mktmpdir { |directory| Dir.chdir(directory) { example.run } } }

  let(:bin) { File.join(Dir.pwd, "bin").tap { |bin| FileUtils.mkdir(bin) } }

  def install_tool(name, output)
    path = File.join(bin, name)
    File.write(path, "#!/bin/sh\necho '#{output}'\n")
    File.chmod(0o755, path)
  end

  # With these tools on PATH, and no others.
  def configure(env = {})
    run_command(RbConfig.ruby, File.join(ChildRuby::ROOT, "ext/memprof/extconf.rb"),
      env: { "PATH" => bin, "HOME" => Dir.pwd, "RUSTC" => nil, "LIBCLANG_PATH" => "/usr/lib" }.merge(env))
  end

  it "names Rust where there is none" do
    _, stderr, status = configure
    expect([status.exitstatus,
      stderr]).to match([1,
        /\Amemprof is built with Rust, and cargo is not on PATH\. Install Rust 1\.\d+ or newer/])
  end

  it "names the version where Rust is too old" do
    install_tool("cargo", "cargo 1.63.0")
    install_tool("rustc", "rustc 1.63.0 (4b91a6ea7 2022-08-08)")
    _, stderr, status = configure
    expect([status.exitstatus,
      stderr]).to match([1, %r{\Amemprof needs Rust 1\.\d+ or newer, and \S+/bin/rustc is 1\.63\. }])
    expect(File.exist?("Makefile")).to be(false)
  end

  it "writes a Makefile where all is there" do
    install_tool("cargo", "cargo 1.95.0")
    install_tool("rustc", "rustc 1.95.0 (f2d3ce0bd 2026-03-21)")
    expect(configure.status.exitstatus).to eq(0)
    expect(File.read("Makefile")).to include("--locked --release --package memprof")
  end

  it "is named by a checkout or gem that is not compiled" do
    FileUtils.mkdir_p("lib/memprof")
    FileUtils.cp(File.join(ChildRuby::LIB, "memprof/native.rb"), "lib/memprof")
    load = [RbConfig.ruby, "-Ilib", "-e", "require 'memprof/native'"]
    missing = /memprof is not compiled for Ruby \d\S+: run `/
    source = /gem install memprof --platform ruby`, which compiles it/
    library = "lib/memprof/memprof.#{RbConfig::CONFIG["DLEXT"]}"
    expect(run_command(*load).stderr).to match(/#{missing}#{source}/)
    # What is there, but can't be loaded, is another matter.
    FileUtils.touch(library)
    expect(run_command(*load).stderr).to match(/(?:file too short|not a mach-o).*: run `#{source}/i)
    FileUtils.rm(library)
    FileUtils.mkdir("ext")
    expect(run_command(*load).stderr).to match(/#{missing}gem pristine memprof`/)
    FileUtils.touch("Rakefile")
    expect(run_command(*load).stderr).to match(/#{missing}rake compile:release` in /)
  end
end
