# frozen_string_literal: true

require "memprof/dump"

RSpec.describe Memprof::Dump::Options do
  def options(...)
    options = described_class.new(...)
    [options.format, options.compression]
  end

  {
    nil => %i[memprof none], "heap.json" => %i[memprof none], "heap" => %i[memprof none],
    "heap.json.gz" => %i[memprof gzip], "heap.json.zst" => %i[memprof zstd],
    "heap.memprof" => %i[binary none],
    "dir.gz/heap.json" => %i[memprof none], ".gz" => %i[memprof gzip]
  }.each do |path, expected|
    it "takes format and compression from the file's ending: #{path.inspect}" do
      expect(options(path)).to eq(expected)
    end
  end

  it "prefers what is requested" do
    expect(options("heap.memprof", format: :objspace)).to eq(%i[objspace none])
    expect(options("heap.json", format: "binary")).to eq(%i[binary none])
    expect(options("heap.json.gz", compression: :none)).to eq(%i[memprof none])
    expect(options(nil, compression: "zstd")).to eq(%i[memprof zstd])
  end

  it "refuses to compress twice" do
    expect { options("heap.memprof.gz") }.to raise_error(ArgumentError,
      "heap.memprof.gz: the binary format is compressed already; leave out gzip")
    expect { options("heap.gz", format: :binary) }.to raise_error(ArgumentError, /already; leave out gzip/)
    expect { options(nil, format: :binary, compression: :zstd) }.to raise_error(ArgumentError, /out zstd/)
  end

  it "names what there is, for a word that there is not" do
    expect { options(nil, format: :xml) }.to raise_error(ArgumentError,
      "unknown format :xml; expected one of: memprof, objspace, binary, heap_dump")
    expect { options(nil, values: :some) }.to raise_error(ArgumentError,
      "unknown values :some; expected one of: full, truncate, hash, length, none")
    expect { options(nil, compression: :xz) }.to raise_error(ArgumentError,
      "unknown compression :xz; expected one of: none, gzip, zstd")
  end

  it "says whether contents are shown" do
    shown = described_class::VALUES.select { |values| described_class.new(values: values).contents? }
    expect(shown).to eq(%i[full truncate])
  end

  it "gives the ending that files are to have" do
    expect(described_class.new.ending).to eq(".json")
    expect(described_class.new(compression: :gzip).ending).to eq(".json.gz")
    expect(described_class.new(compression: :zstd).ending).to eq(".json.zst")
    expect(described_class.new(format: :binary).ending).to eq(".memprof")
  end
end
