# frozen_string_literal: true

require "json"
require "socket"
require "timeout"
require "memprof/control/client"

RSpec.describe "The control socket of memprof/signal" do
  # By the process that the socket is named after, unless it is told.
  def connect(path, pid: path[/(\d+)\.sock\z/, 1].to_i, uid: Process.euid)
    Memprof::Control::Client.connect(path, pid: pid, uid: uid)
  end

  def ask(path, request, **options)
    client = eventually("a connection") { connect(path) }
    client.ask(request, **options)
  ensure
    client&.close
  end

  # Yields the client and the read end of a pipe, of which it has passed the other one.
  def dump(path, **wanted)
    client = connect(path)
    reader, writer = IO.pipe(binmode: true)
    answer = client.ask({ do: "dump", **wanted }, pass: writer)
    writer.close
    yield(client, reader, answer)
  ensure
    [client, reader, writer].each { |io| io&.close }
  end

  # Names of what a process has open of a kind, "pipe" or "socket".
  def open_files(pid, kind)
    Dir.glob("/proc/#{pid}/fd/*").map { |path| File.readlink(path) }.grep(/\A#{kind}:/)
  rescue Errno::ENOENT
    retry # one was closed meanwhile
  end

  # All up to the end, which comes when it is open nowhere.
  def rest(reader) = Timeout.timeout(120) { reader.read }

  # The pipe of a dump ends, though a process that was forked meanwhile runs on.
  def expect_end(reader, client, forked)
    expect(rest(reader)).to end_with("}\n")
    expect(client.answer(seconds: 120)["ok"]).to be(true)
    expect { Process.kill(0, forked) }.not_to raise_error
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

  it "shows the agent, if one is running" do
    start = "require 'memprof/agent'; Memprof::Agent.start(logger: nil)"
    live_program("gets; #{start}; puts :on; sleep") do |program|
      path = socket_of(program)
      expect(ask(path, { do: "agent" })["agent"]).to be_nil
      program.continue
      program.line
      expect(ask(path, { do: "agent" })["agent"]).to include("leaks" => [], "intervals" => [],
        "labels" => include("pid" => program.pid), "settings" => include("interval" => 60, "on_limit" => nil))
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

  # What is named as the next steps.
  def commands(stderr)
    stderr.delete_prefix("\nNext:\n").scan(/^ +memprof (.+?)(?:  |$)/).map { |(words)| words.split }
  end

  it "says where its memory goes" do
    skip "/proc is needed" unless File.readable?("/proc/self/smaps")
    live_program do |program|
      memory = ask(socket_of(program), { do: "memory" })["memory"]
      expect(memory["items"].sum { |item| item["bytes"] }).to eq(memory["rss"])
      stdout, stderr, status = run_memprof("memory", program.pid.to_s)
      expect(status.exitstatus).to eq(0)
      expect(stdout).to match(/\A#{program.pid}: RSS .*^ *[\d.]+ [KM]iB .* instruction sequences /m)
      expect(commands(stderr)).to eq([["dump", program.pid.to_s],
        ["attach", program.pid.to_s, "--malloc"]])
    end
  end

  it "says first what explains the larger part of its memory" do
    skip "this Ruby has no fiddle" if Servers.obstacle(nil, "fiddle", nil)
    live_program(<<~RUBY) do |program|
      require "fiddle"
      Array.new(100) { Fiddle.malloc(1 << 20) }.each { |block| Fiddle::Pointer.new(block)[0, 1 << 20] = "x" * (1 << 20) }
      puts "ready"
      sleep
    RUBY
      program.line
      expect(commands(run_memprof("memory", program.pid.to_s).stderr).first).to include("attach", "--malloc")
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

  it "writes a dump with the given options into the descriptor, and reports when it is complete" do
    [%w[memprof gzip], %w[memprof none], %w[objspace zstd], %w[binary none], %w[heap_dump none]]
      .each do |format, compression|
      live_program do |program|
        wanted = { format: format, values: "none", compression: compression }
        dump(socket_of(program), **wanted) do |client, reader, answer|
          expect(answer).to eq("ok" => true, "format" => format, "compression" => compression)
          File.binwrite("#{program.directory}/heap", rest(reader))
          answer = client.answer(seconds: 120)
          expect(answer).to include("ok" => true, "format" => format,
            "bytes" => File.size("#{program.directory}/heap"))
          expect(answer["objects"]).to be > 1000
          expect(answer).not_to include("path")
          next if format == "heap_dump"

          heap = Memprof::Heap.open("#{program.directory}/heap", index: false)
          expect(heap.size).to be > 1000
        end
        expect(program.dumps).to be_empty
      end
    end
  end

  it "refuses a dump with an invalid option, without a descriptor, or with many, and closes them all" do
    live_program do |program|
      path = socket_of(program)
      before = open_files(program.pid, "pipe")
      reader, writer = IO.pipe
      refused = ->(message) { raise_error(Memprof::Control::Broken, message) }
      expect { ask(path, { do: "dump", format: "xml" }, pass: writer) }
        .to refused.call(/unknown format "xml"/)
      expect { ask(path, { do: "dump" }) }.to refused.call(/no descriptor was passed/)
      ask(path, { do: "ping" }, pass: writer)
      [2, 100].each do |number|
        UNIXSocket.open(path) do |socket|
          rights = Socket::AncillaryData.unix_rights(*[writer] * number)
          socket.sendmsg("{\"do\":\"dump\"}\n", 0, nil, rights)
          expect(socket.gets).to include("more than one descriptor")
        end
      end
      writer.close
      expect(rest(reader)).to be_empty
      expect(open_files(program.pid, "pipe")).to eq(before)
      expect(program.stderr).to be_empty
      reader.close
    end
  end

  it "needs no file for a dump" do
    with_file_system("size=64k") do |directory|
      live_program(env: { "MEMPROF_DIR" => directory, "TMPDIR" => directory }) do |program|
        path = File.join(directory, "memprof-#{program.pid}.sock")
        eventually("the socket") { listened_to?(path) }
        system("dd if=/dev/zero of=#{directory}/full", err: File::NULL)
        system("mount", "-o", "remount,ro", directory) || skip("can't mount here")
        dump(path) do |client, reader, _|
          expect(reader.each_line.to_a.last).to include('"footer"')
          expect(client.answer["bytes"]).to be > 1_000_000
        end
      end
    end
  end

  it "ends a dump whose client goes, and writes the next one" do
    live_program do |program|
      path = socket_of(program)
      dump(path) { |_, reader, _| reader.readpartial(10) }
      answer = eventually("the next dump") do
        dump(path) { |client, reader, _| rest(reader) && client.answer(seconds: 120) }
      rescue Memprof::Control::Broken => e
        raise unless e.message == "a dump is being written already"
      end
      expect(answer["objects"]).to be > 1000
      expect(File.read("/proc/#{program.pid}/task/#{program.pid}/children")).to be_empty
      expect(program.stderr).to be_empty
    end
  end

  it "is not ended by a client that goes, though the program would end on SIGPIPE" do
    live_program("trap('PIPE', 'SYSTEM_DEFAULT')\nputs :set\nsleep") do |program|
      program.line
      path = socket_of(program)
      program.signal(:STOP)
      20.times { UNIXSocket.open(path) { |socket| socket.write("{\"do\":\"ping\"}\n") } }
      program.signal(:CONT)
      expect(ask(path, { do: "ping" })["pid"]).to eq(program.pid)
    end
  end

  it "kills the child of a dump whose client reads no more" do
    live_program(<<~'RUBY') do |program|
      Memprof::Dump::Child.send(:remove_const, :STALLED)
      Memprof::Dump::Child::STALLED = 2
      puts :made
      sleep
    RUBY
      program.line
      dump(socket_of(program)) do |client, reader, _|
        expect { client.answer(seconds: 120) }
          .to raise_error(Memprof::Control::Broken, /made no progress for 2 s and was killed/)
        expect(rest(reader)).not_to be_empty
      end
      expect(File.read("/proc/#{program.pid}/task/#{program.pid}/children")).to be_empty
    end
  end

  it "has the pipe of a dump end with its child, whatever the program forks meanwhile" do
    live_program("#{LivePrograms::HALTING}\ngets\nputs fork { sleep }\nsleep") do |program|
      dump(socket_of(program)) do |client, reader, _|
        child = program.line.to_i
        program.continue
        forked = program.line.to_i
        Process.kill(:CONT, child)
        expect_end(reader, client, forked)
      end
    end
  end

  # `IO#close` lets other threads run before it closes the descriptor.
  it "has the pipe of a dump end, if the program forks while its thread closes the pipe" do
    closing = <<~'RUBY'
      CLOSING = Thread::Queue.new
      FORKED = Thread::Queue.new
      Memprof::Dump.singleton_class.prepend(Module.new do
        def stream(io, options)
          descriptor = io.fileno
          io.define_singleton_method(:close) do
            next if closed?
            self.autoclose = false
            super()
            CLOSING << true
            FORKED.pop
            IO.for_fd(descriptor).close
          end
          super
        end
      end)
      CLOSING.pop
      puts fork { sleep }
      FORKED << true
      sleep
    RUBY
    live_program(closing) do |program|
      dump(socket_of(program)) do |client, reader, _|
        forked = program.line.to_i
        expect_end(reader, client, forked)
      end
    end
  end

  it "writes one dump at a time" do
    code = "x = Array.new(40_000) { |i| i.to_s * 3 }\nputs :made\nsleep"
    live_program("#{LivePrograms::HALTING}\n#{code}") do |program|
      program.line
      dump(socket_of(program)) do |first, reader, _|
        child = program.line.to_i
        expect { dump(socket_of(program)) { raise "begun" } }
          .to raise_error(Memprof::Control::Broken, "a dump is being written already")
        Process.kill(:CONT, child)
        rest(reader)
        expect(first.answer(seconds: 120)["objects"]).to be > 40_000
      end
    end
  end

  it "answers thirty clients that come at once" do
    live_program do |program|
      path = socket_of(program)
      program.signal(:STOP) # so that all of them wait
      request = { do: "stats", limit: 1 }
      asking = Queue.new
      answers = Array.new(30) do
        Thread.new do
          client = eventually("a connection") { connect(path) }
          asking << client
          client.ask(request, seconds: 300)["ok"]
        end
      end
      eventually("the connections") { asking.size == 30 }
      program.signal(:CONT)
      expect(answers.map(&:value)).to all(be(true))
    end
  end

  it "accepts no user where a namespace makes all users look the same" do
    Dir.mktmpdir do |directory|
      File.chmod(0o777, directory)
      reader, writer = IO.pipe
      pid = Process.spawn({ "MEMPROF_DIR" => directory, "RUBYOPT" => nil }, "unshare", "--user",
        RbConfig.ruby, "-I#{ChildRuby::LIB}", "-e",
        'require "memprof/signal"; puts Process.euid; $stdout.flush; sleep', out: writer, err: File::NULL)
      writer.close
      skip "needs unshare --user" unless (user = reader.gets)
      expect(user.to_i).to eq(File.read("/proc/sys/kernel/overflowuid").to_i)
      path = File.join(directory, "memprof-#{pid}.sock")
      eventually("the socket") { listened_to?(path) }
      expect { ask(path, { do: "ping" }) }
        .to raise_error(Memprof::Control::Broken, "this is not your process")
    ensure
      Process.kill(:KILL, pid)
      Process.wait(pid)
      reader.close
    end
  end

  describe "a lease" do
    def tracking?(program) = ask(socket_of(program), { do: "ping" })["tracking"]

    def lease(program, **options)
      connect(socket_of(program)).tap { |client| client.ask({ do: "start", lease: true, **options }) }
    end

    def live(code = "sleep", &block) = live_program(code, env: { "MEMPROF_TRACK" => "off" }, &block)

    it "has the process track until the last one ends" do
      live do |program|
        leases = Array.new(3) { lease(program) }
        expect(leases.map { |client| [client.close, tracking?(program)].last }).to eq([true, true, false])
        again = lease(program, sample: 5)
        expect(tracking?(program)).to be(true)
        again.close
        expect(tracking?(program)).to be(false)
      end
    end

    it "does not end what was on before, or was started meanwhile" do
      live("gets\nputs Memprof.start\nsleep") do |program|
        ask(socket_of(program), { do: "start" })
        lease(program).close
        expect(tracking?(program)).to be(true)
        ask(socket_of(program), { do: "stop" })
        client = lease(program)
        program.continue
        expect(program.line).to eq("false")
        client.close
        expect(tracking?(program)).to be(true)
        ask(socket_of(program), { do: "stop" })
        client = lease(program)
        ask(socket_of(program), { do: "stop" })
        ask(socket_of(program), { do: "start" })
        client.close
        expect(tracking?(program)).to be(true)
      end
    end

    it "is refused to too many, and with invalid options" do
      live do |program|
        leases = Array.new(16) { lease(program) }
        expect { lease(program) }.to raise_error(Memprof::Control::Broken, /16 commands track in this/)
        leases.each(&:close)
        expect { lease(program, sample: 0) }.to raise_error(Memprof::Control::Broken, /sample must be/)
        expect(tracking?(program)).to be(false)
      end
    end

    it "is not inherited by a forked child" do
      live("gets\nputs fork { puts Memprof.running?; sleep }\nsleep") do |program|
        client = lease(program)
        connections = open_files(program.pid, "socket")
        program.continue
        lines = [program.line, program.line]
        expect(lines).to include("false")
        child = lines.map(&:to_i).max
        socket_of(program, child)
        expect(connections.size).to be >= 2
        expect(open_files(child, "socket") & connections).to be_empty
        client.close
        expect(tracking?(program)).to be(false)
      end
    end

    it "ends with the command that has it, however that ends" do
      live do |program|
        socket_of(program)
        memprof = [RbConfig.ruby, "-I#{ChildRuby::LIB}", File.join(ChildRuby::ROOT, "exe/memprof")]
        %i[KILL TERM HUP INT].each do |signal|
          command = Process.spawn({ "MEMPROF_DIR" => program.directory }, *memprof, "attach", "--track",
            "--for", "100000", program.pid.to_s, out: File::NULL, err: File::NULL)
          eventually("tracking") { tracking?(program) }
          Process.kill(signal, command)
          Process.wait(command)
          eventually("the end of tracking", seconds: 20) { !tracking?(program) }
        end
      end
    end
  end

  it "connects to exactly the given process of the given user, also by a descriptor" do
    live_program do |program|
      path = socket_of(program)
      expect(connect(path, pid: Process.pid)).to be_nil
      expect(connect(path, uid: Process.euid + 1)).to be_nil unless Process.euid.zero?
      expect(connect("#{path}.not", pid: program.pid)).to be_nil
      expect(connect(program.directory, pid: program.pid)).to be_nil
      skip "Linux only" unless File.exist?("/proc/self/fd")
      opened = IO.sysopen(path, 0o10000000) # O_PATH
      file = IO.for_fd(opened)
      File.unlink(path)
      client = connect("/proc/self/fd/#{opened}", pid: program.pid)
      expect(client.ask({ do: "ping" })["pid"]).to eq(program.pid)
      client.close
    ensure
      file&.close
    end
  end

  it "reads no more of an answer than the request needs" do
    Dir.mktmpdir do |directory|
      path = File.join(directory, "memprof-#{Process.pid}.sock")
      server = UNIXServer.new(path)
      %w[ping stats].zip([1, 64]).each do |request, mebibytes|
        thread = Thread.new do
          peer = server.accept
          (mebibytes + 1).times { peer.write("x" * (1 << 20)) }
        rescue SystemCallError
          nil # the client has had enough
        ensure
          peer.close
        end
        expect { ask(path, { do: request }) }
          .to raise_error(Memprof::Control::Broken, "a line is longer than #{mebibytes << 20} bytes")
        thread.join
      end
    ensure
      server&.close
    end
  end

  it "refuses invalid input, and continues" do
    live_program do |program|
      path = socket_of(program)
      answers = ["\n", "nonsense\n", "[1]\n", "{\"do\":\"dance\"}\n", "{}\n", "\xFF\n"]
        .map { |bytes| JSON.parse(raw(path, bytes)) }
      expect(answers).to all(include("ok" => false, "error" => a_kind_of(String)))
      expect(raw(path, "")).to be_empty
      expect(raw(path, "{\"do\":")).to include("the connection was closed")
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
