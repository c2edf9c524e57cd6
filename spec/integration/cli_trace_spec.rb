# frozen_string_literal: true

require "fileutils"
require "json"
require "tmpdir"

RSpec.describe "memprof trace" do
  let(:directory) { Dir.mktmpdir("memprof-spec-") }

  after { FileUtils.rm_rf(directory) }

  def file(*lines)
    path = File.join(directory, "requests.json")
    File.write(path, lines.map { |line| "#{line.is_a?(String) ? line : JSON.generate(line)}\n" }.join)
    path
  end

  def request(number, time, objects)
    tracers = { objects: { created: objects, types: {}, bytes: objects * 40 },
                gc: { calls: 1, time: time / 4 }, mysql: { queries: 3, time: time / 2 } }
    { start: 1_795_309_858_984_631 + number, tracers: tracers, time: time,
      rails: { controller: "orders", action: number.even? ? "index" : "show" },
      request: { REQUEST_METHOD: "GET", PATH_INFO: "/orders/#{number}" }, response: { code: 200 } }
  end

  let(:log) { file(*(1..8).map { |number| request(number, number / 100.0, 1000 - number) }) }

  it "shows what requests cost: by action, by kind, and the worst" do
    stdout, stderr, status = run_memprof("trace", "--limit", "3", log)
    expect([stderr, status.exitstatus]).to eq(["", 0])
    expect(stdout).to match_snapshot("trace/requests.txt")
    expect(run_memprof("trace", "--limit", "3", "-f", "markdown",
      log).stdout).to match_snapshot("trace/requests.md")
  end

  it "says which times are in which" do
    calls = { calls: 1, time: 0.1 }
    path = file({ tracers: { fd: { poll: calls }, redis: calls, http: calls }, time: 1.0 })
    expect(run_memprof("trace", path).stdout)
      .to include("\nTimes overlap: time includes all others; fd includes the system calls of redis, http.\n")
    path = file({ tracers: { views: calls, sql: calls, sqlite: calls }, time: 1.0 })
    expect(run_memprof("trace", path).stdout)
      .to include("all others; views includes sql; sql includes sqlite.\n")
    expect(run_memprof("trace", file({ tracers: {}, time: 1.0 })).stdout).not_to include("overlap")
  end

  it "shows SQL statements, those first that a line repeats" do
    repeated = { sql: "select ?", caller: "app.rb:7 in page", queries: 9, time: 0.5, slowest: 0.25,
                 n_plus_one: true }
    slow = { sql: "select a", queries: 9, time: 2.0, slowest: 0.25 }
    path = file(*[[repeated, slow], [repeated.except(:n_plus_one)]].map do |all|
      { tracers: { sql: { queries: 18, time: 2.5, statements: all } }, time: 3.0 }
    end)
    expect(run_memprof("trace", path).stdout).to include(<<~TEXT)
      SQL statements
      N+1  Queries  Requests    Time  Slowest  SQL       Called at
        1       18         2  1.00 s   250 ms  select ?  app.rb:7 in page
                 9         1  2.00 s   250 ms  select a
    TEXT
    expect(run_memprof("trace", "--limit", "1", path).stdout)
      .to match(/^... 1 more statement \(--limit N\)$/)
    rows = JSON.parse(run_memprof("trace", "-f", "json", path).stdout)["statements"]
    expect(rows.first).to include("n_plus_one" => 1, "requests" => 2, "queries" => 18, "sql" => "select ?")
  end

  it "adds up the lines that allocate most" do
    line = ->(location, count) { { location: location, class: "String", count: count, bytes: count * 40 } }
    requests = [[line.("app.rb:7 in Page#row", 300), line.("app.rb:3", 2)],
      [line.("app.rb:7 in Page#row", 400)]]
    path = file(*requests.map { |lines| { tracers: { objects: { created: 900, lines: lines } }, time: 3.0 } })
    expect(run_memprof("trace", path).stdout).to include(<<~TEXT)
      Lines that allocate the most objects
      Objects     Bytes  Requests  Class   Allocated at
          700  27.3 KiB         2  String  app.rb:7 in Page#row
            2      80 B         1  String  app.rb:3
    TEXT
    expect(run_memprof("trace", "--limit", "1", path).stdout).to match(/^... 1 more line \(--limit N\)$/)
    rows = JSON.parse(run_memprof("trace", "-f", "json", path).stdout)["allocations"]
    expect(rows.first).to include("objects" => 700, "requests" => 2)
  end

  it "sorts by any cost and groups by path" do
    stdout, = run_memprof("trace", "--sort", "objects", "--by", "path", "--format", "csv", log)
    expect(stdout.lines.first).to start_with("path,requests,objects_total,time_p50,")
    expect(stdout.lines[1..].map { |line| line[/\AGET [^,]+/] }).to eq((1..8).map { |number|
                                                                         "GET /orders/#{number}"
                                                                       })
  end

  it "prints all of it as JSON" do
    answer = JSON.parse(run_memprof("trace", "-f", "json", "--limit", "1", log).stdout)
    expect(answer).to include("requests" => 8, "broken" => 0, "sort" => "time", "more_groups" => 1)
    expect(answer["worst"].first).to include("line" => 8,
      "costs" => include("time" => 0.08, "mysql_calls" => 3))
    expect(answer["costs"].find { |cost|
             cost["kind"] == "time"
           }).to include("unit" => "seconds", "max" => 0.08)
  end

  it "passes over broken lines and says so on stderr" do
    path = file(request(1, 0.1, 1), "{\"start\":", "x")
    stdout, stderr, status = run_memprof("trace", path)
    expect(stderr).to eq("memprof: #{path}: skipped 2 invalid lines, the first is line 2\n")
    expect(stdout).to start_with("1 request,")
    expect(status.exitstatus).to eq(0)
  end

  it "reads stdin" do
    expect(run_memprof("trace", "-", input: File.read(log)).stdout).to start_with("8 requests,")
  end

  {
    "no such file" => [%w[/nowhere/x], %r{cannot read /nowhere/x: no such file}],
    "a directory" => [%w[/], /cannot read .*: is a directory/],
    "no file" => [[], /FILE is missing; see `memprof help trace`/],
    "an unknown kind" => [["--sort", "disc", :log],
      /invalid --sort "disc"; expected one of: time, objects,/],
    "no request in it" => [[:empty], /no traced requests in .*; skipped 1 invalid line, the first is line 1/]
  }.each do |situation, (arguments, message)|
    it "says what is wrong: #{situation}" do
      files = { log: -> { log }, empty: -> { file("hello") } }
      arguments = arguments.map { |argument| argument.is_a?(Symbol) ? files[argument].call : argument }
      stdout, stderr, status = run_memprof("trace", *arguments)
      expect([stdout, status.exitstatus]).to eq(["", 2])
      expect(stderr).to match(/\Amemprof: .*#{message}.*\n\z/)
    end
  end

  describe "after memprof run --trace" do
    def run(*arguments)
      run_memprof("run", *arguments, env: { "TMPDIR" => directory }, chdir: directory)
    end

    it "has the report of the process, indented on stdout" do
      stdout, stderr, status = run("--trace", "ruby", "-e",
        "Thread.new { 50.times { Object.new } }.join; exit 3")
      report = JSON.parse(stdout)
      expect([stderr, status.exitstatus]).to eq(["", 3])
      expect(report.keys).to eq(%w[start tracers command pid time])
      expect(report["tracers"]["objects"]["classes"]["Object"]["count"]).to eq(50)
      expect(stdout.lines.size).to be > 10
    end

    it "writes a line to a file, one for each process, which memprof trace reads" do
      code = "10.times { Object.new }; Process.wait(fork { GC.start })"
      _, stderr, = run("--trace", "-o", "app.json", "--", "ruby", "-e", code)
      expect(stderr).to match(/reports, with allocated size:/)
      files = Dir.children(directory).grep(/\Aapp.*json\z/).sort_by(&:length)
      expect(files.size).to eq(2)
      own, forked = files.map { |name| JSON.parse(File.read(File.join(directory, name))) }
      expect(own["tracers"]["gc"]["reasons"]).not_to have_key("method")
      expect(forked["tracers"]["gc"]["reasons"]).to include("method" => 1)
      expect(run_memprof("trace", File.join(directory, files.first)).stdout).to start_with("1 request,")
    end

    it "refuses what is for the other report" do
      expect(run("--trace", "--limit", "3", "--",
        "ruby").stderr).to eq("memprof: --limit cannot be used with --trace\n")
      expect(run("--trace", "-f", "text", "--",
        "ruby").stderr).to eq("memprof: --format cannot be used with --trace\n")
    end

    it "still takes a class" do
      stdout, = run("--class", "Object", "--", "ruby", "-e", "5.times { Object.new }")
      expect(stdout).to match(/\b5 objects \(200 B\) allocated/)
    end
  end
end
