# frozen_string_literal: true

require "json"
require "tmpdir"
require "zlib"

RSpec.describe "memprof dump, start, stop and stats" do
  around { |example| Dir.mktmpdir { |directory| Dir.chdir(directory) { example.run } } }

  # Of so many processes.
  def sockets(program, number)
    eventually("the sockets") do
      paths = Dir.glob(File.join(program.directory, "*.sock"))
      paths.size == number && paths.all? { |path| listened_to?(path) }
    end
  end

  it "brings the dump here, named after the application, and says what to do next" do
    live_program("$kept = \"kept %d\" % 1\nputs :made\nsleep") do |program|
      program.line
      socket_of(program)
      stdout, stderr, status = run_memprof("dump", "--pid", program.pid)
      expect(status.exitstatus).to eq(0)
      name = stdout.chomp
      expect(name).to match(/\A[\w.-]+-#{program.pid}-\d{8}-\d{6}\.json\z/)
      expect(Dir.children(".")).to eq([name])
      expect(File.stat(name).mode & 0o777).to eq(0o600)
      expect(expect_whole(name).map { |record| record["data"] }).to include("kept 1")
      expect(stderr).to match(/\Amemprof: [\d.]+ MiB; next: memprof leaks #{name}$/)
      expect(program.dumps).to be_empty
    end
  end

  it "says that it cannot write the dump, and takes no standard output for a file" do
    skip "no /dev/full here" unless File.exist?("/dev/full")
    live_program("puts :made\nsleep") do |program|
      program.line
      socket_of(program)
      _, stderr, status = run_memprof("dump", "--pid", program.pid, "--output", "-")
      expect([stderr, status.exitstatus]).to eq(["memprof: cannot write --output -: a file is required\n", 2])
      _, stderr, status = run_memprof("dump", "--pid", program.pid, "--output", "/dev/full")
      expect([stderr, status.exitstatus])
        .to eq(["memprof: cannot write /dev/full: No space left on device\n", 2])
      expect(program.dumps).to be_empty
    end
  end

  it "asks nothing of a stopped process, which would do it later" do
    live_program("puts :made\nsleep") do |program|
      program.line
      socket_of(program)
      program.signal(:STOP)
      eventually("the stop") { File.read("/proc/#{program.pid}/status").include?("State:\tT") }
      %w[dump start stats].each do |verb|
        expect(run_memprof(verb, "--pid", program.pid).stderr)
          .to eq("memprof: process #{program.pid} is stopped, until it gets SIGCONT\n")
      end
      expect(run_memprof("memory", program.pid)).to be_success
      program.signal(:CONT)
      expect(run_memprof("stats", "--pid", program.pid)).to be_success
      expect(program.dumps).to be_empty
    end
  end

  it "named no file after the code of `ruby -e`, and no file so that it looks like an option" do
    live_program("secret_411111 = 1\nputs :made\nsleep") do |program|
      program.line
      socket_of(program)
      name = run_memprof("dump", "--pid", program.pid).stdout
      expect(name).to match(/\Aruby-e-#{program.pid}-[\d-]+\.json$/)
    end
  end

  it "prints what a hostile process answers as text only" do
    error = "\e]0;owned\a no \u202e dump\n\e[31mred"
    { { ok: false, error: error } => [%w[dump start stop stats], "\\e]0;owned"],
      { ok: true, format: "\e[31m" } => [%w[dump], "\\e[31m"],
      { ok: true, format: "memprof", compression: 7 } => [%w[dump], "unknown compression 7"],
      { ok: true, lines: ["\e[31m"] } => [%w[stats], "\\e[31m"] }.each do |answer, (verbs, shown)|
      verbs.each do |verb|
        stdout, stderr, status = hostile(answer) { |pid| run_memprof(verb, "--pid", pid) }
        expect(stdout + stderr).to include(shown)
        expect(stdout + stderr).not_to match(/[\e\a\u202e]/)
        expect(status.exitstatus).to be <= 2
      end
    end
  end

  # A process that answers whatever it is asked with the same line.
  def hostile(answer)
    live_program(<<~RUBY) do |program|
      sleep(0.01) until (path = Dir.glob(File.join(ENV.fetch("MEMPROF_DIR"), "*.sock")).first)
      File.unlink(path)
      server = UNIXServer.new(path)
      puts :made
      loop do
        client = server.accept
        client.gets
        2.times { client.puts(#{JSON.generate(answer).inspect}) }
        client.close
      end
    RUBY
      program.line
      yield(program.pid)
    end
  end

  it "writes it where and how it is wanted" do
    live_program do |program|
      socket_of(program)
      run_memprof("dump", "--pid", program.pid, "--output", "heap.json.gz", "--contents", "none")
      expect(File.binread("heap.json.gz", 2)).to eq("\x1F\x8B".b)
      run_memprof("dump", "-p", program.pid, "-o", "heap.out", "-f", "objspace")
      expect(JSON.parse(File.readlines("heap.out").last)).to include("address")
      _, stderr, status = run_memprof("dump", "--pid", program.pid, "--output", "no/heap.json")
      expect([stderr,
        status.exitstatus]).to match([%r{\Amemprof: cannot write --output no/heap.json: no such dir}, 2])
      expect(program.dumps).to be_empty
    end
  end

  it "leaves to the process's settings what is not asked for" do
    env = { "MEMPROF_DUMP_FORMAT" => "objspace", "MEMPROF_DUMP_VALUES" => "none",
            "MEMPROF_DUMP_COMPRESSION" => "gzip" }
    live_program("$kept = \"kept %d\" % 1\nputs :made\nsleep", env: env) do |program|
      program.line
      socket_of(program)
      run_memprof("dump", "--pid", program.pid, "--output", "heap.json")
      expect(expect_whole("heap.json").first).to include("values" => "none")
      expect(File.read("heap.json")).not_to include("kept 1")
      expect(run_memprof("dump", "--pid", program.pid, "--format", "binary").stdout).to end_with(".memprof\n")
      name = run_memprof("dump", "--pid", program.pid, "--contents", "full").stdout.chomp
      expect(name).to end_with(".json.gz")
      text = Zlib::GzipReader.open(name, &:read)
      expect(text).to start_with('{"type":"ROOT"').and include('"value":"kept 1"')
    end
  end

  it "asks by the signal where there is no socket" do
    taken = "File.write(File.join(ENV['MEMPROF_DIR'], \"memprof-\#{$$}.sock\"), '')"
    live_program(before: taken) do |program|
      stdout, _, status = run_memprof("dump", "--pid", program.pid)
      expect(status.exitstatus).to eq(0)
      expect_whole(stdout.chomp)
      _, stderr, status = run_memprof("dump", "--pid", program.pid, "--contents", "none")
      expect([stderr,
        status.exitstatus]).to match([/\Amemprof: .* has no socket, and a signal has no options.*\n\z/, 2])
      _, stderr, status = run_memprof("stats", "--pid", program.pid)
      expect([stderr, status.exitstatus]).to match([/\Amemprof: .* or has no socket: add `require.*\n\z/, 2])
    end
  end

  it "dumps every worker with --children" do
    live_program("pids = 2.times.map { fork { sleep } }\nputs pids.join(' ')\nsleep") do |program|
      pids = program.line.split.map(&:to_i)
      sockets(program, 3)
      stdout, _, status = run_memprof("dump", "--pid", program.pid, "--children")
      expect(status.exitstatus).to eq(0)
      expect(stdout.lines.map { |name| records(name.chomp).first["pid"] }).to match_array(pids)
      run_memprof("dump", "--pid", program.pid, "--children", "--output", "heap.json.gz")
      expect(Dir.glob("heap.*")).to match_array(pids.map { |pid| "heap.#{pid}.json.gz" })
      _, stderr, status = run_memprof("dump", "--pid", pids[0], "--children")
      expect([stderr, status.exitstatus]).to match([/no children that run Ruby\n\z/, 2])
    end
  end

  it "dumps the other workers with --children if one can't" do
    live_program(<<~'RUBY') do |program|
      broken = fork do
        Memprof::Dump.define_singleton_method(:stream) { |*| raise Memprof::Error, "broken" }
        sleep
      end
      puts [broken, fork { sleep }].join(" ")
      sleep
    RUBY
      broken, = program.line.split
      sockets(program, 3)
      stdout, stderr, status = run_memprof("dump", "--pid", program.pid, "--children")
      expect(stdout.lines.size).to eq(1)
      expect(stderr).to include("memprof: process #{broken} aborted the dump: broken\n")
      expect(status.exitstatus).to eq(2)
    end
  end

  it "starts, shows and stops tracking" do
    live_program("$kept = Array.new(7) { Object.new }\nputs :made\nsleep") do |program|
      program.line
      socket_of(program)
      expect(run_memprof("stats", "--pid", program.pid).stdout).to include("      7 -e:5:Object\n")
      expect(run_memprof("stats", "--pid", program.pid, "--limit", 2).stdout.lines.size).to eq(2)
      expect(JSON.parse(run_memprof("stats", program.pid, "--json").stdout)["objects"])
        .to include({ "count" => 7, "file" => "-e", "line" => 5, "class" => "Object" })
      expect(run_memprof("start", "--pid",
        program.pid).stdout).to eq("tracking was already running in process #{program.pid}\n")
      expect(run_memprof("stop", "--pid",
        program.pid).stdout).to eq("tracking stopped in process #{program.pid}\n")
      expect(run_memprof("stop", "--pid",
        program.pid).stdout).to eq("tracking was not running in process #{program.pid}\n")
      _, stderr, status = run_memprof("stats", "--pid", program.pid)
      expect([stderr, status.exitstatus]).to eq(
        [
          "memprof: process #{program.pid}: objects are not tracked; " \
          "run `memprof start` first\n", 2
        ]
      )
      expect(run_memprof("start", "--pid", program.pid, "--sample",
        10).stdout).to start_with("tracking started in process ")
    end
  end

  it "sends no signal that the process itself refuses to take for one" do
    taken = "File.write(File.join(ENV['MEMPROF_DIR'], \"memprof-\#{$$}.sock\"), '')"
    live_program(before: taken, env: { "MEMPROF_SIGNAL" => "SEGV" }) do |program|
      run_memprof("dump", "--pid", program.pid)
      expect { Process.kill(0, program.pid) }.not_to raise_error
      expect(program.stderr).not_to include("[BUG]")
    end
  end

  it "sends no signal to a process that has not loaded memprof/signal" do
    pid = Process.spawn(RbConfig.ruby, "-e", "trap('USR1') { exit 3 }; sleep")
    run_memprof("dump", "--pid", pid, "--output", "heap.json", env: { "MEMPROF_SIGNAL" => "USR1" })
    _, stderr, status = run_memprof("stats", "--pid", pid, env: { "MEMPROF_SIGNAL" => "USR1" })
    expect([stderr, status.exitstatus]).to match(
      [/\Amemprof: process #{pid} has not loaded memprof.signal.*add `require "memprof.signal"`/, 2]
    )
    expect(Process.wait(pid, Process::WNOHANG)).to be_nil
  ensure
    Process.kill(:KILL, pid)
    Process.wait(pid)
  end

  it "dumps a process whose disk is full" do
    with_file_system("size=256k") do |directory|
      system("dd if=/dev/zero of=#{directory}/full", err: File::NULL)
      live_program(env: { "MEMPROF_DIR" => directory }) do |program|
        eventually("the socket") { listened_to?(File.join(directory, "memprof-#{program.pid}.sock")) }
        stdout, _, status = run_memprof("dump", "--pid", program.pid)
        expect(status.exitstatus).to eq(0)
        expect_whole(stdout.chomp)
        expect(Dir.children(directory).grep_v(/sock/)).to eq(["full"])
      end
    end
  end

  it "reaches into a container, with its own root and process ids" do
    skip "needs root and unshare" unless Process.euid.zero? && system("unshare", "-fpm", "true",
      err: File::NULL)
    directory = Dir.mktmpdir
    code = 'require "memprof/signal"; puts $$; $stdout.flush; sleep'
    script = "mount -t tmpfs none #{directory} && exec \"$@\""
    reader, writer = IO.pipe
    environment = { "MEMPROF_DIR" => directory, "RUBYOPT" => nil }
    pid = Process.spawn(environment, "unshare", "-fpm", "--mount-proc", "sh", "-c", script,
      "sh", RbConfig.ruby, "-I#{ChildRuby::LIB}", "-e", code, out: writer, pgroup: true)
    writer.close
    expect(reader.gets).to eq("1\n")
    inside = eventually("the process") { File.read("/proc/#{pid}/task/#{pid}/children").to_i.nonzero? }
    eventually("its socket") { listened_to?("/proc/#{inside}/root#{directory}/memprof-1.sock") }
    expect(Dir.children(directory)).to be_empty
    stdout, stderr, = run_memprof("dump", "--pid", inside)
    expect(stdout).to match(/\A\S+-#{inside}-.*\.json\n\z/), stderr
    expect(expect_whole(stdout.chomp).first["pid"]).to eq(1)
    expect(run_memprof("stop", "--pid", inside).stdout).to include("tracking stopped")
  ensure
    Process.kill(:KILL, -pid) if pid
    Process.wait(pid) if pid
    FileUtils.rm_rf(directory) if directory
  end

  describe "wrong use" do
    {
      "without a process" => [%w[dump], /PID is missing; see `memprof help dump`/],
      "with no such process" => [%w[dump --pid 99999999], /no such process: 99999999/],
      "with a number that is none" => [%w[stats --pid 0],
        /invalid --pid "0"; expected a number of at least 1/],
      "with an endless number" => [%w[stop --pid 99999999999999999999],
        /invalid PID "9+"; expected a process id/],
      "with arguments" => [%w[start 1 now], /unexpected arguments: now; see `memprof help start`/],
      "with unknown values" => [%w[dump --pid 1 --contents some],
        /invalid --contents "some"; expected one of: full, truncate/],
      "with a binary that is compressed twice" => [%w[dump --pid 1 --output x.memprof.gz],
        /compressed already/]
    }.each do |situation, (arguments, message)|
      it "is reported in one line, #{situation}" do
        stdout, stderr, status = run_memprof(*arguments)
        expect(stderr).to match(/\Amemprof: .*#{message}.*\n\z/)
        expect([stdout, status.exitstatus]).to eq(["", 2])
      end
    end
  end
end
