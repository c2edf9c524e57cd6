# frozen_string_literal: true

require "memprof/library"
require "memprof/cli"
require "socket"
require "time"
require "tmpdir"

RSpec.describe Memprof::Library do
  include HeapDumps

  let(:root) { Dir.mktmpdir("memprof-spec-") }
  let(:directory) { File.join(root, "deep/library") }
  let(:library) { described_class.new(directory) }

  after { FileUtils.rm_rf(root) }

  def take(library, dump = cache_dump, app: "shop", **options)
    library.take(app: app, **options) { |part| IO.copy_stream(dump, part) }
  end

  def files
    Dir.children(directory).sort - [".lock"]
  end

  it "keeps a dump with what it says of itself" do
    entry = take(library, name: "before the release")
    expect(described_class.new(directory).map(&:to_h)).to eq([entry.to_h])
    expect(entry.to_h).to include(name: "before the release", app: "shop", pid: be > 1,
      host: Socket.gethostname, size: File.size(cache_dump), objects: be > 1000, ruby: RUBY_VERSION)
    expect(Time.now - Time.iso8601(entry.to_h[:added])).to be < 60
    expect(FileUtils.identical?(entry.path, cache_dump)).to be(true)
    expect(files).to eq(["#{entry.number}-shop.memprof", "#{entry.number}-shop.memprof.memprof-index",
      "#{entry.number}.about.json"])
    modes = ["#{root}/deep/library", *files.map { |name| File.join(directory, name) }]
      .map { |path| File.stat(path).mode & 0o777 }
    expect(modes).to eq([0o700, 0o600, 0o600, 0o600])
  end

  it "stores the index that was built when the dump was opened" do
    entry = take(library)
    before = File.stat("#{entry.path}.memprof-index").ino
    Memprof::Heap.open(entry.path)
    expect(File.stat("#{entry.path}.memprof-index").ino).to eq(before)
  end

  it "names files after what they are, and never by what a client says" do
    entry = take(library, app: "../../etc/passwd\0\n<b>", name: "\e[31m\u202Ered" + "x" * 200)
    expect(entry.path).to match(%r{\A#{directory}/\d{13}-_etc_passwd_x00_n_b_\.memprof\z})
    expect(entry.app).to eq('../../etc/passwd\x00\n<b>')
    expect(entry.name).to start_with('\e[31m\u202Ered').and have_attributes(length: 100)
    expect(take(library, app: " ").app).to eq("unnamed")
    expect(take(library, app: "\xFF\xFE").app).to eq('\xFF\xFE')
    expect(Dir.children(root)).to eq(["deep"])
  end

  it "finds, renames and deletes" do
    first, second = Array.new(2) { take(library) }
    expect(library.map(&:number)).to eq([second.number, first.number])
    library.rename(first.number, "the first", app: "other")
    expect(library.find(first.number)).to have_attributes(name: "the first", app: "other", path: first.path)
    library.rename(first.number, "renamed")
    expect(library.find(first.number)).to have_attributes(name: "renamed", app: "other")
    expect([library.delete(first.number), library.delete(first.number)]).to eq([true, false])
    expect([library.find(first.number), library.rename(first.number, "gone")]).to eq([nil, nil])
    expect(files.grep(/#{first.number}/)).to be_empty
    expect(library.map(&:number)).to eq([second.number])
  end

  it "keeps nothing that is no dump" do
    [__FILE__, File::NULL].each do |file|
      expect { take(library, file) }.to raise_error(Memprof::InvalidDump)
    end
    gone = ->(_part) { raise IOError, "gone" }
    expect { library.take(app: "shop", &gone) }.to raise_error(IOError, "gone")
    expect(files).to be_empty
  end

  it "refuses what is too large, while it comes" do
    size = File.size(cache_dump)
    expect { take(library, limit: size - 1) }.to raise_error(described_class::TooLarge, /a dump may have/)
    expect { library.take(app: "a", limit: 10) { |part| part.expect(11) } }
      .to raise_error(described_class::TooLarge)
    expect(files).to be_empty
    expect(take(library, limit: size).size).to eq(size)
  end

  it "refuses what becomes too large without its compression" do
    stub_const("Memprof::Library::UNPACKED_BYTES", 1000)
    stub_const("Memprof::Library::UNPACKED_TIMES", 1)
    expect { take(library, limit: 1 << 30) }
      .to raise_error(described_class::TooLarge,
        /this dump is too large: unpacked, it is larger than the limit/)
    expect(files).to be_empty
    expect(take(library).size).to eq(File.size(cache_dump))
  end

  it "refuses what there is no room for, and deletes nothing" do
    take(library)
    full = described_class.new(directory, max_size: library.size + 1000)
    expect(full.room).to eq(1000)
    expect { take(full) }.to raise_error(described_class::Full, /it has room for 1000 B/)
    # The dump alone would fit, but not with its index.
    tight = described_class.new(directory, max_size: library.size + File.size(cache_dump) + 1000)
    expect { take(tight) }.to raise_error(described_class::Full, /delete dumps, or raise --max-size/)
    expect(library.count).to eq(1)
    expect(files.size).to eq(3)
  end

  it "gives each of many that come at once a number of its own" do
    threads = Array.new(6) { Thread.new { take(described_class.new(directory)).number } }
    numbers = threads.map(&:value)
    expect(numbers.uniq.size).to eq(6)
    expect(library.map(&:number)).to match_array(numbers)
    expect(files.size).to eq(18)
  end

  it "leaves nothing half on a disk that is full" do
    with_file_system("size=#{File.size(cache_dump) - 20_000}") do |place|
      library = described_class.new(place)
      expect { take(library) }.to raise_error(Memprof::Error, /No space left on device/)
      expect(Dir.children(place)).to eq([".lock"])
    end
    # With room for the dump, but not for its facts.
    with_file_system("nr_inodes=3,size=100m") do |place|
      library = described_class.new(place)
      expect { take(library) }.to raise_error(Memprof::Error, /No space left on device/)
      expect(Dir.children(place)).to eq([".lock"])
    end
  end

  it "removes what a killed process left, and not what is being written" do
    part = File.join(directory, ".part-0123456789abcdef")
    library
    [part, "#{part}.memprof-index"].each { |path| File.write(path, "half") }
    described_class.new(directory)
    expect(files).to be_empty
    library.take(app: "shop") do |open|
      IO.copy_stream(cache_dump, open)
      described_class.new(directory)
      expect(File.exist?(open.path)).to be(true)
    end
    expect(library.count).to eq(1)
  end

  it "shows a dump whose description is lost or nonsense" do
    entry = take(library)
    about = File.join(directory, "#{entry.number}.about.json")
    ["{", "[]", "null", "\xFF", '{"name":null,"path":"/etc/passwd"}'].each do |text|
      File.binwrite(about, text)
      expect(library.first).to have_attributes(name: "shop", app: "shop", path: entry.path), text
    end
    File.unlink(about)
    expect(library.first.to_h).to include(name: "shop", objects: nil, size: entry.size)
  end

  it "sees no link, and no file of another kind" do
    entry = take(library)
    File.symlink("/etc/passwd", File.join(directory, "1111111111111-a.memprof"))
    FileUtils.cp(entry.path, File.join(directory, "notes.memprof"))
    Dir.mkdir(File.join(directory, "2222222222222-a.memprof"))
    expect(library.map(&:number)).to eq([entry.number])
  end

  it "has a default directory" do
    {
      { "MEMPROF_LIBRARY" => "/srv/dumps", "XDG_DATA_HOME" => "/data" } => "/srv/dumps",
      { "MEMPROF_LIBRARY" => "", "XDG_DATA_HOME" => "/data", "HOME" => "/home/ann" } => "/data/memprof",
      { "XDG_DATA_HOME" => "relative", "HOME" => "/home/ann" } => "/home/ann/.local/share/memprof"
    }.each { |env, place| expect(described_class.default_directory(env)).to eq(place) }
    expect { described_class.default_directory({}) }.to raise_error(Memprof::Error, /set MEMPROF_LIBRARY/)
  end

  it "says why it can't be used" do
    File.write(File.join(root, "file"), "")
    expect { described_class.new(File.join(root, "file")) }
      .to raise_error(Memprof::Error, /cannot store dumps in/)
    with_file_system("ro") do |place|
      expect { described_class.new(place) }.to raise_error(Memprof::Error, /Read-only file system/)
    end
  end

  it "neither counts nor keeps an index whose writer was killed" do
    entry = take(library)
    size = library.size
    left = "#{entry.path}.memprof-index.4711.IN_PROGRESS"
    written = "#{entry.path}.memprof-index.4712.IN_PROGRESS"
    [left, written].each { |path| File.write(path, "half" * 1000) }
    expect(library.size).to eq(size)
    File.open(written) do |writer|
      writer.flock(File::LOCK_EX)
      described_class.new(directory)
      expect([File.exist?(left), File.exist?(written)]).to eq([false, true])
    end
    expect(described_class.new(directory).size).to eq(size)
    expect(files.grep(/IN_PROGRESS/)).to eq([])
  end

  it "does not wait at pipes in its directory" do
    library
    File.mkfifo(File.join(directory, ".part-#{"a" * 16}"))
    expect(described_class.new(directory).to_a).to eq([])
  end

  describe Memprof::CLI::Web::LibraryServer::Key do
    let(:library) { Memprof::Library.new(directory) }

    before { library }

    it "is created once, for its owner alone" do
      key, made = described_class.of(directory)
      expect([made, key.length]).to match([true, be >= 32])
      expect(described_class.of(directory)).to eq([key, false])
      expect(File.stat(described_class.path(directory)).mode & 0o777).to eq(0o600)
    end

    it "is not taken if others may read it, nor if it is a link or too short" do
      path = described_class.path(directory)
      described_class.of(directory)
      File.chmod(0o644, path)
      expect { described_class.of(directory) }.to raise_error(Memprof::Error, /chmod 600/)
      File.write(path, "short", perm: 0o600)
      File.chmod(0o600, path)
      expect { described_class.of(directory) }.to raise_error(Memprof::Error, /too short/)
      File.unlink(path)
      File.symlink("/etc/hostname", path)
      expect { described_class.of(directory) }.to raise_error(Memprof::Error, /cannot read/)
      File.unlink(path)
      File.mkfifo(path, 0o600)
      expect { described_class.of(directory) }.to raise_error(Memprof::Error, /not a regular file/)
    end
  end
end
