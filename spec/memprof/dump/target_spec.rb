# frozen_string_literal: true

require "memprof/dump"
require "pathname"
require "pty"
require "socket"
require "tmpdir"

# Paths that name no regular file. Only rights of root would let a dump take the place of a device; the specs
# may have them.
RSpec.describe Memprof::Dump::Target do
  around { |example| Dir.mktmpdir { |directory| Dir.chdir(directory) { example.run } } }

  def dump(target, **options)
    Memprof.dump_all(target, **options)
  end

  def expect_whole(text)
    expect(JSON.parse(text.lines.first)["type"]).to eq("header")
    expect(JSON.parse(text.lines.last)["type"]).to eq("footer")
  end

  it "is written to, if it is a device, which stays one" do
    before = File.stat("/dev/null")
    [{}, { format: :binary }, { fork: true }, { compression: :gzip }].each do |options|
      result = dump("/dev/null", **options)
      expect([result.path, result.bytes > 10_000]).to eq([nil, true])
    end
    after = File.lstat("/dev/null")
    expect([after.ftype, after.ino, after.rdev]).to eq(["characterSpecial", before.ino, before.rdev])
    expect(Dir.glob("/dev/null*")).to eq(["/dev/null"])
  end

  it "is written to, if it is a pipe, when it has a reader" do
    File.mkfifo("pipe")
    reader = Thread.new { File.read("pipe") }
    dump("pipe")
    expect_whole(reader.value)
    expect([File.ftype("pipe"), Dir.children(".")]).to eq(["fifo", ["pipe"]])
  end

  it "can't be a directory, however it is spelt, or a socket, and says so" do
    Dir.mkdir("heap")
    File.symlink("heap", "link")
    ["heap", "heap/", "./heap", "link", Pathname("heap")].each do |path|
      expect { dump(path) }.to raise_error(Memprof::Error, /\Acannot write \S+: it is a directory\z/)
    end
    UNIXServer.open("socket") do
      expect { dump("socket") }
        .to raise_error(Memprof::Error, "cannot write socket: No such device or address")
    end
    expect(Dir.children(".").sort).to eq(%w[heap link socket])
  end

  it "is standard output by its names, also if the block before printed" do
    ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "/dev/../dev/stdout"].each do |name|
      stdout, stderr, = run_ruby("require 'memprof'; puts 'before'; Memprof.dump_all(#{name.inspect}); " \
                                 "puts 'after'")
      lines = stdout.lines(chomp: true)
      expect([stderr, lines.first, lines.last]).to eq(["", "before", "after"])
      expect_whole(lines[1..-2].join("\n"))
    end
    expect(File.symlink?("/dev/stdout")).to be(true)
  end

  it "is no link to a device or a pipe: that is neither followed nor replaced" do
    File.mkfifo("pipe")
    File.symlink("/dev/null", "null.json")
    File.symlink("pipe", "pipe.json")
    File.symlink("pipe.json", "twice.json")
    ran = false
    %w[null.json pipe.json twice.json].each do |name|
      refused = [Memprof::Error,
        "cannot write #{File.expand_path(name)}: it is a symbolic link to a device or a pipe; " \
        "give the path of its target"]
      expect { dump(name) }.to raise_error(*refused)
      expect { Memprof.dump(name) { ran = true } }.to raise_error(*refused)
      expect(File.symlink?(name)).to be(true)
    end
    expect([ran, Dir.children(".").size]).to eq([false, 4])
  end

  it "is no name of the system's, by whatever path it is reached" do
    File.symlink("/dev", "devices")
    code = <<~RUBY
      require "memprof"
      $stdout.reopen(ARGV.first) if ARGV.first
      ["/dev/stdin", "devices/stdout", "devices/fd/1"].each do |path|
        Memprof.dump_all(path)
      rescue Memprof::Error => e
        puts e.message
      end
    RUBY
    File.write("output", "")
    shown = [[], ["output"]].map { |args| run_ruby(code, args: args, chdir: Dir.pwd) }
    (shown.map(&:stdout).reject(&:empty?) + [File.read("output")]).each do |text|
      expect(text.lines).to all(match(/\Acannot write \S+: it is a symbolic link to a device or a pipe;/))
      expect(text.lines.size).to eq(3)
    end
    expect(shown.map(&:stderr)).to eq(["", ""])
    expect(%w[stdin stdout].map { |name| File.symlink?("/dev/#{name}") }).to eq([true, true])
  end

  it "is replaced, if it is a link to a file or to nothing" do
    File.write("victim", "mine")
    File.symlink("victim", "heap.json")
    File.symlink("nowhere", "other.json")
    %w[heap.json other.json].each do |name|
      dump(name)
      expect(File.lstat(name)).to be_file
      expect_whole(File.read(name))
    end
    expect(File.read("victim")).to eq("mine")
    expect(File.exist?("nowhere")).to be(false)
  end

  it "gets no dump that is no text, if it is the path of a terminal" do
    PTY.open do |_, terminal|
      [terminal.path, Pathname(terminal.path)].each do |path|
        expect { dump(path, format: :binary) }.to raise_error(ArgumentError, /binary dump to a terminal/)
        expect { Memprof.dump(path, compression: :zstd) { raise "not run" } }
          .to raise_error(ArgumentError, /compressed dump to a terminal/)
        expect(described_class.terminal?(path)).to be(true)
      end
      expect(File.lstat(terminal.path)).to be_chardev
    end
    expect(described_class.terminal?("/dev/null")).to be(false)
    expect(described_class.terminal?("heap.json")).to be(false)
  end
end
