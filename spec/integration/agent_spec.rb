# frozen_string_literal: true

require "json"
require "tmpdir"

# The agent in processes of its own: how it starts, forks and ends.
RSpec.describe "memprof/agent in a process" do
  quick = "interval=0.2,budget=1"

  def run_agent(code, env: {}, **options)
    run_ruby(code, ruby_args: ["-rmemprof/agent"], env: env, **options)
  end

  # The last line of JSON that the program wrote.
  def answer(result)
    expect([result.stderr, result.status.exitstatus]).to match([/\A(?:memprof: agent: .*\n)*\z/, 0])
    JSON.parse(result.stdout.lines.last)
  end

  it "is nothing if it is off" do
    code = <<~'RUBY'
      require "json"
      hooks = ObjectSpace.each_object(TracePoint).count
      loaded = $".grep(/memprof/).map { |file| File.basename(file) }
      puts [Memprof::Agent.start, Memprof::Agent.running?, Thread.list.size, hooks, loaded].to_json
    RUBY
    files = %w[agent.rb bundler_exec.rb switch.rb]
    result = run_agent(code, env: { "MEMPROF_AGENT" => "off" })
    expect(result.stderr).to eq("")
    *state, loaded = answer(result)
    expect([state, loaded.sort]).to eq([[false, false, 1, 0], files])
  end

  it "starts if MEMPROF_AGENT asks, in a program that loads memprof" do
    code = 'require "memprof"; puts !!defined?(Memprof::Agent) && Memprof::Agent.running?'
    found = ["on", "interval=30", "off", nil].map do |agent|
      result = run_ruby(code, env: { "MEMPROF_AGENT" => agent }, ruby_args: ["-w"])
      expect(result.stderr).to match(/\A(?:memprof: agent: profiles .*\n)?\z/)
      result.stdout.chomp
    end
    expect(found).to eq(%w[true true false false])
  end

  # As a server with preloaded workers: one agent a process, with a label of its own and no intervals of the
  # parent. A child that becomes another program has none.
  it "follows forks" do
    code = <<~'RUBY'
      require "json"
      def wait_for = (sleep(0.01) until yield)
      def state
        threads = Thread.list.count { |thread| thread.name == "memprof agent" }
        [Memprof::Agent.running?, threads, Memprof::Agent.labels.values_at(:service, :worker)]
      end
      $kept = Array.new(1000) { "parent" * 10 }
      wait_for { Memprof::Agent.intervals.any? }
      workers = 2.times.map do |number|
        reader, writer = IO.pipe
        pid = fork do
          before = Memprof::Agent.intervals.size
          $0 = "puma: cluster worker #{number}: #{Process.ppid} [shop]"
          wait_for { Memprof::Agent.intervals.size > 1 }
          inner = IO.popen("-") { |io| io ? io.read : print(Memprof::Agent.running?) }
          pids = Memprof::Agent.intervals.map { |interval| interval.labels[:pid] }.uniq == [Process.pid]
          writer.puts([before, pids, inner, *state].to_json)
          exit!(0) if number == 1
        end
        writer.close
        [pid, reader]
      end
      short = fork { exec("true") }
      system("true")
      Process.wait(short)
      answers = workers.map { |pid, reader| Process.wait(pid) && JSON.parse(reader.read) }
      reader, writer = IO.pipe
      daemon = fork do
        wait_for { Memprof::Agent.intervals.any? }
        Process.daemon
        had = Memprof::Agent.intervals.any?
        wait_for { Memprof::Agent.intervals.last&.labels[:pid] == Process.pid }
        writer.puts([had, Thread.list.count { |thread| thread.name == "memprof agent" }].to_json)
      end
      writer.close
      Process.wait(daemon)
      puts [*answers, JSON.parse(reader.read), state, Memprof::Agent.intervals.any?].to_json
    RUBY
    result = run_agent(code, env: { "MEMPROF_AGENT" => "service=shop,#{quick}" })
    first, second, daemon, parent, intervals = answer(result)
    expect(first).to eq([0, true, "true", true, 1, ["shop", "puma 0"]])
    expect(second).to eq([0, true, "true", true, 1, ["shop", "puma 1"]])
    expect(daemon).to eq([true, 1])
    expect(parent).to match([true, 1, ["shop", /\A\d+\z/]])
    expect(intervals).to be(true)
  end

  it "ends with a last interval, and with the program's own status" do
    code = <<~'RUBY'
      Memprof::Agent.subscribe { |interval| $stdout.puts("last") || $stdout.flush }
      agent = Memprof::Agent.const_get(:Runner).instance_variable_get(:@current)
      sleep(0.01) until agent.instance_variable_get(:@sampling)
      Thread.new { loop { "garbage".dup } }
      exit 7
    RUBY
    result = run_agent(code, env: { "MEMPROF_AGENT" => "interval=3600" })
    expect([result.stdout, result.status.exitstatus]).to eq(["last\n", 7])
  end

  it "does not hold up the end of the program" do
    code = "Memprof::Agent.subscribe { sleep }; sleep 0.01 until Memprof::Agent.running?; $stdout.puts(:done)"
    began = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    result = run_agent(code, env: { "MEMPROF_AGENT" => "interval=3600,logger=none" })
    expect([result.stdout, result.stderr, result.status.exitstatus]).to eq(["done\n", "", 0])
    expect(Process.clock_gettime(Process::CLOCK_MONOTONIC) - began).to be < 60
  end

  it "works in the main Ractor only, and beside others" do
    code = <<~'RUBY'
      require "json"
      Warning[:experimental] = false
      answer = Ractor.new { Memprof::Agent.stop rescue $!.class.name }.take
      sleep 0.01 until Memprof::Agent.intervals.size > 1
      puts [answer, Memprof::Agent.running?].to_json
    RUBY
    skip "Ractor#take is gone" unless Ractor.method_defined?(:take)
    env = { "MEMPROF_AGENT" => "logger=none,#{quick}" }
    answer = JSON.parse(run_agent(code, env: env).stdout)
    expect(answer).to match([/\A(?:Memprof::Unsupported|Ractor::\w+)\z/, true])
  end

  # Kills itself as soon as the hook is called: everything must be on the disk by then.
  it "leaves evidence that survives kill -9" do
    Dir.mktmpdir do |directory|
      code = <<~'RUBY'
        KEPT = Array.new(5_000) { "kept".dup }
        Memprof::Agent.start(limit: "1MB", check: 0.1, interval: 60, directory: ARGV.first, dump: true,
          on_limit: ->(_) { Process.kill(:KILL, Process.pid) })
        sleep 60
      RUBY
      result = run_agent(code, args: [directory])
      expect(result.status.termsig).to eq(9)
      files = Dir.glob("limit-*/*", base: directory)
      names = files.map { |name| File.basename(name) }
      expect(names).to match_array(%w[about.json memory.json report.json heap.memprof])
      heap = Memprof::Heap.open(File.join(directory, files.find { |name| name.end_with?(".memprof") }))
      expect(heap.objects.where("class = String").size).to be > 5_000
      report = files.find { |name| name.end_with?("report.json") }
      report = JSON.parse(File.read(File.join(directory, report)))
      expect(report).to include("format" => "memprof-report")
    end
  end

  # Gives the block a new memory cgroup with this limit: its directory.
  def with_cgroup(bytes)
    root, limit = [["/sys/fs/cgroup/memory", "memory.limit_in_bytes"], ["/sys/fs/cgroup", "memory.max"]]
      .find { |directory, _| File.exist?(File.join(directory, "cgroup.procs")) }
    skip "no cgroups are mounted here" unless root

    directory = File.join(root.to_s, "memprof-#{Process.pid}")
    Dir.mkdir(directory)
    File.write(File.join(directory, limit), bytes.to_s)
    yield directory
  rescue SystemCallError => e
    skip "can't make a cgroup here: #{e.message}"
  ensure
    begin
      Dir.rmdir(directory) if directory
    rescue SystemCallError
      nil # never made
    end
  end

  it "leaves evidence before the OOM killer comes" do
    with_cgroup(200 << 20) do |cgroup|
      Dir.mktmpdir do |directory|
        code = <<~'RUBY'
          File.write(File.join(ARGV[0], "cgroup.procs"), Process.pid)
          Memprof::Agent.start(limit: "60%", check: 0.1, interval: 60, share: 0.5, budget: 1, directory: ARGV[1])
          log = []
          loop { log << "x" * 100_000 && sleep(0.001) }
        RUBY
        result = run_agent(code, args: [cgroup, directory])
        expect(result.status.termsig).to eq(9)
        expect(result.stderr).to match(/the cgroup uses .* of 200\.0 MiB \(\d\d %\): wrote about\.json, /)
        about = JSON.parse(File.read(Dir.glob(File.join(directory, "limit-*/about.json")).first))
        expect(about["reason"]).to start_with("the cgroup uses")
        report = JSON.parse(File.read(Dir.glob(File.join(directory, "limit-*/report.json")).first))
        expect(report["totals"]["retained"]["objects"]).to be > 0
      end
    end
  end
end
