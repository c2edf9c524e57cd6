# frozen_string_literal: true

require "json"
require "zlib"

RSpec.describe "memprof/signal" do
  it "writes a complete dump on SIGURG, with places, readable only by its owner" do
    live_program("$kept = \"kept %d\" % 1\nputs :made\nsleep") do |program|
      program.line
      before = Time.now.to_i
      program.signal
      path = one_dump(program)
      expect(path).to match(%r{/memprof-#{program.pid}-(\d+)\.json\z})
      expect(path[/(\d+)\.json\z/, 1].to_i).to be_between(before, Time.now.to_i)
      expect(File.stat(path).mode & 0o777).to eq(0o600)
      records = expect_whole(path)
      expect(records.first).to include("pid" => program.pid, "tracking" => true)
      expect(records.find { |record| record["data"] == "kept 1" }).to include("file" => "-e", "line" => 5)
      frames = records.select { |record| record["type"] == "frame" }
      expect(frames.map { |frame| frame["line"] }.uniq).to eq([7])
      expect(program.stderr).to be_empty
    end
  end

  # Whether it begins no other dump in a second.
  def at_rest?(program)
    program.files.tap { sleep(1) } == program.files
  end

  it "calls the handler that was there before, whatever it was" do
    before = <<~'RUBY'
      trap("URG") { |number| STDOUT.syswrite("old #{number}\n") }
    RUBY
    live_program(before: before) do |program|
      program.signal
      expect(program.line).to eq("old #{Signal.list["URG"]}")
      one_dump(program)
    end
    %w[DEFAULT SYSTEM_DEFAULT IGNORE SIG_IGN].each do |handler|
      live_program(before: "trap('URG', #{handler.inspect})") do |program|
        program.signal
        one_dump(program)
        expect(program.stderr).to be_empty
      end
    end
  end

  describe "a signal with a handler of C code" do
    # Installs abs(3) for signals, and prints whether it is still there for URG.
    handlers = <<~'RUBY'
      require "fiddle"
      SIGNAL = Fiddle::Function.new(Fiddle::Handle::DEFAULT["signal"], [Fiddle::TYPE_INT, Fiddle::TYPE_VOIDP],
        Fiddle::TYPE_VOIDP)
      ABS = Fiddle::Handle::DEFAULT["abs"]
      def handle(*names) = names.map { |name| SIGNAL.call(Signal.list.fetch(name), ABS).to_i }
    RUBY
    still_there = "\nputs handle('URG') == [ABS]\nsleep"

    it "is left to it, and another one requests a dump" do
      live_program(still_there, before: "#{handlers}\nhandle('URG')") do |program|
        expect(program.line).to eq("true")
        expect(program.stderr).to eq("memprof: signal URG has a handler of other code: USR2 requests a " \
                                     "dump instead; MEMPROF_SIGNAL selects another signal\n")
        program.signal
        program.signal(:USR2)
        one_dump(program)
        eventually("the end") { at_rest?(program) }
        expect(program.dumps.size).to eq(1)
      end
    end

    it "is left to it if MEMPROF_SIGNAL names it, and the next free one is taken" do
      env = { "MEMPROF_SIGNAL" => "USR2" }
      before = "#{handlers}\nhandle('USR2')\ntrap('USR1') { STDOUT.syswrite(%(theirs\n)) }"
      live_program("sleep 0.1 while true", before: before, env: env) do |program|
        expect(program.stderr).to eq(
          "memprof: signal USR2 has a handler of other code: no signal requests a dump; `memprof dump` " \
          "does; MEMPROF_SIGNAL selects another signal\n"
        )
        program.signal(:USR1)
        expect(program.line).to eq("theirs")
        program.signal(:USR2)
        socket_of(program)
        expect(program.dumps).to be_empty
      end
      live_program(before: "#{handlers}\nhandle('URG', 'USR2')") do |program|
        expect(program.stderr).to include("URG has a handler of other code: USR1 requests a dump instead")
        program.signal(:USR1)
        one_dump(program)
      end
    end

    def expect_traced(program)
      result = run_command("rbtrace", "-p", program.pid, "-e", "40 + 2")
      expect(result.stdout).to include("=> 42"), result.stderr
      expect(program.dumps).to be_empty
    end

    it "may be rbtrace's, loaded before or after" do
      skip "needs rbtrace" unless system("rbtrace", "--help", out: File::NULL, err: File::NULL)
      env = { "HOME" => "/root" }
      live_program("sleep 0.1 while true", before: 'require "rbtrace"', env: env) do |program|
        expect(program.stderr).to include("signal URG has a handler of other code: USR2 requests")
        expect_traced(program)
        program.signal(:USR2)
        one_dump(program)
      end
      live_program("require 'rbtrace'\nputs :made\nsleep 0.1 while true", env: env) do |program|
        program.line
        socket_of(program)
        expect_traced(program)
        expect(run_memprof("stats", "--pid", program.pid)).to be_success
      end
    end
  end

  it "ends the program where that is what the handler did" do
    live_program(before: 'trap("URG", "EXIT")') do |program|
      program.signal
      expect(program.wait.exitstatus).to eq(0)
    end
  end

  it "takes the signal, the format and the compression from the environment" do
    env = { "MEMPROF_SIGNAL" => "sigusr2", "MEMPROF_DUMP_FORMAT" => "objspace",
            "MEMPROF_DUMP_COMPRESSION" => "gzip", "MEMPROF_DUMP_VALUES" => "none" }
    live_program(env: env) do |program|
      program.signal(:USR2)
      path = one_dump(program)
      expect(path).to end_with(".json.gz")
      lines = Zlib::GzipReader.open(path) { |gzip| gzip.each_line.map { |line| JSON.parse(line) } }
      strings = lines.select { |line| line["type"] == "STRING" }
      expect(strings.size).to be > 1000
      expect(strings.flat_map(&:keys)).to include("address").and(satisfy { |keys| !keys.include?("value") })
    end
  end

  it "tracks what MEMPROF_TRACK says" do
    program = 'require "memprof/signal"; p Memprof.running?'
    words = ["on", "off", "sample:50", "", nil]
    results = words.map { |word| run_ruby(program, env: { "MEMPROF_TRACK" => word }) }
    expect(results.map(&:stdout)).to eq(["true\n", "false\n", "true\n", "true\n", "true\n"])
    expect(results.map(&:stderr)).to all(eq(""))
  end

  it "samples as MEMPROF_TRACK says" do
    program = <<~RUBY
      require "memprof/signal"
      require "stringio"
      @kept = Array.new(100_001) { Object.new }
      Memprof.stats(text = StringIO.new)
      count = text.string[/^ *(\\d+) -e:\\d+:Object$/, 1].to_i
      puts count.between?(80_000, 120_000) && (count % 50).zero?
    RUBY
    # Sampled counts are multiples of 50, which the number of objects is not. They are off by 20 %, nine
    # standard deviations, once in 10^16 runs.
    result = run_ruby(program, env: { "MEMPROF_TRACK" => "sample:50" })
    expect(result).to have_attributes(stdout: "true\n", stderr: "")
  end

  it "warns of an invalid MEMPROF_TRACK, tracks nothing, and runs" do
    %w[sometimes sample sample:0 sample:x sample:2000000000].each do |word|
      result = run_ruby('require "memprof/signal"; p Memprof.running?', env: { "MEMPROF_TRACK" => word })
      expect(result.stdout).to eq("false\n")
      expect(result.stderr).to start_with("memprof: invalid MEMPROF_TRACK=#{word}: ")
        .and(end_with("; objects are not tracked (`memprof start` does)\n"))
    end
  end

  it "warns of invalid settings, and runs" do
    env = { "MEMPROF_SIGNAL" => "KILL", "MEMPROF_DUMP_FORMAT" => "xml", "MEMPROF_DIR" => "/nowhere" }
    stdout, stderr, status = run_ruby('require "memprof/signal"; puts "runs"', env: env)
    expect([stdout, status.success?]).to eq(["runs\n", true])
    expect(stderr.lines).to contain_exactly(
      a_string_including("MEMPROF_SIGNAL=KILL is not a signal that can be caught"),
      a_string_including("unknown format \"xml\""),
      a_string_including("MEMPROF_DIR=/nowhere is not a writable directory"),
      a_string_including("answers to its signal only: cannot create /nowhere/memprof-")
    ).or(satisfy { |lines| lines.size == 3 }) # it may end before it gets to make its socket
  end

  it "answers a storm of signals with one dump at a time and nothing lost" do
    live_program("x = Array.new(300_000) { Object.new }\nputs :made\nsleep") do |program|
      program.line
      200.times { program.signal && sleep(0.001) }
      # On a busy machine the whole storm may be over before the program has its turn.
      eventually("a refusal") { program.signal && program.stderr.end_with?("\n") }
      one_dump(program)
      eventually("the end") { program.files.grep(/IN_PROGRESS/).empty? && at_rest?(program) }
      expect(program.dumps.size).to be_between(1, 5)
      program.dumps.each { |path| expect(File.read(path).lines.last).to include('"footer"') }
      warning = "memprof: process #{program.pid}: a dump is being written already: "
      expect(program.stderr.lines).to all(start_with(warning))
      expect(program.stderr.lines.size).to be_between(1, 5)
      expect { Process.kill(0, program.pid) }.not_to raise_error
    end
  end

  it "gives two dumps in a second different names" do
    live_program do |program|
      2.times do |number|
        program.signal
        eventually("dump #{number}") {
          program.dumps.size > number && program.files.grep(/IN_PROGRESS/).empty?
        }
      end
      expect(program.dumps.size).to eq(2)
    end
  end

  it "continues while the dump is written" do
    live_program("#{LivePrograms::HALTING}\n#{<<~'RUBY'}") do |program|
      $heap = Array.new(200_000) { Object.new }
      # Of the processor: on a busy machine the wall clock includes others.
      used = -> { Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) }
      before = used.call
      puts :made
      gets
      puts used.call - before
      sleep
    RUBY
      program.line
      program.signal
      child = program.line.to_i
      program.continue
      # Far less than the dump takes, of which the child has written next to nothing by now.
      expect(program.line.to_f).to be < 0.5
      expect(program.dumps).to be_empty
      Process.kill(:CONT, child)
      expect_whole(one_dump(program))
    end
  end

  it "writes the next dump when the last one is there, though its thread has not ended" do
    live_program(<<~'RUBY') do |program|
      Memprof::OnSignal::Dumper.prepend(Module.new do
        def report(...) = super.tap { sleep }
      end)
      puts :slow
      sleep
    RUBY
      program.line
      2.times do |number|
        program.signal
        eventually("dump #{number}") { program.dumps.size > number }
      end
      expect(program.stderr).to be_empty
    end
  end

  it "leaves no socket when the program ends while it is being created" do
    before = <<~'RUBY'
      require "memprof"
      require "memprof/control/server"
      Memprof::Control::Address.singleton_class.prepend(Module.new do
        def listen(path) = super.tap { sleep(0.5) }
      end)
    RUBY
    code = "sleep(0.01) until Dir.children(ENV.fetch('MEMPROF_DIR')).any?"
    live_program(code, before: before) do |program|
      expect(program.wait.exitstatus).to eq(0)
      expect(program.files).to be_empty
    end
    live_program("#{code}\nProcess.daemon(true, true)\nputs $$\nsleep", before: before) do |program|
      pid = program.line.to_i
      eventually("its socket") { program.files == ["memprof-#{pid}.sock"] }
    ensure
      Process.kill(:KILL, pid) if pid&.positive?
    end
  end

  it "is one thread more, named, that keeps no process alive and that puma knows for harmless" do
    code = <<~'RUBY'
      require "memprof/signal"
      threads = Thread.list - [Thread.main]
      p threads.map(&:name), threads.map { |t| [t.priority, t.report_on_exception, t.thread_variable_get(:fork_safe)] }
    RUBY
    Dir.mktmpdir do |directory|
      stdout, stderr, status = run_ruby(code, env: { "MEMPROF_DIR" => directory })
      expect([stdout, stderr, status.exitstatus]).to eq([%(["memprof"]\n[[0, false, true]]\n), "", 0])
      expect(Dir.children(directory)).to be_empty
    end
  end

  it "survives a program that ends all threads" do
    code = "(Thread.list - [Thread.main]).each { |thread| thread.kill.join }\nputs :gone\nsleep"
    live_program(code) do |program|
      program.line
      program.signal
      one_dump(program)
      expect(program.stderr).to be_empty
    end
  end

  it "warns if there can be no thread for the dump, and writes the next one" do
    live_program(<<~'RUBY') do |program|
      module NoThread
        def new(*) = raise(ThreadError, "can't create Thread")
      end
      Thread.singleton_class.prepend(NoThread)
      puts :none
      gets
      NoThread.remove_method(:new)
      puts :again
      sleep
    RUBY
      # The socket is there, so the thread that waits is, too.
      eventually("the socket") { program.files.grep(/sock/).first }
      program.line
      program.signal
      eventually("a warning") { program.stderr.end_with?("\n") }
      expect(program.stderr).to eq("memprof: process #{program.pid}: no dump: can't create Thread\n")
      program.continue
      program.line
      program.signal
      one_dump(program)
    end
  end

  it "is replaced by a handler that the program installs later, as any is" do
    live_program("trap('URG') { STDOUT.syswrite(%(theirs\n)) }\nputs :set\nsleep 0.1 while true") do |program|
      program.line
      program.signal
      expect(program.line).to eq("theirs")
      expect(program.dumps).to be_empty
    end
  end

  describe "without a directory for temporary files" do
    # Makes directories read-only for this program, in a mount namespace of its own.
    def read_only(*directories)
      <<~RUBY
        require "fiddle"
        Fiddle::Function.new(Fiddle::Handle::DEFAULT["unshare"], [Fiddle::TYPE_INT], Fiddle::TYPE_INT).call(0x20000)
        mount = ["mount --make-rprivate /"]
        #{directories}.each { |path| mount << "mount --bind \#{path} \#{path}" << "mount -o remount,bind,ro \#{path}" }
        exit!(3) unless system(mount.join(" && "))
      RUBY
    end

    def environment(temporary = nil)
      { "MEMPROF_DIR" => nil, "TMPDIR" => temporary, "TMP" => nil, "TEMP" => nil }
    end

    before do
      skip "needs root and mount namespaces" unless system("unshare", "-m", "true", err: File::NULL)
      skip "the checkout is hidden with /tmp" if ChildRuby::LIB.start_with?("/tmp/")
    end

    it "takes that for shared memory if the others are read-only or full, and the command looks there" do
      with_file_system("nr_inodes=1,mode=1777") do |full|
        live_program(before: read_only("/tmp"), env: environment(full)) do |program|
          path = "/dev/shm/memprof-#{program.pid}.sock"
          eventually("the socket") { listened_to?(path) }
          expect(run_memprof("stop", "--pid", program.pid).stdout).to include("tracking stopped")
          program.signal
          dump = eventually("a dump") { Dir.glob("/dev/shm/memprof-#{program.pid}-*.json").first }
          expect_whole(dump)
          expect(program.stderr).to be_empty
        ensure
          FileUtils.rm_f([path, dump].compact)
        end
      end
    end

    it "warns once, names the remedy, and runs if there is none" do
      live_program(before: read_only("/tmp", "/dev/shm"), env: environment) do |program|
        warning = "memprof: no directory takes dumps and the control socket, neither /tmp nor /dev/shm: " \
                  "set MEMPROF_DIR to one that can be written\n"
        expect(program.stderr).to eq(warning)
        program.signal
        eventually("a message") { program.stderr.lines.size == 2 }
        expect(program.stderr)
          .to eq("#{warning}memprof: process #{program.pid}: no dump: no directory for stored dumps: " \
                 "set MEMPROF_DIR\n")
      end
    end
  end

  describe "when a dump can't be written" do
    it "says why in a line, and leaves no file, if the disk is full" do
      with_file_system("size=256k") do |directory|
        live_program(env: { "MEMPROF_DIR" => directory }) do |program|
          program.signal
          eventually("a message") { program.stderr.end_with?("\n") }
          expect(program.stderr).to match(/\Amemprof: process \d+: no dump: .*: No space left on device$/)
          expect(Dir.children(directory).grep_v(/sock/)).to be_empty
        end
      end
    end

    it "removes what a killed worker left there" do
      live_program do |program|
        socket_of(program)
        gone = Process.wait(spawn("true"))
        left = File.join(program.directory, "memprof-#{gone}-1700000000.json.IN_PROGRESS")
        File.write(left, "half")
        program.signal
        eventually("a dump") { program.dumps.size == 1 }
        expect(File.exist?(left)).to be(false)
      end
    end

    it "says why if the directory is gone" do
      live_program do |program|
        socket_of(program)
        FileUtils.rm_rf(program.directory)
        program.signal
        eventually("a message") { program.stderr.end_with?("\n") }
        expect(program.stderr).to match(/\Amemprof: .*: no dump: cannot write .* no such directory: .*\n\z/)
      end
    end

    it "leaves no half dump and no child if the program ends meanwhile" do
      live_program("#{LivePrograms::HALTING}\ngets") do |program|
        program.signal
        program.line
        expect(program.files.grep(/IN_PROGRESS/).size).to eq(1)
        program.continue
        expect(program.wait.exitstatus).to eq(0)
        expect(program.files).to be_empty
        expect { Process.kill(0, -program.pid) }.to raise_error(Errno::ESRCH)
      end
    end

    it "kills a child that another tool has stopped for good, and says so", :slow do
      live_program("#{LivePrograms::HALTING}\n#{<<~'RUBY'}") do |program|
        Memprof::Dump::Child.send(:remove_const, :STALLED)
        Memprof::Dump::Child::STALLED = 1
        puts :made
        sleep
      RUBY
        program.line
        program.signal
        eventually("a message") { program.stderr.end_with?("\n") }
        expect(program.stderr).to match(/no dump: .*made no progress for 1 s and was killed\n\z/)
        expect(program.files.grep_v(/sock/)).to be_empty
      end
    end
  end
end
