# frozen_string_literal: true

require "pathname"
require "tempfile"

RSpec.describe Memprof::Output do
  around { |example| Dir.mktmpdir { |directory| Dir.chdir(directory) { example.run } } }

  def mode(path)
    format("%o", File.stat(path).mode & 0o777)
  end

  describe "a path" do
    it "becomes a file that only its owner can read" do
      expect(described_class.write("report.txt", "done\n")).to be_nil
      expect(File.read("report.txt")).to eq "done\n"
      expect(mode("report.txt")).to eq "600"
    end

    it "may be anything with a path" do
      described_class.write(Pathname("report.txt"), "done\n")
      expect(File.read("report.txt")).to eq "done\n"
    end

    it "returns the block's value" do
      expect(described_class.open("report.txt") { |io| io.write("done") && :value }).to eq :value
    end

    it "takes any bytes as they are" do
      described_class.write("report.gz", "\x1F\x8B\xFFä\r\n".b)
      expect(File.binread("report.gz")).to eq "\x1F\x8B\xFFä\r\n".b
    end

    it "is written atomically" do
      described_class.open("report.txt") do |io|
        io.write("half")
        io.flush
        expect(File.exist?("report.txt")).to be false
        expect(mode(Dir.glob(".memprof-*").fetch(0))).to eq "600"
      end
      expect(Dir.children(".")).to eq ["report.txt"]
    end

    it "replaces an existing file at once" do
      File.write("report.txt", "old")
      old = File.open("report.txt")
      described_class.open("report.txt") do |io|
        io.write("new")
        expect(File.read("report.txt")).to eq "old"
      end
      expect([File.read("report.txt"), old.read]).to eq %w[new old]
    end

    it "leaves what was there if the block fails" do
      File.write("report.txt", "old")
      expect { described_class.open("report.txt") { |io| io.write("half") && raise("no") } }
        .to raise_error "no"
      expect(Dir.children(".")).to eq ["report.txt"]
      expect(File.read("report.txt")).to eq "old"
    end

    it "leaves no half file if the block is left" do
      catch(:done) { described_class.open("report.txt") { throw :done } }
      expect(Dir.children(".")).to be_empty
    end

    it "replaces a symbolic link and not what it points to" do
      File.write("precious", "old")
      File.symlink("precious", "report.txt")
      described_class.write("report.txt", "new")
      expect([File.read("precious"), File.symlink?("report.txt")]).to eq ["old", false]
    end

    it "may have a name of the greatest length" do
      name = "r" * 255
      described_class.write(name, "done")
      expect(File.read(name)).to eq "done"
    end

    it "in a missing directory is an error that says so" do
      expect { described_class.write("missing/report.txt", "done") }
        .to raise_error(Memprof::Error, "cannot write missing/report.txt: no such directory: missing")
    end

    it "that is a directory is an error that says so" do
      Dir.mkdir("reports")
      expect { described_class.write("reports", "done") }
        .to raise_error(Memprof::Error, "cannot write reports: it is a directory")
    end

    it "that can't be renamed leaves nothing behind" do
      allow(File).to receive(:rename).and_raise(Errno::EACCES)
      expect { described_class.write("report.txt", "done") }
        .to raise_error(Memprof::Error, "cannot write report.txt: Permission denied")
      expect(Dir.children(".")).to be_empty
    end

    it "may have a name that is not valid UTF-8" do
      described_class.write("report \xFF", "done")
      expect(Dir.children(".").map(&:b)).to eq(["report \xFF".b])
    end

    it "that is no path is an ArgumentError" do
      expect { described_class.write("", "done") }.to raise_error(ArgumentError, /path is empty/)
      expect { described_class.write("a\0b", "done") }.to raise_error(ArgumentError, /null byte/)
      expect { described_class.write(42, "done") }
        .to raise_error(ArgumentError, "path_or_io must be a path or an IO, not 42")
    end
  end

  describe "a device, a pipe or a stream" do
    it "is written to, and stays what it is" do
      described_class.write(File::NULL, "done")
      expect(File.stat(File::NULL)).to be_chardev
    end

    it "that is full is an error that says so", if: File.exist?("/dev/full") do
      expect { described_class.write("/dev/full", "done") }
        .to raise_error(Memprof::Error, "cannot write /dev/full: No space left on device")
      expect(File.stat("/dev/full")).to be_chardev
    end

    it "is a pipe with a reader" do
      File.mkfifo("pipe")
      reader = Thread.new { File.read("pipe") }
      described_class.write("pipe", "done")
      expect([reader.value, File.stat("pipe").pipe?]).to eq ["done", true]
    end

    it "adds to the process's own output, also where that is a file" do
      code = 'puts "before"; Memprof::Output.write("/dev/stdout", "report\n"); puts "after"'
      code = "module Memprof; end; require #{File.join(ChildRuby::LIB, "memprof/output").inspect}; #{code}"
      File.open("log", "w") { |log| system(RbConfig.ruby, "-e", code, out: log, exception: true) }
      expect(File.read("log")).to eq "before\nreport\nafter\n"
      expect(File.symlink?("/dev/stdout")).to be true
    end
  end

  describe "an io" do
    it "is written to and stays open" do
      io = StringIO.new
      described_class.write(io, "done\n")
      expect([io.string, io.closed?]).to eq ["done\n", false]
    end

    it "need only take `write`" do
      written = []
      io = Class.new { define_method(:write) { |text| written << text } }.new
      described_class.write(io, "done")
      expect(written).to eq ["done"]
    end

    it "may be a file, which is not replaced" do
      File.open("log", "w") do |file|
        file.write("before\n")
        described_class.write(file, "report\n")
        expect(File.read("log")).to eq "before\nreport\n"
      end
    end

    it "may be a Tempfile" do
      Tempfile.create("report") do |file|
        described_class.write(file, "report")
        expect(File.read(file.path)).to eq "report"
      end
    end

    it "on a full disk is an error at once, not when the process ends", if: File.exist?("/dev/full") do
      full = File.open("/dev/full", "w")
      expect { described_class.write(full, "done") }
        .to raise_error(Memprof::Error, "cannot write to /dev/full: No space left on device")
    ensure
      expect { full.close }.to raise_error(Errno::ENOSPC) # what is left in its buffer
    end

    it "that is closed is an error, whose cause the caller may ignore" do
      reader, writer = IO.pipe
      reader.close
      expect { described_class.write(writer, "done") }
        .to raise_error(Memprof::Error, "cannot write to IO: Broken pipe") { |error|
          expect(error.cause).to be_a(Errno::EPIPE)
        }
    end

    it "that is closed is an error that says so" do
      closed = File.open("log", "w").tap(&:close)
      expect { described_class.write(closed, "done") }
        .to raise_error(Memprof::Error, "cannot write to log: closed stream")
    end
  end

  describe ".check_format" do
    it "finds a format by its name" do
      expect(described_class.check_format("json", %i[text json])).to eq :json
      expect(described_class.check_format(:text, %i[text json])).to eq :text
    end

    it "lists the formats that exist" do
      expect { described_class.check_format(:xml, %i[text json]) }
        .to raise_error(ArgumentError, "unknown format :xml; expected one of: text, json")
    end
  end
end
