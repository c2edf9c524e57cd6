# frozen_string_literal: true

require "fileutils"
require "json"
require "memprof/agent"
require "open3"
require "tmpdir"

# What the agent serves is for programs of others, so those programs judge it: readers of pprof in Go and
# JavaScript, of metrics in Python and Go.
RSpec.describe "what the agent serves, in the programs that fetch it", :viewers do
  include AgentIntervals

  before { allow(Memprof::Agent).to receive(:labels).and_return(AgentIntervals::LABELS) }

  after { Memprof::Agent::Work.clear }

  around { |example| Dir.mktmpdir("memprof-served") { |path| (@directory = path) && example.run } }

  let(:totals) { totals_of(interval(memory: Memprof.memory) { hostile }) }
  let(:app) { Memprof::Agent::Endpoints.new(gate: WebBrowser::Open.new, totals: totals) }

  # Writes an answer, and returns its path.
  def fetch(path, query = "", accept = nil)
    env = { "REQUEST_METHOD" => "GET", "PATH_INFO" => path, "QUERY_STRING" => query, "HTTP_ACCEPT" => accept }
    status, _, body = app.call(env)
    expect(status).to eq(200)
    File.join(@directory, "answer").tap { |file| File.binwrite(file, body.join) }
  end

  def work
    Memprof::Agent::Work.record(kind: :action, name: "Odd\"\\\nController#sh\xFFow", duration: 0.1,
      objects: 7,
      bytes: 280, gc_time: 0.01, sql: 2)
    Memprof::Agent::Work.record(kind: :job, name: "MailJob", duration: 3, objects: 0)
  end

  def output_of(*command, **options)
    output, status = Open3.capture2e(*command, **options)
    expect(status).to be_success, output[0, 3000]
    output
  end

  it "is read by go tool pprof" do
    skip("needs go") unless system("go", "version", out: File::NULL, err: File::NULL)

    heap = output_of("go", "tool", "pprof", "-raw", fetch("/debug/pprof/heap"))
    expect(heap).to include(
      "alloc_objects/count alloc_space/bytes inuse_objects/count inuse_space/bytes[dflt]",
      "PeriodType: space bytes", "service=shop"
    )
    allocs = output_of("go", "tool", "pprof", "-top", fetch("/debug/pprof/allocs"))
    expect(allocs).to include("Type: alloc_space")
    sums = output_of("go", "tool", "pprof", "-top", "-unit=bytes", fetch("/debug/pprof/allocs"))
    expect(sums[/of (\d+)B total/, 1].to_i).to eq(totals.read.first.allocated_bytes)
  end

  it "is read by go tool pprof if it is a difference in which memory was freed" do
    skip("needs go") unless system("go", "version", out: File::NULL, err: File::NULL)

    $kept = nil
    first = interval { $kept = Array.new(100) { "x" * 1000 } }
    totals = totals_of(first)
    before = totals.profile
    $kept = nil
    totals.add(interval(at: 1_700_000_060) { Object.new })
    path = File.join(@directory, "delta")
    File.binwrite(path, totals.difference("inuse_space", before))
    top = output_of("go", "tool", "pprof", "-sample_index=inuse_objects", "-raw", path)
    expect(top).to match(/^\s*0\s+0\s+-100\s+-\d{6}:/)
  end

  it "is read by pprof-format of npm" do
    version, = Open3.capture2e("node", "--version")
    skip("needs node 20.19 or newer") if version[/\d+/].to_i < 20
    File.write(File.join(@directory, "package.json"),
      '{"private": true, "dependencies": {"pprof-format": "2.3.2"}}')
    _, status = Open3.capture2e("npm", "install", "--no-package-lock", "--no-audit", "--no-fund",
      "--ignore-scripts", "--loglevel=error", chdir: @directory)
    skip("needs pprof-format from npm") unless status.success?

    heap = fetch("/debug/pprof/heap")
    code = <<~JS
      const { Profile } = require("pprof-format");
      const bytes = require("node:zlib").gunzipSync(require("node:fs").readFileSync(process.argv[1]));
      const profile = Profile.decode(bytes);
      const text = (index) => profile.stringTable.strings[index];
      console.log(JSON.stringify({
        types: profile.sampleType.map((type) => [text(type.type), text(type.unit)]),
        first: text(profile.defaultSampleType), comments: profile.comment.map(text),
        sums: [0, 1, 2, 3].map((at) => profile.sample.reduce((sum, sample) => sum + Number(sample.value[at]), 0)),
        time: Number(profile.timeNanos), files: profile.function.map((one) => text(one.filename)),
      }));
    JS
    read = JSON.parse(output_of("node", "-e", code, heap, chdir: @directory))
    sums = totals.profile.totals.values_at("allocated", "retained").flat_map { |row|
      row.values_at("objects", "bytes")
    }
    expect(read["sums"]).to eq(sums)
    expect(read["first"]).to eq("inuse_space")
    expect(read["types"].map(&:first)).to eq(%w[alloc_objects alloc_space inuse_objects inuse_space])
    expect(read["comments"]).to include("service=shop", "worker=0")
    expect(read["files"].join).to include("odd\"\\\n")
  rescue Errno::ENOENT => e
    skip("needs node and npm: #{e.message}")
  end

  it "is read by prometheus-client of Python, in both formats" do
    python = ["python3", "/usr/bin/python3"].find do |one|
      system(one, "-c", "import prometheus_client", out: File::NULL, err: File::NULL)
    end
    skip("needs prometheus-client of Python") unless python

    work
    code = <<~PYTHON
      import json, sys
      if sys.argv[1] == "openmetrics":
          from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse
      else:
          from prometheus_client.parser import text_string_to_metric_families as parse
      text = open(sys.argv[2], encoding="utf-8", newline="").read()
      print(json.dumps([[f.name, f.type, f.unit, [[s.name, s.labels, s.value] for s in f.samples]] for f in parse(text)]))
    PYTHON
    accepted = { "prometheus" => "text/plain", "openmetrics" => "application/openmetrics-text" }
    read = accepted.to_h do |format, accept|
      [format, JSON.parse(output_of(python, "-c", code, format, fetch("/metrics", "", accept)))]
    end
    read.each do |format, families|
      samples = families.flat_map(&:last)
      value = ->(name) { samples.find { |sample| sample[0] == "memprof_#{name}" }&.last }
      expect(value.("allocated_bytes_total")).to eq(totals.read.first.allocated_bytes), format
      expect(value.("action_allocated_objects_total")).to eq(7)
      names = samples.map { |_, labels, _| labels["action"] }.compact.uniq
      expect(names).to eq(["Odd\"\\\nController#sh\\xFFow"])
      live = samples.select { |name, _, _| name == "memprof_site_live_bytes" }
      expect(live.sum(&:last)).to eq(totals.read.last.report.total_retained_memsize)
      parts = samples.select { |name, _, _| name == "memprof_memory_part_bytes" }
      expect(parts.sum(&:last)).to eq(totals.read.last.memory.rss)
    end
    types = read["openmetrics"].to_h { |name, type, unit, _| [name, [type, unit]] }
    expect(types).to include("memprof_agent" => ["info", ""], "memprof_gc_seconds" => %w[counter seconds],
      "memprof_action_duration_seconds" => %w[summary seconds],
      "memprof_resident_memory_bytes" => %w[gauge bytes])
  end

  it "is accepted by promtool" do
    skip("needs promtool") unless system("promtool", "--version", out: File::NULL, err: File::NULL)

    work
    output_of("promtool", "check", "metrics", stdin_data: File.binread(fetch("/metrics")))
  end
end
