# frozen_string_literal: true

require "memprof"
require "memprof/agent/evidence"
require "memprof/agent/interval"
require "memprof/agent/ledger"
require "tmpdir"

RSpec.describe "The evidence of the agent" do
  around { |example| Dir.mktmpdir { |root| (@root = root) && example.run } }

  let(:room) { double(refusal: nil, memory?: true) }
  let(:report) { Memprof.report { @kept = Array.new(3) { "secret".dup } } }

  def intervals(count = 1)
    Array.new(count) do |at|
      Memprof::Agent::Interval.new(report: report, started_at: at.to_f, duration: 1.0)
    end
  end

  def evidence(directory: File.join(@root, "evidence"), **settings)
    given = { directory: directory, keep: 10, dump: :auto, values: :none }.merge(settings)
    ledger = Memprof::Agent::Ledger.new
    Memprof::Agent::Evidence.new(given, limits: nil, cgroup: nil, ledger: ledger, room: room)
  end

  def write(evidence, count = 1)
    evidence.write("full", intervals: intervals(count), labels: { service: "shop" })
  end

  def names(outcome) = outcome.paths.map { |path| File.basename(path) }

  it "is the last reports, the ledger and a dump, for this user alone" do
    outcome = write(evidence, 5)
    reports = %w[report.json report-1.json report-2.json]
    expect(names(outcome)).to eq(["about.json", "memory.json", *reports, "heap.memprof"])
    expect(outcome.paths.map { |path| format("%o", File.stat(path).mode & 0o777) }.uniq).to eq(%w[600])
    expect(outcome.to_s).to eq("wrote #{names(outcome).join(", ")} to #{outcome.directory}")
    about = JSON.parse(File.read(outcome.paths.first))
    expect(about).to include("reason" => "full", "labels" => { "service" => "shop" })
    expect(about["intervals"].map { |interval| interval["started_at"] }).to eq([0.0, 1.0, 2.0, 3.0, 4.0])
    expect(JSON.parse(File.read(outcome.paths[1]))).to include("format" => "memprof-memory")
    expect(JSON.parse(File.read(outcome.paths[2]))).to include("format" => "memprof-report")
    expect(Memprof::Heap.open(outcome.paths.last).objects.size).to be > 1000
  end

  it "has no dump if there is no room, or if none is wanted" do
    allow(room).to receive(:refusal).and_return("the disk is full")
    outcome = write(evidence)
    expect(names(outcome).last).to eq("report.json")
    expect(outcome.to_s).to end_with("; no heap dump: the disk is full")
    expect(write(evidence(dump: false)).no_dump).to be_nil
  end

  it "has a dump if one is demanded" do
    allow(room).to receive_messages(refusal: "the disk is full", memory?: false)
    expect(names(write(evidence(dump: true)))).to include("heap.memprof")
  end

  it "has no dump while another process writes one" do
    first = evidence
    write(first)
    File.open(File.join(@root, "evidence/dump.lock")) do |lock|
      lock.flock(File::LOCK_EX)
      expect(write(first).no_dump).to eq("another process is writing one")
    end
  end

  it "is removed when there is too much, and nothing else is" do
    kept = File.join(@root, "evidence/limit-20200101T000000Z-x")
    write(evidence(dump: false))
    Dir.mkdir(kept)
    older = %w[20200101 20200102].map { |day| File.join(@root, "evidence/limit-#{day}T000000Z-1") }
    older.each { |path| Dir.mkdir(path) && File.write(File.join(path, "about.json"), "{}") }
    write(evidence(dump: false, keep: 1))
    expect(older.map { |path| File.exist?(path) }).to eq([false, false])
    expect(Dir.children(File.join(@root, "evidence")).size).to eq(2) # the last one, and what is not ours
    expect(File.exist?(kept)).to be(true)
  end

  it "says why nothing was written" do
    File.write(File.join(@root, "file"), "")
    outcome = write(evidence(directory: File.join(@root, "file")))
    expect(outcome.to_s).to eq("nothing was written; cannot write to #{@root}/file: it is not a directory")
  end

  it "is as much as a full disk takes, without half a file" do
    with_file_system("size=16k") do |directory|
      allow(room).to receive(:refusal).and_return("the disk is full")
      File.chmod(0o700, directory)
      File.write(File.join(directory, "filler"), "x" * 8192)
      outcome = write(evidence(directory: directory), 3)
      expect(outcome.failures.join).to match(/cannot write .*: No space left on device/)
      files = Dir.glob("**/*", base: directory).select { |name| File.file?(File.join(directory, name)) }
      expect(files.map { |name| File.basename(name) } - %w[filler dump.lock]).to match_array(names(outcome))
    end
  end

  it "is written as far as possible if a part fails" do
    allow(Memprof).to receive(:memory).and_raise(Memprof::Error, "no /proc")
    allow(Memprof).to receive(:dump_all).and_raise(NoMethodError, "no method")
    outcome = write(evidence)
    expect(names(outcome)).to eq(%w[about.json report.json])
    expect(outcome.to_s)
      .to end_with("; no heap dump: no method (NoMethodError); the ledger of RSS is unknown")
  end
end
