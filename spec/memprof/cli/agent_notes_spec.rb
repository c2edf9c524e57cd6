# frozen_string_literal: true

require "json"
require "memprof"
require "memprof/cli"
require "tmpdir"

# Files and answers of this process, seen as those of another one.
RSpec.describe Memprof::CLI::AgentNotes do
  around { |example| Dir.mktmpdir { |directory| Dir.chdir(directory) { example.run } } }

  before do
    skip "needs /proc" unless File.directory?("/proc/self/task")
    @environment = { "XDG_STATE_HOME" => Dir.pwd }
  end

  let(:target) do
    Memprof::CLI::Target.new(Process.pid).tap do |target|
      allow(target).to receive(:environment) { |name| @environment[name] }
      allow(target).to receive(:connect) { @client }
    end
  end

  let(:pid) { Process.pid }
  let(:directory) { File.join(Dir.pwd, "memprof", "agent") }
  let(:lines) { described_class.new(target).lines }
  let(:unknown) { "; it has not loaded memprof/signal, so its intervals are unknown here" }
  let(:leak) do
    { "file" => "app.rb", "line" => 47, "class" => "String", "service" => "shop", "release" => nil,
      "since" => "3fe2a1", "holder" => "Cache::PAGES -> Hash[*]", "bytes_per_hour" => 20 << 20, "error" => 1,
      "hours" => 6, "named_at" => 1, "named_rate" => 1, "seen_at" => 1, "began_at" => 1, "workers" => [8, 8] }
  end

  def answers(agent)
    @client = Object.new
    @client.define_singleton_method(:ask) do |request, seconds:|
      request == { do: "agent" } && seconds < 30 && { "agent" => agent }
    end
    @client.define_singleton_method(:close) {}
  end

  def publish(name, content, format: "memprof-trends")
    trends = File.join(directory, "trends")
    FileUtils.mkdir_p(trends)
    File.write(File.join(trends, name), JSON.generate({ format: format, version: 2, **content }))
  end

  def publish_leak(**other)
    publish("trends-#{pid}-0123abcd.json", { service: "shop" })
    publish("trends-named.json", { leaks: [leak, leak.merge("service" => "other", "line" => 1)] }, **other)
  end

  it "finds the processes that run an agent by the name of its thread" do
    expect(described_class.of([target])).to eq([])
    thread = Thread.new { sleep }
    # The system's thread has a name of its own when it begins.
    Thread.pass until thread.stop?
    thread.name = "memprof agent"
    expect(described_class.of([target])).to eq(["process #{pid} runs memprof's agent#{unknown}"])
  ensure
    thread&.kill
  end

  it "names all agents of a group, and asks the first" do
    expect(described_class.new(target, also: [7, 8]).lines)
      .to eq(["processes #{pid}, 7, 8 run memprof's agent#{unknown}"])
  end

  it "shows what the process answers" do
    answers("settings" => { "profiles" => nil, "directory" => nil }, "leaks" => ["app.rb:1: +1 MiB/h"],
      "intervals" => [{}, {
        "started_at" => Time.new(2026, 1, 2, 3, 4, 5).to_f, "duration" => 60.0, "rss" => 120 << 20,
        "allocated" => { "objects" => 12_000, "bytes" => 1 << 20 },
        "retained" => { "objects" => 9, "bytes" => 360 }
      }])
    expect(lines).to eq([
      "process #{pid} runs memprof's agent; in the 1 min 0 s to 03:05:05 12,000 objects (1.0 MiB) " \
      "allocated, 9 objects (360 B) live, RSS 120.0 MiB",
      "it leaks: app.rb:1: +1 MiB/h"
    ])
  end

  it "reads the leaks of the service from the agent's files" do
    publish_leak
    expect(lines).to eq(["process #{pid} runs memprof's agent#{unknown}",
      "it leaks: app.rb:47: +20 MiB/h for 6 h in 8 of 8 workers, String in Cache::PAGES, " \
      "since release 3fe2a1"])
  end

  it "names the newest profile of the process, and the newest evidence" do
    FileUtils.mkdir_p(["kept profiles", "#{directory}/limit-20260102T030405Z-#{pid}"])
    @environment["MEMPROF_AGENT"] = "on,profiles=#{Dir.pwd}/kept profiles"
    names = ["20260102T030405678Z-#{pid}", "20260103T030405678Z-#{pid}", "20260104T030405678Z-1"]
    names.each { |name| File.write("kept profiles/memprof-#{name}.pb.gz", "") }
    expect(lines.drop(1)).to eq([
      "each interval is a profile: go tool pprof -http=: " \
      "'#{Dir.pwd}/kept profiles/memprof-#{names[1]}.pb.gz'",
      "its memory has reached a limit: evidence is in #{directory}/limit-20260102T030405Z-#{pid}"
    ])
  end

  it "asks the process for its directories rather than its environment" do
    @environment["MEMPROF_AGENT"] = "profiles=/nonexistent,directory=#{Dir.pwd}/elsewhere"
    publish_leak
    expect(lines.size).to eq(1)
    answers("settings" => { "directory" => directory }, "intervals" => [], "leaks" => [])
    FileUtils.mkdir_p("#{directory}/limit-20260102T030405Z-#{pid}")
    lines = described_class.new(target).lines
    expect(lines.first).to eq("process #{pid} runs memprof's agent; its first interval has not ended yet")
    expect(lines.last).to end_with("limit-20260102T030405Z-#{pid}")
  end

  it "follows no link, and reads nothing of another user" do
    publish_leak
    trends = File.join(directory, "trends")
    FileUtils.mv(File.join(trends, "trends-named.json"), "elsewhere.json")
    File.symlink(File.expand_path("elsewhere.json"), File.join(trends, "trends-named.json"))
    File.symlink(directory, "#{directory}/limit-20260102T030405Z-#{pid}")
    expect(lines.size).to eq(1)
    File.rename("elsewhere.json", File.join(trends, "trends-named.json"))
    expect(described_class.new(target).lines.size).to eq(2)
    next unless Process.euid.zero?

    File.chown(65_534, nil, File.join(trends, "trends-named.json"))
    expect(described_class.new(target).lines.size).to eq(1)
  end

  it "passes over answers and files of another form" do
    [nil, 7, [], {}, { "intervals" => 7, "leaks" => { "a" => 1 }, "settings" => 3 },
      { "intervals" => [{ "started_at" => "x" }], "leaks" => [nil, 7], "settings" => { "profiles" => 7 } }]
      .each do |agent|
        answers(agent)
        expect(described_class.new(target).lines).to eq(["process #{pid} runs memprof's agent"])
      end
    @client = nil
    publish_leak(format: "other")
    publish("trends-#{pid}-0123abcd.json", { service: [] })
    expect(described_class.new(target).lines.size).to eq(1)
    publish("trends-named.json", { leaks: [leak.merge("named_at" => "1"), 7, leak.merge("workers" => [])] })
    expect(described_class.new(target).lines.size).to eq(1)
  end

  it "prints no control characters, and no endless lines" do
    answers("settings" => {}, "intervals" => [], "leaks" => ["\e[31m#{"x" * 1000}\n"] * 50)
    expect(lines.size).to eq(6)
    expect(lines.join).not_to match(/[[:cntrl:]]/)
    expect(lines.map(&:size).max).to eq(400)
  end
end
