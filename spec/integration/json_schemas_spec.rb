# frozen_string_literal: true

require "memprof/cli"
require "stringio"
require "tmpdir"

# Programs read the JSON of the commands: docs/schemas/ says what they can rely on.
RSpec.describe "The JSON schemas of docs/schemas/" do
  include HeapDumps

  around { |example| Dir.mktmpdir { |directory| Dir.chdir(directory) { example.run } } }

  # The answer of a command, asked in this process.
  def answer(*command)
    out = StringIO.new
    errors = StringIO.new
    terminal = Memprof::CLI::Terminal.new(out: out, err: errors)
    status = Memprof::CLI.command(command.first, terminal).start(["--json", *command.drop(1)])
    expect(status).to eq(0), errors.string
    JSON.parse(out.string, max_nesting: false)
  end

  def faults(name, *documents) = documents.flat_map { |document| JSONSchema.of(name).faults(document) }

  let(:dumps) { [1, 2, 3].map { |number| cache_dump(number) } }
  let(:dump) { dumps.last }
  let(:address) { answer("top", dump)["objects"].first["address"] }

  it "are valid, of draft 2020-12, and say of open keys what they are" do
    paths = Dir[File.join(ChildRuby::ROOT, "docs/schemas/*.json")]
    expect(paths.map { |path| File.basename(path, ".json") })
      .to match_array(%w[boot check core diff dups histogram leaks malloc memory path query run show slots
        stack stats subset top trace tree])
    paths.each do |path|
      schema = JSON.parse(File.read(path))
      expect(schema).to include("title" => /--json/,
        "$schema" => "https://json-schema.org/draft/2020-12/schema")
      open = ->(part) do
        next part.each(&open) if part.is_a?(Array)
        next unless part.is_a?(Hash)

        expect(part).to include("description" => /\S/) if part.key?("additionalProperties")
        part.each_value(&open)
      end
      open.call(schema)
    end
  end

  it "describe what is wrong with a document" do
    answer = answer("histogram", dump)
    answer["rows"].first["count"] = "many"
    answer["smell"] = 1
    expect(faults("histogram", answer.except("by"))).to contain_exactly(": by is missing",
      ": smell is not in the schema", "/rows/0/count: \"many\" is not of type integer")
  end

  it "fit the verdict" do
    expect(faults("leaks", answer("leaks", dump), answer("leaks", *dumps), answer("leaks", *dumps.first(2))))
      .to eq([])
  end

  it "fit lists, groups, paths and objects" do
    expect(faults("top", answer("top", dump), answer("top", "--procs", dump))).to eq([])
    expect(faults("query", answer("query", dump, "type = hash"), answer("query", dump, "size < 0"))).to eq([])
    groups = Memprof::CLI::Histogram::BY.map { |by| answer("histogram", "--by", by.to_s, "--limit=5", dump) }
    expect(faults("histogram", *groups, answer("histogram", "--then=line", dump))).to eq([])
    paths = [answer("path", dump, address), answer("path", dump, "--where", "class = Session")]
    expect(faults("path", *paths)).to eq([])
    shown = %w[string array hash class data].map do |type|
      answer("query", dump, "type = #{type}", "--limit=1")["objects"].first["address"]
    end
    expect(faults("show", *shown.map { |one| answer("show", dump, one) })).to eq([])
  end

  it "fit trees, duplicates and slots" do
    trees = [[dump], ["--by=class", dump], [dump, address]].map { |arguments| answer("tree", *arguments) }
    expect(faults("tree", *trees)).to eq([])
    sorted = %w[length retained size unused].map do |order|
      answer("dups", "--collections", "--sort=#{order}", dump)
    end
    expect(faults("dups", answer("dups", "--limit=1000", dump), *sorted)).to eq([])
    expect(faults("slots", answer("slots", dump))).to eq([])
  end

  it "fit summaries and parts of a heap" do
    expect(faults("stats", answer("stats", dump))).to eq([])
    steps = ["--class", "Session", "--valid", "--out-degree"]
    expect(faults("subset", answer("subset", dump), answer("subset", *steps, dump))).to eq([])
  end

  it "fit the stacks and the blocks of a process" do
    skip "processes are copied on Linux" unless RUBY_PLATFORM.include?("linux")
    skip "needs root, or the permission to trace any process" unless Process.euid.zero?
    IO.popen([RbConfig.ruby, "-e", <<~RUBY], "r+") do |io|
      Thread.new { sleep }
      Fiber.new { Fiber.yield }.resume
      puts "ready"
      $stdout.flush
      $stdin.read
    RUBY
      io.gets
      expect(faults("stack", answer("stack", io.pid.to_s))).to eq([])
      expect(faults("core", answer("core", io.pid.to_s))).to eq([])
      io.close_write
    end
  end

  it "fit comparisons of dumps" do
    expect(faults("diff", answer("diff", *dumps), answer("diff", "--by=site", *dumps.first(2)))).to eq([])
  end

  it "fit the memory of a dump and of a process" do
    expect(faults("memory", answer("memory", dump))).to eq([])
    skip "needs /proc" unless File.exist?("/proc/self/smaps")
    expect(faults("memory", answer("memory", Process.pid.to_s))).to eq([])
  end

  it "fit recordings of malloc" do
    Memprof::Malloc.record("app.malloc") { Array.new(100) { |number| "x" * (number * 10) } }
    expect(faults("malloc", answer("malloc", "app.malloc"))).to eq([])
  end

  it "fit traced requests" do
    tracer = Memprof::Tracer.new(->(_env) { [200, {}, [File.read(__FILE__, 10)]] }, path: "requests.log")
    3.times { |number| tracer.call("REQUEST_METHOD" => "GET", "PATH_INFO" => "/orders/#{number}") }
    eventually("the log") { File.exist?("requests.log") && File.foreach("requests.log").count == 3 }
    expect(faults("trace", answer("trace", "requests.log"))).to eq([])
  end

  it "fit a boot" do
    boot = run_memprof("boot", "--json", "--", RbConfig.ruby, "-e", "require 'json'")
    required = run_memprof("require", "--json", "json")
    answers = [boot, required].map { |result| JSON.parse(result.stdout, max_nesting: false) }
    expect(faults("boot", *answers)).to eq([])
  end

  it "fit reports of a command" do
    report = Memprof.report(peak: true, stack: 2) { Array.new(10) { +"x" } }
    expect(faults("run", JSON.parse(report.to_json))).to eq([])
    run = run_memprof("run", "--json", "--", RbConfig.ruby, "-e", "KEPT = Array.new(10) { 'x' }")
    expect(faults("run", JSON.parse(run.stdout))).to eq([])
  end

  it "fit comparisons of reports" do
    [100, 200].each do |count|
      Memprof.report { Array.new(count) { +"x" } }.write("#{count}.json", format: :json)
    end
    expect(faults("check", answer("diff", "100.json", "200.json"))).to eq([])
  end
end
