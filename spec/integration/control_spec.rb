# frozen_string_literal: true

require "json"
require "socket"
require "memprof/control/client"

RSpec.describe "The control socket of memprof/signal" do
  def ask(path, request)
    client = eventually("a connection") { Memprof::Control::Client.connect(path, uid: Process.euid) }
    client.ask(request)
  ensure
    client&.close
  end

  # Whatever bytes, and what comes back.
  def raw(path, bytes)
    UNIXSocket.open(path) do |socket|
      socket.write(bytes)
      socket.close_write
      socket.read
    end
  end

  it "is there for its owner only, and gone at the end" do
    live_program("gets") do |program|
      path = socket_of(program)
      expect(File.lstat(path).mode & 0o777).to eq(0o600)
      program.continue
      program.wait
      expect(program.files).to be_empty
    end
  end

  it "starts, stops and shows tracking" do
    live_program("$kept = Array.new(7) { Object.new }\nputs :made\nsleep") do |program|
      program.line
      path = socket_of(program)
      expect(ask(path, { do: "ping" })).to include("pid" => program.pid, "memprof" => Memprof::VERSION,
        "ruby" => RUBY_DESCRIPTION, "tracking" => true)
      stats = ask(path, { do: "stats" })["lines"]
      expect(stats).to include("      7 -e:5:Object")
      expect(stats.grep(%r{/lib/memprof/|/json/|/socket\.rb})).to be_empty
      expect(ask(path, { do: "stats", limit: 1 })["lines"].size).to eq(1)
      expect(ask(path, { do: "start" })["changed"]).to be(false)
      expect(ask(path, { do: "stop" })["changed"]).to be(true)
      expect {
        ask(path, { do: "stats" })
      }.to raise_error(Memprof::Control::Broken, /objects are not tracked/)
      expect {
        ask(path, { do: "start", sample: 0 })
      }.to raise_error(Memprof::Control::Broken, /sample must be/)
      expect(ask(path, { do: "start", sample: 10 })["changed"]).to be(true)
    end
  end

  it "says where its memory goes" do
    skip "/proc is needed" unless File.readable?("/proc/self/smaps")
    live_program do |program|
      memory = ask(socket_of(program), { do: "memory" })["memory"]
      expect(memory["items"].sum { |item| item["bytes"] }).to eq(memory["rss"])
      stdout, stderr, status = run_memprof("memory", program.pid.to_s)
      expect([stderr, status.exitstatus]).to eq(["", 0])
      expect(stdout).to match(/\A#{program.pid}: RSS: .*^ *[\d.]+ [KM]iB .* instruction sequences /m)
    end
  end

  it "says where the memory of a server's processes goes" do
    skip "/proc is needed" unless File.readable?("/proc/self/smaps")
    live_program("puts fork { sleep }\nsleep") do |program|
      worker = program.line.to_i
      [program.pid, worker].each { |pid| socket_of(program, pid) }
      stdout, stderr, status = run_memprof("memory", "--workers", program.pid.to_s)
      expect([stderr, status.exitstatus]).to eq(["", 0])
      expect(stdout).to match(/\A#{program.pid}: 2 processes, .*^ +RSS +PSS .* Ruby +PID  Process\n/m)
      expect(stdout).to match(/ #{worker}  /)
      json = run_memprof("memory", "--workers", "--json", program.pid.to_s).stdout
      processes = JSON.parse(json)["processes"]
      expect(processes.map { |process| process["pid"] }).to eq([program.pid, worker])
      processes.each { |process| expect(process["ruby"]).to be_between(1_000_000, process["rss"]) }
      stdout, stderr, status = run_memprof("memory", "--workers", __FILE__)
      expect([stdout, status.exitstatus]).to eq(["", 2])
      expect(stderr).to end_with("; expected a process id\n").and have_attributes(lines: [anything])
    end
  end

  it "writes a dump with the given options, and reports when it is complete" do
    live_program do |program|
      client = Memprof::Control::Client.connect(socket_of(program))
      path = client.ask({ do: "dump", format: "memprof", values: "none", compression: "gzip" })["path"]
      expect(path).to match(%r{\A#{program.directory}/memprof-#{program.pid}-\d+\.json\.gz\z})
      answer = client.answer(seconds: 120)
      expect(answer).to include("ok" => true, "format" => "memprof", "bytes" => File.size(path))
      expect(answer["objects"]).to be > 1000
      expect { ask(socket_of(program), { do: "dump", format: "xml" }) }
        .to raise_error(Memprof::Control::Broken, /unknown format "xml"/)
    end
  end

  it "writes one dump at a time" do
    code = "x = Array.new(40_000) { |i| i.to_s * 3 }\nputs :made\nsleep"
    live_program("#{LivePrograms::HALTING}\n#{code}") do |program|
      program.line
      first = Memprof::Control::Client.connect(socket_of(program))
      first.ask({ do: "dump" })
      child = program.line.to_i
      expect { ask(socket_of(program), { do: "dump" }) }
        .to raise_error(Memprof::Control::Broken, "a dump is being written already")
      Process.kill(:CONT, child)
      expect(first.answer(seconds: 120)["objects"]).to be > 40_000
    end
  end

  it "refuses invalid input, and continues" do
    live_program do |program|
      path = socket_of(program)
      answers = ["\n", "nonsense\n", "[1]\n", "{\"do\":\"dance\"}\n", "{}\n", "\xFF\n"]
        .map { |bytes| JSON.parse(raw(path, bytes)) }
      expect(answers).to all(include("ok" => false, "error" => a_kind_of(String)))
      expect(raw(path, "")).to be_empty
      expect(raw(path, "{\"do\":")).to include("the connection broke off")
      huge = UNIXSocket.open(path) do |socket|
        socket.write("x" * 200_000)
        socket.read
      rescue Errno::EPIPE, Errno::ECONNRESET
        "broken off"
      end
      expect(huge).to match(/longer than 65536 bytes|broken off/)
      expect(ask(path, { do: "ping" })["pid"]).to eq(program.pid)
      expect(program.stderr).to be_empty
    end
  end

  it "does not wait for who says nothing" do
    live_program do |program|
      path = socket_of(program)
      idle = UNIXSocket.open(path)
      program.signal
      expect(JSON.parse(idle.read)).to include("ok" => false, "error" => "no answer within 5 s")
      expect(ask(path, { do: "ping" })["pid"]).to eq(program.pid)
      eventually("the dump") { program.dumps.first }
    end
  end

  it "waits while the process has no descriptor left" do
    live_program(<<~'RUBY') do |program|
      used = -> { Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) }
      limits = Process.getrlimit(:NOFILE)
      gets
      Process.setrlimit(:NOFILE, 4, limits.last)
      before = used.call
      puts :shut
      gets
      puts used.call - before
      Process.setrlimit(:NOFILE, *limits)
      sleep
    RUBY
      path = socket_of(program)
      program.continue
      program.line
      UNIXSocket.open(path) do |socket|
        socket.write("{\"do\":\"ping\"}\n")
        sleep(1)
        program.continue
        expect(program.line.to_f).to be < 0.5
        expect(JSON.parse(socket.read)).to include("ok" => true)
      end
    end
  end

  it "is each process's own after a fork" do
    live_program("fork { puts $$; sleep }\nsleep") do |program|
      pid = program.line.to_i
      expect(ask(socket_of(program, pid), { do: "ping" })["pid"]).to eq(pid)
      expect(ask(socket_of(program, pid), { do: "stop" })["changed"]).to be(true)
      expect(ask(socket_of(program), { do: "ping" })).to include("pid" => program.pid, "tracking" => true)
    end
  end

  describe "a path that is taken" do
    # Puts something where the socket is to be, before the program gets there.
    def with(code)
      before = "path = File.join(ENV['MEMPROF_DIR'], \"memprof-\#{$$}.sock\"); require 'socket'; #{code}"
      live_program(before: before) { |program|
        yield(program, File.join(program.directory, "memprof-#{program.pid}.sock"))
      }
    end

    it "is taken over from a process that is gone" do
      with("UNIXServer.new(path).close") do |program, path|
        expect(ask(path, { do: "ping" })["pid"]).to eq(program.pid)
      end
    end

    it "is left to one that is listening" do
      with("$server = UNIXServer.new(path)") do |program, path|
        eventually("a warning") { program.stderr.end_with?("\n") }
        expect(program.stderr).to match(/answers to its signal only: another process listens at #{path}\n\z/)
        program.signal
        eventually("a dump") { program.dumps.first }
      end
    end

    it "is left if it is no socket" do
      with("File.write(path, 'mine')") do |program, path|
        eventually("a warning") { program.stderr.end_with?("\n") }
        expect(program.stderr).to match(/answers to its signal only: .* exists and is not a socket\n\z/)
        expect(File.read(path)).to eq("mine")
      end
    end

    it "may be too long for a socket" do
      directory = File.join(Dir.mktmpdir, "x" * 120)
      FileUtils.mkdir(directory)
      # The child is made when its parent has said so: then it need not be said again.
      live_program("gets\nfork { sleep }\nputs :forked\nsleep", directory: directory) do |program|
        eventually("a warning") { program.stderr.end_with?("\n") }
        program.continue
        program.line
        program.signal
        eventually("a dump") { program.dumps.first }
        expect(program.stderr.lines).to match(
          [/ answers to its signal only: .* longer than a socket's path may be\n\z/]
        )
      end
    end
  end

  it "removes the sockets of processes that were killed" do
    directory = Dir.mktmpdir
    stale = File.join(directory, "memprof-99999999.sock")
    UNIXServer.new(stale).close
    File.write(File.join(directory, "memprof-88888888.sock"), "no socket")
    live_program(directory: directory) do |program|
      socket_of(program)
      eventually("the removal") { !File.exist?(stale) }
      expect(program.files).to include("memprof-88888888.sock")
    end
  end

  it "accepts only its own user and root" do
    skip "only root can become somebody else" unless Process.euid.zero?
    live_program do |program|
      path = socket_of(program)
      File.chmod(0o777, path)
      File.chmod(0o755, program.directory)
      program.signal(:STOP) # until the other one has spoken: it is not waited for
      reader, writer = IO.pipe
      pid = fork do
        Process::Sys.setuid(65_534)
        UNIXSocket.open(path) do |socket|
          socket.write("{\"do\":\"ping\"}\n")
          writer.puts("said")
          writer.write(socket.read)
        end
        exit!
      end
      writer.close
      reader.gets
      program.signal(:CONT)
      Process.wait(pid)
      expect(JSON.parse(reader.read)).to eq("ok" => false, "error" => "this is not your process")
    end
  end
end
