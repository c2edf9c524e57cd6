# frozen_string_literal: true

require "fileutils"
require "memprof/heap"
require "tmpdir"

# Files for programs that no spec can run: Gephi wants a display, mongoimport a server.
# A library that reads Gephi's formats, and the rules of MongoDB's manual, stand for them.
RSpec.describe "exports of a heap that Python reads" do
  hostile = [
    "quote\" back\\slash", "nul\0 bell\a", "\u2028 \u{1f600}", "\xff\xfe", "\xed\xa0\x80", "$oid", "a.b",
    "<&>]]>", "x" * 5000
  ].freeze

  # Texts of all kinds, also as keys of hashes, and an object with more references than a document takes.
  before(:all) do
    python = system("python3", "--version", out: File::NULL, err: File::NULL)
    skip "needs python3" unless python

    @kept = [hostile.map(&:dup), hostile.to_h { |text| [text.dup, { text.dup => Object.new }] },
      Array.new(300_000) { "many" }]
    @directory = Dir.mktmpdir("memprof-heap-files")
    dump = File.join(@directory, "heap.memprof")
    GC.start
    Memprof.dump_all(dump)
    heap = Memprof::Heap.open(dump)
    heap.export(File.join(@directory, "heap.jsonl"), format: :mongo)
    %i[gml gexf].each do |format|
      heap.export(File.join(@directory, "heap.#{format}"), format: format, limit: 2_000)
    end
  end

  after(:all) { FileUtils.rm_rf(@directory) if @directory }

  def python(script, argument)
    run_command(ENV.fetch("PYTHON", "python3"), File.join(__dir__, script), argument, timeout: 300)
  end

  it "are graphs to networkx, with the objects and references of the heap: GML and GEXF" do
    result = python("heap_graphs.py", @directory)
    skip(result.stdout.chomp) if result.status.exitstatus == 3
    expect(result.status).to be_success, "#{result.stdout}#{result.stderr[0, 3000]}"
    expect(result.stdout).to match(/ok, [12],?\d+ objects/)
  end

  it "are documents that mongoimport takes: Extended JSON that fits into BSON" do
    result = python("heap_documents.py", File.join(@directory, "heap.jsonl"))
    expect(result.status).to be_success, "#{result.stdout}#{result.stderr[0, 3000]}"
    lines = File.readlines(File.join(@directory, "heap.jsonl"))
    expect(result.stdout).to include("ok: #{lines.size} documents")
    expect(lines.grep(/"references_left_out":\d/).size).to eq(1)
  end
end
