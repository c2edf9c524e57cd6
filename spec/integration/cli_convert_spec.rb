# frozen_string_literal: true

require "json"
require "memprof"
require "memprof/dump"
require "tmpdir"

RSpec.describe "memprof convert" do
  around { |example| Dir.mktmpdir { |directory| Dir.chdir(directory) { example.run } } }

  def dump(path, code = "", options = "")
    _, stderr, status = run_ruby("require \"memprof\"\n#{code}\nMemprof.dump_all(#{path.dump}#{options})",
      chdir: Dir.pwd)
    raise stderr unless status.success?
  end

  def convert(*arguments, **options)
    run_memprof("convert", *arguments, **options)
  end

  it "turns one format into another, and back" do
    dump("heap.memprof", '$kept = "kept %d" % 1')
    _, stderr, status = convert("heap.memprof", "heap.json.gz")
    expect([stderr, status.exitstatus]).to match([/\Amemprof: [\d,]+ objects, [\d.]+ [KM]iB\n\z/, 0])
    convert("heap.json.gz", "heap.json")
    expect(expect_whole("heap.json").map { |record| record["data"] }).to include("kept 1")
    convert("-f", "objspace", "heap.json", "heap.objspace")
    expect(File.readlines("heap.objspace").map { |line|
             JSON.parse(line)
           }).to include(a_hash_including("value" => "kept 1"))
    expect(File.stat("heap.objspace").mode & 0o777).to eq(0o600)
  end

  it "takes names of any bytes, in any locale" do
    dump("heap.memprof")
    ["h\u00e9.memprof", "h\xE9.memprof".b].each do |name|
      File.rename(Dir["h*.memprof"].first, name)
      _, stderr, status = convert(name, "heap.json", env: { "LC_ALL" => "C" })
      expect([stderr.lines.size, status.exitstatus]).to eq([1, 0]), stderr
      File.unlink("heap.json")
    end
  end

  it "reads the arrays of heap_dump, and lines of memprof 0.3" do
    dump("heap.json", "", ", format: :heap_dump")
    _, stderr, status = convert("heap.json", "back.json")
    expect([stderr.lines.size, status.exitstatus]).to eq([1, 0])
    expect(expect_whole("back.json").size).to be > 1000
    object = { _id: "0x15e5018", type: "string", class: "0x15e4ed8", length: 3, data: "old", code: 7 }
    File.write("old.json", "#{JSON.generate(object)}\n")
    convert("old.json", "new.json")
    expected = { "_id" => "0x15e5018", "data" => "old", "code" => 5 }
    expect(expect_whole("new.json")).to include(a_hash_including(expected))
  end

  it "takes contents out" do
    dump("heap.json", '$kept = "secret %d" % 12')
    convert("--contents", "none", "heap.json", "bare.json")
    expect([File.read("heap.json").include?("secret 12"), File.read("bare.json").include?("secret 12")])
      .to eq([true, false])
  end

  it "reads stdin and writes stdout" do
    dump("heap.json")
    stdout, = convert("--format", "objspace", "-", "-", input: File.read("heap.json"))
    expect(stdout.lines.map { |line| JSON.parse(line) }.size).to be > 1000
    result = run_command("sh", "-c", '"$@" | head -1', "sh", RbConfig.ruby, "-I#{ChildRuby::LIB}",
      File.join(ChildRuby::ROOT, "exe/memprof"), "convert", "heap.json", "-")
    expect(result.stdout.lines.size).to eq(1)
    expect(result.stderr.lines.size).to eq(1)
  end

  it "replaces a file only with --force" do
    dump("heap.json")
    File.write("other.json", "mine")
    stdout, stderr, status = convert("heap.json", "other.json")
    expect([stdout, stderr,
      status.exitstatus]).to eq(["", "memprof: other.json already exists; use --force to replace it\n", 2])
    expect(File.read("other.json")).to eq("mine")
    convert("--force", "heap.json", "other.json")
    expect_whole("other.json")
  end

  it "says what is wrong with a file, in one line, and leaves none" do
    File.write("nonsense.json", "no dump at all\n" * 10)
    File.write("empty.json", "")
    %w[nonsense.json empty.json].each do |name|
      stdout, stderr, status = convert(name, "out.json")
      expect(stderr).to match(/\Amemprof: cannot convert #{name}: .+\n\z/)
      expect([stdout, status.exitstatus]).to eq(["", 2])
    end
    options = Memprof::Dump::Options.new(nil, format: :objspace).to_native
    File.open(File::NULL, "w") do |file|
      expect { Memprof.const_get(:Native).convert("empty.json", file.fileno, options) }
        .to raise_error(Memprof::InvalidDump, "the file is empty")
    end
    expect(Dir.children(".")).to match_array(%w[nonsense.json empty.json])
  end

  it "names both files where there is no room for the new one" do
    dump("heap.json")
    with_file_system("size=64k") do |directory|
      _, stderr, status = convert("heap.json", "#{directory}/heap.memprof")
      expect([stderr, status.exitstatus, Dir.children(directory)]).to eq(
        ["memprof: cannot convert heap.json to #{directory}/heap.memprof: No space left on device\n", 2, []]
      )
    end
  end

  # A trap interrupts the thread that waits, which is no reason to give up.
  it "continues when signals are handled meanwhile" do
    dump("heap.json")
    _, stderr, status = run_ruby(<<~RUBY, chdir: Dir.pwd)
      require "memprof"
      require "memprof/dump"
      trap(:USR1) {}
      Thread.new { loop { Process.kill(:USR1, Process.pid) && sleep(0.0001) } }
      options = Memprof::Dump::Options.new(nil, format: :objspace).to_native
      20.times do
        File.open("out.json", "w") { |file| Memprof.const_get(:Native).convert("heap.json", file.fileno, options) }
      end
    RUBY
    expect([stderr, status.exitstatus]).to eq(["", 0])
  end

  it "counts lines that are no dump, and says that a dump is cut" do
    dump("heap.json")
    lines = File.readlines("heap.json")
    File.write("cut.json", [*lines.first(500), "nonsense\n", *lines[500, 500]].join)
    _, stderr, status = convert("cut.json", "out.json")
    expect(status.exitstatus).to eq(0)
    expect(stderr).to start_with("memprof: skipped 1 invalid line, the first is line 501\n")
    expect(stderr).to include("memprof: the dump is truncated")
  end

  {
    "no files" => [[], /expected two files/], "one file" => [%w[a], /expected two files/],
    "no such file" => [%w[nowhere.json out.json], /cannot read nowhere.json/],
    "a directory" => [%w[/ out.json], %r{cannot read /}],
    "a target in no directory" => [%w[/dev/null no/out.json], %r{cannot write OUT no/out.json: no such dir}],
    "an unknown format" => [%w[-f xml a b],
      /invalid --format "xml"; expected one of: memprof, objspace, binary, heap_dump/]
  }.each do |situation, (arguments, message)|
    it "refuses #{situation}" do
      stdout, stderr, status = convert(*arguments)
      expect(stderr).to match(/\Amemprof: .*#{message}.*\n\z/)
      expect([stdout, status.exitstatus]).to eq(["", 2])
    end
  end
end
