# frozen_string_literal: true

require "memprof"
require "memprof/file_kind"
require "objspace"
require "tmpdir"

RSpec.describe Memprof::FileKind do
  include HeapDumps

  around { |example| Dir.mktmpdir { |directory| Dir.chdir(directory) { example.run } } }

  def kind(text)
    File.binwrite("file", text)
    described_class.of("file")
  end

  it "knows what memprof writes" do
    Memprof.trace("trace.json") { Array.new(3) { Object.new } }
    Memprof.trace_filename = "request.json"
    Memprof.trace_request({ "PATH_INFO" => "/", "REQUEST_METHOD" => "GET" }) { [200, {}, []] }
    report = Memprof.report(stack: 8) { "abc".dup }
    File.write("report.json", report.to_json)
    report.write("report.folded", format: :collapsed)
    Memprof.dump_all("heap.json")
    Memprof.dump_all("heap.memprof")
    Memprof.dump_all("heap.dump", format: :heap_dump)
    File.open("objspace.json", "w") { |file| ObjectSpace.dump_all(output: file) }
    kinds = Dir["*"].sort.to_h { |file| [file, described_class.of(file)] }
    expect(kinds).to eq("heap.dump" => :heap, "heap.json" => :heap, "heap.memprof" => :heap,
      "objspace.json" => :heap, "report.folded" => :tracked, "report.json" => :tracked,
      "request.json" => :trace, "trace.json" => :trace)
  ensure
    Memprof.trace_filename = nil
  end

  it "does not guess" do
    {
      "" => nil, "{" => nil, "\x00\xFF" => nil, "[1, 2]" => nil, "{}\n" => nil, "puts 1\n" => nil,
      '{"type":"ROOT","root":"vm","references":[]}' => :heap, "     12 app.rb:3:String\n" => :tracked,
      "   12 C:/a b.rb:3:Foo::Bar\n" => :tracked, "main (a.rb:1);String 12\n" => :tracked,
      "memprof malloc 1\n" => :malloc, "\x7FELF\x02" => :core,
      "\n\n{\"tracers\":{}}\n" => :trace, "{\"start\":1,\"tracers\":#{"x" * 300_000}" => :trace
    }.each { |text, expected| expect(kind(text)).to eq(expected), text[0, 40] }
    expect(described_class.of(cache_dump)).to eq(:heap)
  end

  it "does not wait for pipes" do
    File.mkfifo("pipe")
    expect(described_class.of("pipe")).to be_nil
    expect(described_class.of("nothing")).to be_nil
  end
end
