# frozen_string_literal: true

require "fileutils"
require "json"
require "securerandom"
require "tmpdir"

# What `memprof trace` says, computed once more in the simplest way, by NaiveTraceLog.
RSpec.describe "memprof trace, compared with a naive aggregate" do
  let(:directory) { Dir.mktmpdir("memprof-spec-") }
  let(:path) { File.join(directory, "requests.json") }

  after { FileUtils.rm_rf(directory) }

  def naive(by, sort, limit)
    log = File.open(path, "rb") { |io| NaiveTraceLog.read(io) }
    time = ->(entry) { entry.start&.utc&.strftime("%Y-%m-%dT%H:%M:%S.%6NZ") }
    starts = log.entries.filter_map(&:start)
    groups = log.groups(by, sort)
    worst = log.worst(sort).first(limit).map do |entry|
      { line: entry.line, action: entry.action, path: entry.path, status: entry.status, start: time.(entry),
        costs: entry.costs }
    end
    JSON.parse(JSON.generate(requests: log.entries.size, broken: log.broken, first_broken: log.first_broken,
      by: by, sort: sort, from: starts.min&.utc&.strftime("%Y-%m-%dT%H:%M:%S.%6NZ"),
      to: starts.max&.utc&.strftime("%Y-%m-%dT%H:%M:%S.%6NZ"), groups: groups.first(limit),
      more_groups: [groups.size - limit, 0].max, costs: log.costs, worst: worst,
      more_worst: [log.entries.size - limit, 0].max, statements: log.statements.first(limit),
      more_statements: [log.statements.size - limit, 0].max, allocations: log.allocations.first(limit),
      more_allocations: [log.allocations.size - limit, 0].max))
  end

  # Sums of numbers with fractions depend on their order.
  def rounded(value)
    case value
    when Hash then value.transform_values { |inner| rounded(inner) }
    when Array then value.map { |inner| rounded(inner) }
    when Float then value.round(9)
    else value
    end
  end

  def tracer(random)
    some = { calls: random.rand(9), time: random.rand }
    [{}, some, { queries: 2, time: random.rand, types: { select: { queries: 1, time: 0.25 } } },
      { read: some, write: { calls: 2, time: random.rand(3) } },
      { created: random.rand(1000), bytes: random.rand(10**6), types: { string: 4 }, list: [1, [2]],
        lines: lines(random) },
      { malloc: { calls: 3, requested: random.rand(10**5) }, ruby: { malloc: { calls: 9 } } },
      { utime: random.rand, stime: random.rand(2), gvl_wait_time: random.rand, gvl_waits: 3 },
      { calls: "many", time: nil, "\u00e9\n" => true }].sample(random: random)
  end

  def lines(random)
    lines = Array.new(random.rand(4)) do
      { location: ["a.rb:1 in a", "b.rb:2", 7].sample(random: random), count: random.rand(9),
        class: ["String", "Array", nil].sample(random: random),
        bytes: [random.rand(99), nil].sample(random: random) }
    end
    [lines, [*lines, 1, [2]], { error: "lost" }].sample(random: random)
  end

  def tracers(random)
    names = %w[objects gc fd memory mysql redis resources threads mine own]
    tracers = names.sample(random.rand(10), random: random).to_h { |name| [name, tracer(random)] }
    random.rand(2).zero? ? tracers.merge("sql" => sql(random)) : tracers
  end

  def sql(random)
    statements = Array.new(random.rand(5)) do
      { sql: ["select ?", "select a", 7].sample(random: random),
        caller: [nil, "a.rb:1", 3].sample(random: random),
        queries: random.rand(9), time: random.rand, slowest: [random.rand, nil].sample(random: random),
        n_plus_one: [true, nil, "yes"].sample(random: random) }
    end
    { queries: random.rand(9), time: random.rand,
      statements: [statements, [*statements, 1, [2]], statements.first].sample(random: random) }
  end

  def request(random)
    return tracers(random) if random.rand(20).zero?

    one = ->(*choice) { choice.sample(random: random) }
    record = { start: start(random), tracers: tracers(random), time: one.(random.rand, random.rand(100), nil),
               rails: one.(nil, nil, { controller: one.("a", "b"), action: one.(nil, "x") }),
               request: { REQUEST_METHOD: one.("GET", nil), PATH_INFO: path_info(random) },
               response: one.({ code: random.rand(200) }, { code: nil }, {}), command: one.(nil, "rake") }
    record = record.merge(exception(random)) if random.rand(4).zero?
    record.to_a.shuffle(random: random).to_h.reject { |_, value| value.nil? && random.rand(2).zero? }
  end

  def exception(random)
    code = [{ error_number: 1062, sqlstate: "23000" }, { sqlstate: "23505" }, { errno: 2 }, nil, 7]
    { exception: ["Mysql2::Error", "PG::Error"].sample(random: random),
      exception_code: code.sample(random: random) }
  end

  def path_info(random)
    id = [random.rand(9).to_s, random.rand(10**12).to_s, random.bytes(4).unpack1("H*"), SecureRandom.uuid,
      "new", "12ab", "deadbeef", "#{random.rand(99)}.json", "1.5", "7.mp3"].sample(random: random)
    ["/#{id}?q=1", "/orders/#{id}", "/a/#{id}/b/#{id}", "orders/#{id}/"].sample(random: random)
  end

  def start(random)
    [1_272_424_769_750 + random.rand(10**9), 1_795_309_858_984_631 + random.rand(10**12), 1.5e15, nil, "then"]
      .sample(random: random)
  end

  def broken(random)
    ["", "  ", "{", "null", "[1]", "{}", "\xff", "{\"tracers\":[]}", "{\"a\":{},\"b\":1}",
      "{\"tracers\":{\"objects\":{\"created\":1e400}}}", "{\"tracers\":{\"gc\":{\"time\":-1e19}}}",
      "{\"start\":1e400,\"tracers\":{}}", "{\"start\":-1e18,\"tracers\":{}}"].sample(random: random)
  end

  8.times do |seed|
    it "says the same of random lines (seed #{seed})" do
      random = Random.new(seed)
      lines = Array.new(400) { random.rand(8).zero? ? broken(random) : JSON.generate(request(random)) }
      File.binwrite(path, lines.join("\n"))
      by = %w[action path status exception][seed % 4]
      sort = %w[time objects mysql_calls][seed / 3 % 3]
      stdout, _, status = run_memprof("trace", "-f", "json", "--by", by, "--sort", sort, "--limit", "5", path)
      expect(status.exitstatus).to eq(0)
      expect(rounded(JSON.parse(stdout))).to eq(rounded(naive(by.to_sym, sort, 5)))
    end
  end

  it "skips numbers that no request can have" do
    good = { tracers: { gc: { calls: 1, time: 0.5 } }, time: 1.5 }
    File.write(path, "#{JSON.generate(good)}\n{\"tracers\":{\"objects\":{\"created\":1e400}}}\n")
    stdout, stderr, status = run_memprof("trace", "-f", "json", path)
    expect([status.exitstatus, JSON.parse(stdout)["requests"]]).to eq([0, 1])
    expect(stderr).to eq("memprof: #{path}: skipped 1 invalid line, the first is line 2\n")
  end

  it "reads many requests in little memory" do
    tracers = { objects: { created: 7, bytes: 280, types: { string: 7 }, classes: {} },
                gc: { calls: 1, time: 0.25 }, fd: { read: { calls: 1, time: 0.125 } }, filler: "x" * 2000 }
    File.open(path, "w") do |file|
      20_000.times do |number|
        request = { PATH_INFO: "/#{number % 50}", REQUEST_METHOD: "GET" }
        file.puts(JSON.generate({ start: 1_795_309_858_984_631 + number, tracers: tracers, request: request,
                                  time: number / 1000.0 }))
      end
    end
    program = <<~RUBY
      require "memprof/cli"
      status = Memprof::CLI.start(ARGV)
      warn File.read("/proc/self/status")[/VmHWM:\\s*(\\d+)/, 1]
      exit status
    RUBY
    skip "needs /proc" unless File.exist?("/proc/self/status")
    few = File.join(directory, "few.json")
    File.write(few, File.foreach(path).first(10).join)
    peaks = [few, path].map do |file|
      stdout, stderr, = run_ruby(program, args: ["trace", "-f", "json", file])
      expect(JSON.parse(stdout)["requests"]).to eq(file == few ? 10 : 20_000)
      Integer(stderr)
    end
    expect(File.size(path)).to be > 40_000_000
    expect(peaks.last - peaks.first).to be < 30_000 # KiB
  end
end
