# frozen_string_literal: true

require "json"
require "memprof"
require "tmpdir"

# What grows in processes that run.
RSpec.describe "memprof leaks PID" do
  around { |example| Dir.mktmpdir { |directory| Dir.chdir(directory) { example.run } } }

  before { skip "needs root, or the permission to trace any process" unless Process.euid.zero? }

  leaking = <<~RUBY
    $stdout.sync = true
    class Note
      def initialize(number) = @text = "secret \#{number} " * 10
    end
    NOTES = Hash.new { |hash, key| hash[key] = [] }
    puts :ready
    loop { 10.times { |number| NOTES[number] << Note.new(number) }; sleep 0.005 }
  RUBY

  def leaks(*arguments, **options)
    run_memprof("leaks", "--for", "2s", *arguments, env: { "MEMPROF_LIBRARY" => "library" }, timeout: 300,
      **options)
  end

  def found(*arguments) = groups_of(leaks("--json", *arguments))

  def groups_of(result)
    expect(result.status.exitstatus).to eq(0), result.stderr
    expect(JSONSchema.of("leaks").faults(JSON.parse(result.stdout))).to eq([])
    JSON.parse(result.stdout, symbolize_names: true).fetch(:groups)
  end

  def holder(finding) = finding[:retained_by].map { |part| part.is_a?(Hash) ? part[:file] : part }.join

  def threads_of_memprof(pid)
    Dir.glob("/proc/#{pid}/task/*/comm").map { |path| File.read(path) }.grep(/\Amemprof/)
  end

  it "names what grows in a process that has loaded nothing, and loads nothing" do
    plain_program(leaking) do |pid, _|
      stdout, stderr, status = leaks(pid)
      expect(status.exitstatus).to eq(0), stderr
      expect(stdout).to match(/\Aruby-e \(#{pid}\): 1 finding, in 3 dumps$/)
        .and match(/^1\. [\d,]+ more Note instances retain /)
        .and match(/^Retained by +NOTES -> Hash\[\*\] -> Array\[\*\]$/)
        .and match(/^RSS (?:grew|stayed) /)
      expect(stderr).to include("process #{pid} (ruby-e): 3 dumps in 2.00 s, without values\n", "so far: ")
      expect(stderr).to match(/no process was paused for more than [\d.]+ ms/)
      expect(File.read("/proc/#{pid}/maps")).not_to include("memprof")
    end
    dumps = Dir.glob("library/*.memprof")
    expect(dumps.map { |path| File.stat(path).mode & 0o777 }).to eq([0o600] * 3)
    expect(dumps.map { |path| File.binread(path) }.join).not_to include("secret")
  end

  it "names the line where memprof/signal is loaded, and what an agent there knows" do
    File.write("app.rb", leaking)
    program = [RbConfig.ruby, "-I#{ChildRuby::LIB}", "-rmemprof/signal", "-rmemprof/agent", "app.rb"]
    env = { "MEMPROF_DIR" => Dir.pwd, "XDG_STATE_HOME" => Dir.pwd,
            "MEMPROF_AGENT" => "interval=0.2,budget=1,logger=none,profiles=#{Dir.pwd}/profiles" }
    plain_program("", *program, env: env) do |pid, _|
      eventually("a profile") { Dir.glob("profiles/*.pb.gz").any? }
      result = leaks("--json", pid)
      expect(result.stderr).to match(/^memprof: process #{pid} runs memprof's agent; in the \d.* live/)
        .and match(%r{^each interval is .*: #{Dir.pwd}/profiles/memprof-.*-#{pid}\.pb\.gz$})
      group, = groups_of(result)
      finding = group[:findings].first
      expect([finding[:class], holder(finding)]).to eq(["Note", "NOTES -> Hash[*] -> Array[*]"])
      expect(finding[:lines].first).to include(line: 7, class: "Note", own: true)
      expect(group[:processes]).to eq([pid])
    end
  end

  it "names the line with --attach, and leaves nothing behind" do
    File.write("app.rb", leaking)
    plain_program("", RbConfig.ruby, "app.rb") do |pid, _|
      before = Dir.children("/proc/#{pid}/fd").size
      result = leaks("--attach", "--for", "4s", pid)
      expect(result.status.exitstatus).to eq(0), result.stderr
      expect(result.stderr).to include("loads memprof, which tracks one object in 8, and malloc")
      expect(result.stdout).to match(/^Allocated at +app\.rb:7(?: in \S+)?: Note \(/)
        .and match(/^Source +loop \{ 10\.times/)
        .and include("one object in 8 was tracked")
      eventually("the end of the threads") { threads_of_memprof(pid).empty? }
      expect(Dir.children("/proc/#{pid}/fd").size).to eq(before)
      expect(run_memprof("attach", pid, "--eval",
        file("Memprof.running? || Memprof::Malloc.running?")).stdout)
        .to eq("false\n")
    end
  end

  def file(code)
    File.write("code.rb", code)
    "code.rb"
  end

  it "says what is leaked where native memory grows" do
    begin
      require "fiddle"
    rescue LoadError
      skip "fiddle is missing"
    end
    forgetful = <<~RUBY
      require "fiddle"
      long = Fiddle::TYPE_LONG
      malloc, memset = { malloc: [long], memset: [long, Fiddle::TYPE_INT, long] }.map do |name, types|
        Fiddle::Function.new(Fiddle.dlopen(nil)[name.to_s], types, long)
      end
      $stdout.sync = true
      puts :ready
      loop { 100.times { memset.call(malloc.call(10_000), 1, 10_000) }; sleep 0.2 }
    RUBY
    plain_program(forgetful) do |pid, _|
      stdout, stderr, status = leaks(pid)
      expect(status.exitstatus).to eq(0), stderr
      text = stdout.tr("\n", " ")
      expect(text).to include("no Ruby object grows, native memory does")
      said = /Nothing references ([\d,]+) blocks of malloc \(\S+ [KM]iB, ([\d,]+) of them of 9.8 KiB\)/
      count, same = text.match(said).captures.map { |number| number.delete(",").to_i }
      expect([same, count - same]).to match([be > 500, be < 100])
    end
  end

  it "counts workers together, and says which one ended" do
    code = <<~RUBY
      KEPT = []
      workers = Array.new(3) do |number|
        fork do
          $0 = "worker: \#{number}"
          loop { 20.times { |n| KEPT << "text \#{n}" }; sleep 0.01 }
        end
      end
      puts :ready
      Process.wait
      sleep
    RUBY
    plain_program(code) do |pid, _|
      workers = []
      eventually("three workers") do
        workers = File.read("/proc/#{pid}/task/#{pid}/children").split.map(&:to_i)
        workers.size == 3 && workers.all? { |one| File.read("/proc/#{one}/cmdline").start_with?("worker") }
      end
      ends = Thread.new do
        eventually("the first dumps") { Dir.glob("library/*.memprof").size >= 4 }
        Process.kill(:KILL, workers.last)
      end
      groups = found("--for", "4s", pid)
      ends.join
      expect(groups.map { |group| group.values_at(:processes, :ended) })
        .to eq([[[pid], []], [workers.first(2), [workers.last]]])
      expect(groups.first[:findings]).to eq([])
      finding = groups.last[:findings].first
      expect([finding[:class], holder(finding)]).to eq(["String", "KEPT -> Array[*]"])
    end
  end

  it "exits with --fail by what it has found" do
    plain_program(leaking) { |pid, _| expect(leaks("--fail", pid).status.exitstatus).to eq(1) }
    plain_program("puts :ready\nloop { sleep 0.1 }") do |pid, _|
      result = leaks("--fail", pid)
      expect([result.stdout.lines.first, result.status.exitstatus])
        .to eq(["ruby-e (#{pid}): nothing grows\n", 0]), result.stderr
    end
  end

  it "gives the verdict so far when it is interrupted, and leaves no file behind" do
    plain_program(leaking) do |pid, _|
      memprof = [RbConfig.ruby, "-I#{ChildRuby::LIB}", File.join(ChildRuby::ROOT, "exe/memprof")]
      Dir.mkdir("tmp")
      places = { "MEMPROF_LIBRARY" => "library", "TMPDIR" => File.expand_path("tmp") }
      command = Process.spawn(places, *memprof, "leaks", "--for", "600s", pid.to_s, out: "out", err: "err")
      eventually("the first dump") { Dir.glob("library/*.memprof").any? }
      Process.kill(:INT, command)
      expect(Process.wait2(command).last.exitstatus).to eq(130)
      expect(Dir.children("tmp")).to eq([])

      command = Process.spawn({ "MEMPROF_LIBRARY" => "other" }, *memprof, "leaks", "--for", "4s", pid.to_s,
        out: "out", err: "err")
      eventually("a first verdict") { File.read("err").include?("so far: ") }
      Process.kill(:INT, command)
      expect(Process.wait2(command).last.exitstatus).to eq(0)
      expect(File.read("out")).to include("1 finding, in 2 dumps", "two dumps show no trend")
      expect(File.read("err")).to include("interrupted: this is the verdict so far")
    end
  end

  it "answers for a process whose children end at any moment" do
    plain_program(<<~RUBY) do |pid, _|
      KEPT = []
      puts :ready
      loop do
        child = fork { sleep 0.02 }
        100.times { KEPT << "kept " * 20 }
        Process.wait(child)
      end
    RUBY
      expect(leaks(pid)).to have_attributes(
        stdout: a_string_matching(/^Retained by +KEPT -> Array\[\*\]$/), status: be_success
      )
    end
  end

  it "gives the verdict so far on a process that ends after the second dump" do
    plain_program(<<~RUBY) do |pid, _|
      KEPT = []
      puts :ready
      # As long as two dumps of it take.
      until Dir.glob("library/*.memprof").size >= 2
        KEPT << "kept " * 20
        sleep 0.001
      end
    RUBY
      result = leaks("--for", "6s", "--fail", pid)
      expect(result.stdout).to match(/^1\. [\d,]+ more String instances retain /)
        .and match(/1 finding, in 2 dumps/)
      expect([result.status.exitstatus, result.stderr]).to match([1, /process \d+ ended$/])
    end
  end

  it "does not take handlers of the program for its own" do
    plain_program(<<~RUBY) do |pid, _|
      trap("URG") { File.write("asked", "") }
      KEPT = []
      puts :ready
      loop { KEPT << "kept " * 20; sleep 0.001 }
    RUBY
      expect(leaks(pid)).to have_attributes(
        stdout: a_string_matching(/^Retained by +KEPT -> Array\[\*\]$/), status: be_success
      )
      expect(File.exist?("asked")).to be(false)
    end
  end

  it "accuses neither finalizers of garbage nor weak maps" do
    plain_program(<<~RUBY) do |pid, _|
      class Handle
        def self.closing(number) = proc { number }
        def initialize(number) = ObjectSpace.define_finalizer(self, Handle.closing(number))
      end
      SEEN = ObjectSpace::WeakMap.new
      # What runs once is there before it is looked at.
      turn = ->(number) { Handle.new(number); key = "key \#{number}"; SEEN[key] = "value \#{number}" * 3 }
      2000.times(&turn)
      puts :ready
      (2000..).each { |number| turn.call(number); sleep 0.002 }
    RUBY
      expect(leaks("--for", "3s", "--fail", pid)).to have_attributes(
        stdout: a_string_including("nothing grows"), status: be_success
      )
    end
  end

  it "does not look at itself, nor at a process that is stopped" do
    command = [RbConfig.ruby, "-I#{ChildRuby::LIB}", "#{ChildRuby::ROOT}/exe/memprof", "leaks", "--for", "1s"]
    plain_program(<<~RUBY) do |pid, io|
      puts :ready
      require "open3"
      out, status = Open3.capture2e({ "MEMPROF_LIBRARY" => "library" }, *#{command}, "--fail", Process.pid.to_s)
      puts out.lines.grep(/nothing grows|RSS grew by/), status.exitstatus, :end
      sleep
    RUBY
      said = []
      said << io.gets.chomp until said.last == "end"
      expect(said).to match([a_string_including("nothing grows"), "0", "end"])
      Process.kill(:STOP, pid)
      eventually("it is stopped") { File.read("/proc/#{pid}/stat").match?(/\) T /) }
      expect(leaks(pid)).to have_attributes(
        stderr: "memprof: process #{pid} is stopped, until it gets SIGCONT\n",
        status: have_attributes(exitstatus: 2)
      )
    ensure
      Process.kill(:CONT, pid)
    end
  end

  it "refuses options that are of processes for a file" do
    File.write("file", "")
    %w[--attach --force-copy].each do |option|
      _, stderr, status = run_memprof("leaks", option, "file")
      expect([stderr, status.exitstatus]).to eq(["memprof: #{option} needs a PID\n", 2])
    end
  end

  it "refuses what it can't watch, in a line" do
    gone = Process.spawn("true").tap { |pid| Process.wait(pid) }
    File.write("file", "")
    plain = Process.spawn("sleep", "100")
    { [gone] => "no such process: #{gone}", [plain] => "process #{plain} runs no Ruby",
      ["none"] => "\"none\" is neither a process id nor a file",
      [plain, "file"] => "expected files or process ids, not both",
      ["--for", "2y", plain] => "invalid --for \"2y\"; expected a time above 0 and of at most a week",
      ["--threshold", 2, plain] => "--threshold needs a single FILE" }.each do |arguments, message|
      _, stderr, status = leaks(*arguments)
      expect([stderr, status.exitstatus]).to match([/\Amemprof: #{Regexp.escape(message)}.*\n\z/, 2])
    end
  ensure
    Process.kill(:KILL, plain)
    Process.wait(plain)
  end

  it "copies no process where that may bring its cgroup to the limit, unless it is to" do
    memory = instance_double(Memprof::Memory, room: 10 << 20, private_bytes: 20 << 20)
    allow(Memprof::Memory).to receive(:of).and_return(memory)
    require "memprof/cli"
    plain_program("puts :ready\nsleep") do |pid, _|
      watch = ->(room) do
        targets = [Memprof::CLI::Target.new(pid)]
        terminal = Memprof::CLI::Terminal.new(err: StringIO.new)
        Memprof::CLI::Watch.new(targets, terminal, seconds: 0.1, room: room).run {}
      end
      ENV["MEMPROF_LIBRARY"] = "library"
      expect { watch.(true) }.to raise_error(Memprof::CLI::UsageError,
        "a copy of process #{pid} may take 20.0 MiB, and its cgroup has room for 10.0 MiB; " \
        "--force-copy copies it anyway")
      watch.(false)
      expect(Dir.glob("library/*.memprof").size).to eq(3)
    ensure
      ENV.delete("MEMPROF_LIBRARY")
    end
  end
end
