# frozen_string_literal: true

require "json"
require "stringio"
require "tempfile"
require "tmpdir"
require_relative "heap/shop"

RSpec.describe Memprof::Heap do
  let(:heap) { Shop.heap }

  describe ".open" do
    it "yields the stages to a block" do
      stages = []
      described_class.open(Shop.dumps.last, index: false) { |*stage| stages << stage }
      expect(stages).to all(match([a_kind_of(Symbol), a_kind_of(Integer), a_kind_of(Integer).or(be_nil)]))
    end

    it "opens a dump on a full disk, without an index" do
      dump = Shop.dumps.last
      with_file_system("size=#{File.size(dump) + 8192}") do |directory|
        path = File.join(directory, "heap.json")
        FileUtils.cp(dump, path)
        expect(described_class.open(path).size).to eq(described_class.open(dump, index: false).size)
        expect(Dir.children(directory)).to eq(["heap.json"])
      end
    end

    it "leaves an index only if allowed, and answers the same from it" do
      Dir.mktmpdir do |directory|
        path = File.join(directory, "heap.memprof")
        FileUtils.cp(Shop.dumps.first, path)
        sizes = [false, true, true].map do |index|
          heap = described_class.open(path, index: index)
          [heap.size, heap.strings.sum(:size), heap.source[:path], File.exist?("#{path}.memprof-index")]
        end
        expect(sizes).to match([[*sizes[0][0..2], false], [*sizes[0][0..2], true], [*sizes[0][0..2], true]])
      end
    end

    it "takes a Pathname" do
      require "pathname"
      expect(described_class.open(Pathname(Shop.dumps.first), index: false).size).to eq(heap.size)
    end

    it "says which file it can't read, and why" do
      expect { described_class.open("/nowhere/heap.json") }
        .to raise_error(Memprof::Error, "cannot read /nowhere/heap.json: No such file or directory")
      expect { described_class.open(__FILE__, index: false) }.to raise_error(Memprof::InvalidDump,
        /\Acannot read .+heap_spec\.rb: this is not a heap dump; line 1: .*; Memprof\.dump_all, .+ dumps\z/)
      expect { described_class.read(StringIO.new("{}\n")) }
        .to raise_error(Memprof::InvalidDump, /\Acannot read the dump: this is not a heap dump; line 1: /)
      expect { described_class.open(nil) }.to raise_error(TypeError)
    end

    it "names compressions that it does not read, and what undoes them" do
      { "\xFD7zXZ\x00rest".b => /it is compressed with xz: run `xz -d`/,
        "BZh91AY&SY".b => /it is compressed with bzip2: run `bzip2 -d`/,
        "\x04\x22\x4D\x18rest".b => /compressed with lz4: run `lz4 -d`/,
        "PK\x03\x04rest".b => /compressed with zip: run `unzip`/ }.each do |bytes, problem|
        Tempfile.create("memprof-spec") do |file|
          File.binwrite(file.path, bytes)
          expect { described_class.open(file.path) }.to raise_error(Memprof::InvalidDump, problem)
        end
      end
    end
  end

  describe ".read" do
    it "reads pipes, files and what is only like an IO" do
      path = Shop.dumps.last
      sizes = [
        IO.popen(["cat", path], "rb") { |pipe| described_class.read(pipe) },
        File.open(path, "rb") { |file| described_class.read(file) },
        described_class.read(StringIO.new(File.binread(path)))
      ].map(&:size)
      expect(sizes.uniq).to eq([Shop.heaps.last.size])
    end

    it "reads what another thread is still writing" do
      reader, writer = IO.pipe
      bytes = File.binread(Shop.dumps.last)
      thread = Thread.new do
        bytes.chars.each_slice(bytes.size / 3) { |part| writer.write(part.join) && sleep(0.01) }
        writer.close
      end
      expect(described_class.read(reader).size).to eq(Shop.heaps.last.size)
      thread.join
    end

    it "wants something to read" do
      expect { described_class.read(3) }.to raise_error(ArgumentError, "io must be an IO, not 3")
    end
  end

  describe "#ask" do
    it "answers hashes with symbols" do
      answer = heap.ask("histogram", by: "class", where: "class = Session")
      expect(answer[:rows].first).to include(key: "Session", count: 100)
      expect(heap.ask(:histogram, by: :class, where: "class = Session")).to eq(answer)
    end

    it "takes objects for their numbers" do
      session = heap.where("class = Session").first
      expect(heap.ask(:object, of: session)[:address]).to eq(session.address)
    end

    it "says what is wrong" do
      expect { heap.ask(:nonsense) }.to raise_error(ArgumentError, "no such question: \"nonsense\"")
      expect { heap.ask(:histogram, bye: 1) }.to raise_error(ArgumentError, /unknown field `bye`/)
      expect { heap.ask(:histogram, where: "class = = 3") }
        .to raise_error(ArgumentError, /\nclass = = 3\n        \^\z/)
      expect { heap.ask(:object, of: "0x1") }.to raise_error(ArgumentError, "no object has the address 0x1")
      expect { heap.ask(:leaks, threshold: Float::NAN) }.to raise_error(ArgumentError)
    end
  end

  it "finds objects by address, number and name of a root" do
    session = heap.where("class = Session").first
    expect(heap.at(session.address)).to eq(session)
    expect(heap.at(session.address.hex)).to eq(session)
    expect(heap.at("vm")).to be_root
    expect([heap.at("0x8"), heap.at("nothing")]).to eq([nil, nil])
    expect(heap[session.id]).to eq(session)
    expect { heap[-1] }.to raise_error(RangeError)
    expect { heap[2**31] }.to raise_error(IndexError)
  end

  it "has the questions under names of their own" do
    expect(heap.overview[:objects][:count]).to eq(heap.size)
    expect(heap.stats.keys).to eq(heap.overview.keys)
    holders = heap.leaks(threshold: 3)[:findings].map { |finding| finding[:retained_by].join }
    expect(holders).to include(/Cache::STORE/)
    expect(heap.histogram(by: :type, limit: 2)[:rows].size).to eq(2)
    expect(heap.duplicates(where: "length = 1000")).to be_a(Hash)
    expect(heap.tree(of: heap.where("class = Session").first, depth: 1)[:branches].size).to eq(2)
    expect(heap.paths("class = Session")).to include(objects: 100, unreachable: 0)
    expect(heap.top(2).map(&:retained)).to eq(heap.objects.map(&:retained).max(2))
  end

  it "exports, to files and to what is only like an IO" do
    Dir.mktmpdir do |directory|
      path = File.join(directory, "sessions.dot")
      counts = heap.export(path, where: "class = Session", limit: 5)
      expect(counts).to include(objects: 5)
      expect(File.read(path)).to start_with("digraph")
      out = StringIO.new
      heap.export(out, format: :dot, where: "class = Session", limit: 5)
      expect(out.string).to eq(File.read(path))
      expect { heap.export(path, format: :pdf) }
        .to raise_error(ArgumentError, /unknown format :pdf; expected one of: .*gml/)
      expect { heap.export(File.join(directory, "x")) }
        .to raise_error(ArgumentError, /no format given; expected one of: /)
      expect { heap.export(path, where: "clas = A") }.to raise_error(ArgumentError, /did you mean class/)
    end
  end

  it "is frozen, and has a size" do
    require "objspace"
    expect(heap).to be_frozen
    expect(ObjectSpace.memsize_of(heap.native)).to be > heap.size * 20
    expect(heap.inspect).to eq("#<Memprof::Heap (#{heap.size} objects)>")
    expect(heap.source).to include(format: "binary", truncated: false, skipped: 0)
  end
end
