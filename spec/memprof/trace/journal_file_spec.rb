# frozen_string_literal: true

require "memprof/trace/journal_file"
require "tmpdir"

RSpec.describe Memprof::Trace::JournalFile do
  let(:directory) { Dir.mktmpdir("memprof-spec-") }
  let!(:path) { File.join(directory, "requests.json") }

  after { FileUtils.rm_rf(directory) }

  def opened(**options)
    file = described_class.new(path, **options)
    yield file
  ensure
    file&.close
  end

  it "adds to the file that its path names, also after that was moved or removed" do
    opened do |file|
      file.append("one\n")
      File.rename(path, "#{path}.old")
      2.times { file.append("two\n") }
      File.unlink(path)
      file.append("three\n")
    end
    expect(File.read("#{path}.old")).to eq("one\n")
    expect(File.read(path)).to eq("three\n")
    expect(File.stat(path).mode & 0o777).to eq(0o600)
  end

  it "does so when the process has changed its directory" do
    Dir.chdir(directory) do
      file = described_class.new("relative.json")
      Dir.chdir("/") do
        File.unlink(File.join(directory, "relative.json"))
        file.append("one\n")
        file.close
      end
    end
    expect(File.read(File.join(directory, "relative.json"))).to eq("one\n")
  end

  it "says what is wrong if it can't be opened again, and continues when it can" do
    opened do |file|
      File.rename(directory, "#{directory}-away")
      expect { file.append("one\n") }.to raise_error(Memprof::Error, /no such directory:/)
      File.rename("#{directory}-away", directory)
      file.append("two\n")
    end
    expect(File.read(path)).to eq("two\n")
  end

  describe "with a greatest size" do
    it "renames a full file, and keeps one of these" do
      opened(max_size: 10) { |file| %w[aaaa bbbb cccc dddd eeee].each { |text| file.append("#{text}\n") } }
      expect([File.read(path), File.read("#{path}.1")]).to eq(["eeee\n", "cccc\ndddd\n"])
    end

    it "writes a line that is larger than that" do
      opened(max_size: 10) { |file| 2.times { expect(file.append("#{"a" * 20}\n")).to be(true) } }
      expect([File.size(path), File.size("#{path}.1")]).to eq([21, 21])
    end

    it "stops, if that is asked for, until the file is moved away" do
      opened(max_size: 10, when_full: :stop) do |file|
        expect(Array.new(3) { file.append("aaaa\n") }).to eq([true, true, false])
        expect([file.full?, File.read(path)]).to eq([true, "aaaa\naaaa\n"])
        File.rename(path, "#{path}.old")
        expect([file.full?, file.append("bbbb\n")]).to eq([false, true])
      end
      expect(File.read(path)).to eq("bbbb\n")
    end

    it "breaks no line of two processes that add to one file" do
      rest = "x" * 40
      writers = Array.new(2) do |number|
        fork do
          opened(max_size: 4000) { |file| 300.times { |line| file.append("#{number} #{line} #{rest}\n") } }
          exit!(0)
        ensure
          exit!(1)
        end
      end
      expect(writers.map { |pid| Process.wait2(pid).last.exitstatus }).to eq([0, 0])
      text = File.read(path) + File.read("#{path}.1")
      expect(text.lines).to all(match(/\A[01] \d+ x{40}\n\z/))
      expect(File.size("#{path}.1")).to be <= 4100
    end
  end

  describe "in a directory for all" do
    it "does not wait at a pipe that another user put there" do
      File.mkfifo(path)
      expect { described_class.new(path, own: true) }.to raise_error(Memprof::Error, /pipe without a reader/)
      expect { described_class.new(path) }.to raise_error(Memprof::Error, /pipe without a reader/)
    end

    it "refuses a pipe that is read, and sends nothing there" do
      File.mkfifo(path)
      reader = File.open(path, File::RDONLY | File::NONBLOCK)
      expect { described_class.new(path, own: true) }.to raise_error(Memprof::Error, /not a regular file/)
      expect(reader.read_nonblock(1, exception: false)).to be_nil
    ensure
      reader&.close
    end

    it "refuses a link, a second name of a file, and a device" do
      victim = File.join(directory, "precious")
      File.write(victim, "")
      File.symlink(victim, path)
      expect { described_class.new(path, own: true) }.to raise_error(Memprof::Error, /Too many levels/)
      File.unlink(path)
      File.link(victim, path)
      expect { described_class.new(path, own: true) }.to raise_error(Memprof::Error, /it has a second name/)
      expect {
        described_class.new("/dev/null", own: true)
      }.to raise_error(Memprof::Error, /not a regular file/)
      expect(File.size(victim)).to eq(0)
    end

    it "follows a link only of its own user or root", if: Process.euid.zero? do
      File.write(victim = File.join(directory, "precious"), "")
      File.symlink(victim, path)
      opened { |file| file.append("mine\n") }
      File.lchown(65_534, nil, path)
      expect { described_class.new(path) }.to raise_error(Memprof::Error, /it is a link of another user/)
      expect(File.read(victim)).to eq("mine\n")
    end

    it "refuses them also when they come in the place of the file" do
      opened(own: true) do |file|
        file.append("one\n")
        File.unlink(path)
        File.mkfifo(path)
        expect { file.append("two\n") }.to raise_error(Memprof::Error, /pipe without a reader/)
      end
    end
  end

  it "writes to a pipe that its user names, however slow the reader is" do
    File.mkfifo(path)
    reader = File.open(path, File::RDONLY | File::NONBLOCK)
    read = Thread.new { reader.wait_readable && reader.read(1_000_001) }
    opened { |file| file.append("#{"a" * 1_000_000}\n") }
    expect(read.value.bytesize).to eq(1_000_001)
  ensure
    reader&.close
  end
end
