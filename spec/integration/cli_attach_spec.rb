# frozen_string_literal: true

require "memprof/byte_size"
require "tmpdir"

# In programs that have not loaded memprof, and may be anywhere.
RSpec.describe "memprof attach" do
  around { |example| Dir.mktmpdir { |directory| Dir.chdir(directory) { example.run } } }

  before { skip "needs root, or the permission to trace any process" unless Process.euid.zero? }

  # Its temporary files go to a directory of their own, and none stays.
  def attachable(code, &block)
    Dir.mktmpdir("memprof-attach-") do |temporary|
      plain_program(code, env: { "TMPDIR" => temporary }) do |*program|
        block.call(*program)
        expect(Dir.children(temporary)).to be_empty
      end
    end
  end

  def evaluate(pid, code)
    File.write("code.rb", code)
    run_memprof("attach", pid, "--eval", "code.rb", "--timeout", 120, timeout: 300)
  end

  def value(pid, code)
    result = evaluate(pid, code)
    expect([result.status.exitstatus, result.stderr.lines.size]).to eq([0, 2]), result.stderr
    result.stdout
  end

  describe "a program that is in its way" do
    def refused(pid, *options)
      stdout, stderr, status = run_memprof("attach", pid, *options, "--for", 0.1, "--timeout", 120,
        timeout: 300)
      expect([stdout, status.exitstatus]).to eq(["", 2])
      stderr.lines.last
    end

    it "is named where it has frozen the lists of what is loaded" do
      attachable("[$LOAD_PATH, $LOADED_FEATURES].each(&:freeze); puts :ready; sleep") do |pid, _|
        expect(refused(pid, "--track")).to end_with("nothing can be loaded: $LOADED_FEATURES is frozen\n")
      end
      attachable("$LOAD_PATH.freeze; puts :ready; sleep") do |pid, _|
        expect(value(pid, "6 * 7")).to eq("42\n")
      end
    end

    it "is named where it has redefined methods, and is not warned when memprof comes again" do
      code = <<~RUBY
        $stderr.reopen("stderr")
        File.write("program.rb", <<~PROGRAM)
          class Module
            alias_method :own, :private_constant
            def private_constant(*names) = File.exist?("fine") ? own(*names) : raise("no such thing")
          end
        PROGRAM
        load "./program.rb"
        puts :ready
        sleep
      RUBY
      attachable(code) do |pid, _|
        2.times do
          expect(refused(pid, "--track")).to match(%r{RuntimeError: no such thing \(\S*program\.rb:3:in })
        end
        File.write("fine", "")
        expect(value(pid, "6 * 7")).to eq("42\n")
      end
      expect(File.read("stderr")).to be_empty
    end

    it "gets the reason that its system has, if no descriptor is left" do
      code = <<~RUBY
        Process.setrlimit(:NOFILE, 30)
        kept = []
        begin
          loop { kept << File.open(File::NULL) }
        rescue Errno::EMFILE
          STDOUT.puts "ready"
        end
        sleep
      RUBY
      attachable(code) do |pid, _|
        expect(refused(pid, "--track")).to match(/: it cannot open a socket: Too many open files/)
      end
    end

    it "is left alone where it may have too little memory" do
      code = <<~RUBY
        size = File.read("/proc/self/status")[/VmSize:\\s+(\\d+)/, 1].to_i * 1024
        Process.setrlimit(:AS, size + 80_000_000)
        puts :ready
        sleep
      RUBY
      attachable(code) do |pid, _|
        expect(refused(pid, "--malloc"))
          .to match(/: RLIMIT_AS leaves it [67]\d\.\d MiB of address space, and memprof needs 512\.0 MiB$/)
        expect(Process.kill(0, pid)).to eq(1)
        expect(run_memprof("stack", pid)).to be_success
      end
    end
  end

  programs = {
    "that sleeps" => "puts :ready; sleep",
    # From 3.2 on reading a file gives up the GVL: beside four threads that never wait, each file that memprof
    # loads takes .4 s.
    "whose four threads allocate" =>
      "4.times { Thread.new { loop { Array.new(9, &:to_s)\n#{"sleep 0.001" if RUBY_VERSION >= "3.2"}\n" \
      "} } }\nputs :ready\nsleep",
    "that calculates" => "puts :ready\nloop { exit!(1) unless (1..1000).sum { |n| n * 0.5 } == 250_250.0 }",
    "that waits in a system call" => "ends = IO.pipe\nputs :ready\nends[0].read",
    "whose main thread waits for another one" => "puts :ready\nThread.new { sleep 1000 }.join",
    "that has run another thread last" =>
      "Thread.new { sleep }\nThread.pass until Thread.list.last.stop?\nputs :ready\nsleep"
  }
  programs.each do |what, code|
    it "evaluates code in a process #{what}, again and again" do
      attachable(code) do |pid, _|
        expect(value(pid, "Thread.list.map(&:name).compact"))
          .to eq("[\"memprof attach\", \"memprof attach: connection\"]\n")
        expect(value(pid, "Process.pid")).to eq("#{pid}\n")
        expect(Process.wait(pid, Process::WNOHANG)).to be_nil
      end
    end
  end

  it "leaves the local variables of the program's file as they were" do
    code = <<~RUBY
      m = i = s = 0
      Thread.new { sleep(0.01) while [m, i, s].sum.zero?; abort("changed: \#{[m, i, s].inspect}") }
      puts :ready
      sleep
    RUBY
    attachable(code) do |pid, _|
      2.times { expect(value(pid, "binding.local_variables - %i[m i s]")).to eq("[]\n") }
      expect(value(pid, "[m, i, s]")).to eq("[0, 0, 0]\n")
    end
  end

  it "leaves signals, children, sleeps and reads as they were" do
    code = <<~RUBY
      before = [$LOAD_PATH.dup, Thread.list]
      trap("USR1") { $stdout.syswrite("USR1\n") }
      child = fork { sleep }
      waiter = Thread.new { Process.wait; puts "waited for \#{$?.pid == child}" }
      pipe = IO.pipe
      reading = Thread.new { puts "read \#{pipe[0].gets}" }
      puts "ready"
      sleep
      puts "woken"
      Process.kill(:KILL, child)
      waiter.join
      pipe[1].puts "line"
      reading.join
      sleep 0.01 until before == [$LOAD_PATH, Thread.list]
      puts "as before"
      sleep
    RUBY
    attachable(code) do |pid, lines|
      masks = -> { File.read("/proc/#{pid}/status")[/^SigPnd.*?^SigCgt.*?$/m] }
      before = masks.call
      3.times do
        Process.kill(:USR1, pid)
        expect(value(pid, "1 + 1")).to eq("2\n")
        expect(lines.gets).to eq("USR1\n")
      end
      expect(masks.call).to eq(before)
      expect(value(pid, "Thread.main.wakeup && 3")).to eq("3\n")
      rest = Array.new(4) { lines.gets }
      expect(rest.first).to eq("woken\n")
      expect(rest).to contain_exactly("woken\n", "waited for true\n", "read line\n", "as before\n")
    end
  end

  it "tracks allocations, and stops" do
    code = "KEPT = []\nputs :ready\nloop { KEPT << Object.new.tap { sleep 0.001 } }"
    attachable(code) do |pid, _|
      result = run_memprof("attach", pid, "--track", "--for", 1, "--limit", 3, timeout: 300)
      expect(result.stdout).to match(/^ +\d+ -e:4:Object$/)
      expect(result.stderr).to match(/\Amemprof: process #{pid} .*: loads memprof .* tracks .* for 1 s/)
      expect(result.stderr).to match(/^memprof: done; its main thread was paused for [\d.]+ ms$/)
      expect(value(pid, "Memprof.running?")).to eq("false\n")
    end
  end

  it "records malloc, and stops" do
    attachable("KEPT = []\nputs :ready\nloop { KEPT << \"x\" * 10_000; sleep 0.001 }") do |pid, _|
      result = run_memprof("attach", "--malloc", "--for", 1, pid, timeout: 300)
      expect(result.stdout).to match(/-e:4$/)
      expect(value(pid, "Memprof::Malloc.running?")).to eq("false\n")
    end
  end

  # The GC is off until memprof runs it, so that all garbage is there at the end.
  it "counts no garbage as live" do
    code = "GC.disable\nKEPT = []\nTemporary = Class.new\nKept = Class.new\nputs :ready\n" \
           "loop do\n  20.times { Temporary.new; \"x\" * 50_000 }\n  KEPT << Kept.new\n  sleep 0.01\nend"
    attachable(code) do |pid, _|
      result = run_memprof("attach", pid, "--track", "--for", 1, timeout: 300)
      expect(result.stdout).to match(/^ +\d+ -e:9:Kept$/)
      expect(result.stdout[/^ +(\d+) -e:8:Temporary$/, 1].to_i).to be < 25
      result = run_memprof("attach", pid, "--malloc", "--for", 1, timeout: 300)
      live = result.stdout[/^ *([\d.]+ \S+).* -e:8$/, 1]
      expect(live.nil? || Memprof.const_get(:ByteSize).read(live.delete(" ")) < 25 * 50_000).to be(true), live
    end
  end

  it "records malloc with calling frames to a file of the command" do
    code = "def deep = KEPT << \"x\" * 10_000\ndef outer = deep\nKEPT = []\nputs :ready\n" \
           "loop { outer; sleep 0.001 }"
    attachable(code) do |pid, _|
      result = run_memprof("attach", pid, "--malloc", "--for", 1, "-o", "out.malloc", timeout: 300)
      expect(result).to be_success, result.stderr
      expect(result.stderr).to end_with("Next: memprof malloc #{File.realpath("out.malloc")}\n")
      expect(File.stat("out.malloc").mode & 0o777).to eq(0o600)
      expect(value(pid, "Memprof::Malloc.running?")).to eq("false\n")
      tree = run_memprof("malloc", "out.malloc", "--tree", "--value", "leaked").stdout
      expect(tree).to match(/-e:6.*-e:3.*-e:2/m)
      expect(tree).not_to include("rb_str")

      run_memprof("attach", pid, "--malloc", "--for", 1, "--native", "-o", "native.malloc", timeout: 300)
      native = run_memprof("malloc", "native.malloc", "--tree", "--value", "leaked", "--limit", 200).stdout
      expect(native).to match(/-e:2/).and match(/libruby|rb_/)
      run_memprof("attach", pid, "--malloc", "--for", 1, "--stack", 1, "-o", "flat.malloc", timeout: 300)
      flat = run_memprof("malloc", "flat.malloc", "--tree", "--value", "leaked").stdout
      expect(flat).to include("-e:2")
      expect(flat).not_to include("-e:3")
    end
  end

  it "leaves no file if the process is not there any more" do
    attachable("puts :ready\ntrap(:USR1) { exit!(0) }\nsleep") do |pid, _|
      attaching(pid, "--malloc", "--for", "1000", "-o", "out.malloc") { Process.kill(:USR1, pid) }
      expect(Dir.children(".")).to contain_exactly("out", "err")
    end
  end

  # Starts the command, and yields its process id when its thread runs in the process.
  def attaching(pid, *options)
    memprof = [RbConfig.ruby, "-I#{ChildRuby::LIB}", File.join(ChildRuby::ROOT, "exe/memprof")]
    command = Process.spawn(*memprof, "attach", pid.to_s, *options, out: "out", err: "err")
    eventually("the thread") { threads_of_memprof(pid).any? }
    yield(command)
    Process.wait2(command).last
  end

  def threads_of_memprof(pid)
    names = Dir.glob("/proc/#{pid}/task/*/comm").map { |path| File.read(path) }
    names.grep(/\Amemprof/)
  rescue SystemCallError
    retry # one ended meanwhile
  end

  keeping = "KEPT = []\nputs :ready\nloop { KEPT << Object.new.tap { sleep 0.001 } }"

  it "ends early at Ctrl-C" do
    attachable(keeping) do |pid, _|
      status = attaching(pid, "--track", "--for", "100000") { |command| Process.kill(:INT, command) }
      expect(status.exitstatus).to eq(0)
      expect(File.read("out")).to match(/\A(?: +\d+ -e:4:(?:Object|<\w+>)\n)*\z/)
      expect(value(pid, "Memprof.running?")).to eq("false\n")
    end
  end

  [%w[KILL --track], %w[TERM --track], %w[HUP --malloc], %w[KILL --malloc]].each do |signal, mode|
    it "has the process undo #{mode} if the command gets SIG#{signal}" do
      attachable(keeping) do |pid, _|
        2.times do
          attaching(pid, mode, "--for", "100000") { |command| Process.kill(signal, command) }
          eventually("the end of the threads") { threads_of_memprof(pid).empty? }
        end
        expect(value(pid, "[Memprof.running?, Memprof::Malloc.running?]")).to eq("[false, false]\n")
      end
    end
  end

  {
    "loop {}" => [/has stopped the code$/, 130],
    "begin\nloop {}\nrescue Exception\nretry\nend" => [/the thread "memprof attach" was killed$/, 2]
  }.each do |code, (message, exit_status)|
    it "stops #{code.lines.size} lines of endless code at Ctrl-C" do
      attachable(keeping) do |pid, _|
        File.write("code.rb", "File.write(#{File.expand_path("begun").dump}, '')\n#{code}")
        status = attaching(pid, "--eval", "code.rb") do |command|
          eventually("the code") { File.exist?("begun") }
          Process.kill(:INT, command)
        end
        expect(File.read("err").lines.last).to match(message)
        expect(status.exitstatus).to eq(exit_status)
        eventually("the end of the threads") { threads_of_memprof(pid).empty? }
      end
    end
  end

  it "says that code still runs that does not look for interrupts" do
    code = "require 'fiddle'\nFiddle::Function.new(Fiddle::Handle::DEFAULT['sleep'], [Fiddle::TYPE_INT], " \
           "Fiddle::TYPE_INT, need_gvl: true).call(12)"
    need(client: "fiddle")
    attachable(keeping) do |pid, _|
      File.write("code.rb", code)
      status = attaching(pid, "--eval", "code.rb") { |command| sleep(1) && Process.kill(:INT, command) }
      expect(File.read("err").lines.last).to include("is still running the code, which does not look for")
      expect(status.exitstatus).to eq(130)
      eventually("the end of the threads") { threads_of_memprof(pid).empty? }
    end
  end

  it "lets several commands in at the same time, and leaves no descriptor behind" do
    attachable("puts :ready\nloop { sleep 0.05 }") do |pid, _|
      value(pid, "1")
      before = Dir.children("/proc/#{pid}/fd").size
      results = Array.new(5) { Thread.new { evaluate(pid, "1") } }.map(&:value)
      expect(results.map { |result| [result.stdout, result.status.exitstatus] }).to all(eq(["1\n", 0])),
        results.map(&:stderr).join
      eventually("the end of the threads") { threads_of_memprof(pid).empty? }
      expect(Dir.children("/proc/#{pid}/fd").size).to eq(before)
    end
  end

  it "enters a program that reads its input in whole" do
    plain_program("puts :ready\nsleep", RbConfig.ruby, "-0777", "-e",
      "$stdout.syswrite(\"ready\\n\"); sleep") do |pid, _|
      expect(value(pid, "1")).to eq("1\n")
    end
  end

  it "leaves no tracking in a child that the process forks meanwhile" do
    code = <<~'RUBY'
      on = -> { [Memprof.running?, Memprof::Malloc.running?] }
      trap("USR1") do
        sleep 0.01 until on.call.any?
        fork { $stdout.syswrite("#{on.call}\n") }
      end
      puts :ready
      sleep
    RUBY
    attachable(code) do |pid, lines|
      %w[--track --malloc].each do |mode|
        attaching(pid, mode, "--for", "100000") do |command|
          Process.kill(:USR1, pid)
          expect(lines.gets).to eq("[false, false]\n")
          Process.kill(:INT, command)
        end
      end
    end
  end

  it "says that the process ended" do
    ["exit", "Process.kill(:KILL, Process.pid)"].each do |ending|
      plain_program("trap('USR1') { #{ending} }\nputs :ready\nsleep") do |pid, _|
        status = attaching(pid, "--track", "--for", "100000") { Process.kill(:USR1, pid) }
        expect(File.read("err").lines.last).to eq("memprof: process #{pid} ended\n")
        expect(status.exitstatus).to eq(2)
      end
    end
  end

  it "does not wake a main thread that waits for the system if another thread can evaluate the line" do
    skip "from 3.3 on only the main thread can be asked" if RUBY_VERSION >= "3.3"
    code = <<~RUBY
      require "fiddle"
      nanosleep = Fiddle::Function.new(Fiddle::Handle::DEFAULT["usleep"], [Fiddle::TYPE_INT], Fiddle::TYPE_INT)
      Thread.new { loop { sleep 0.01 } }
      puts :ready
      loop { puts nanosleep.call(500_000) }
    RUBY
    attachable(code) do |pid, lines|
      expect(value(pid, "1")).to eq("1\n")
      expect(Array.new(3) { lines.gets }).to all(eq("0\n"))
    end
  end

  it "times out if the process does nothing, and leaves the process as it was" do
    attachable("puts :ready\nloop { sleep 0.01; puts :on }") do |pid, lines|
      Process.kill(:STOP, pid)
      result = run_memprof("attach", pid, "--track", "--timeout", 1, timeout: 300)
      expect(result.stderr.lines.last)
        .to match(/did not begin within 1 s .*: it is stopped, until it gets SIGCONT$/)
      expect(result.status.exitstatus).to eq(2)
      expect(File.read("/proc/#{pid}/status")).to include("State:\tT")
      Process.kill(:CONT, pid)
      20.times { expect(lines.gets).to eq("on\n") }
      expect(value(pid, "$LOADED_FEATURES.grep(%r{memprof/version}).size")).to eq("1\n")
    end
  end

  it "asks a process that has loaded memprof/signal over its socket" do
    live_program("kept = []\nloop { kept << Object.new.tap { sleep 0.001 } }",
      env: { "MEMPROF_TRACK" => "off" }) do |program|
      socket_of(program)
      result = run_memprof("attach", program.pid, "--track", "--for", 1,
        env: { "MEMPROF_DIR" => program.directory }, timeout: 300)
      expect(result.stdout).to match(/-e:6:Object$/)
      expect(result.stderr).to match(/has loaded memprof.signal; asked over its socket/)
      stats = run_memprof("stats", "--pid", program.pid, env: { "MEMPROF_DIR" => program.directory })
      expect(stats.stderr).to include("objects are not tracked")
      expect(result.stderr).not_to include("before")
      run_memprof("start", "--pid", program.pid, env: { "MEMPROF_DIR" => program.directory })
      again = run_memprof("attach", program.pid, "--track", "--for", 0.1,
        env: { "MEMPROF_DIR" => program.directory }, timeout: 300)
      expect(again.stderr).to include("tracking was on before: older objects count, too, and it stays on\n")
    end
  end

  it "reports what the code raises, and what else is wrong, in one line" do
    attachable("puts :ready\nloop { sleep 0.01; puts :on }") do |pid, lines|
      result = evaluate(pid, "\nraise 'no'")
      expect(result.stderr.lines.last)
        .to match(%r{\Amemprof: process #{pid}: RuntimeError: no \(.*/code\.rb:2:in .*\)$})
      expect(result.status.exitstatus).to eq(2)
      expect(evaluate(pid, "exit").stderr).to match(/: SystemExit: exit/)
      expect(evaluate(pid, "Thread.current.kill").stderr)
        .to end_with("memprof: process #{pid}: the thread \"memprof attach\" was killed\n")
      expect(lines.gets).to eq("on\n")
    end
    {
      ["1"] => /expected one of: --track, --malloc, --eval FILE/,
      ["1", "--track", "--malloc"] => /expected one of/,
      ["1", "--track", "--output", "x"] => /--output needs --malloc/,
      ["1", "--track", "--sample", "512KiB"] => /invalid --sample "512KiB"; expected a number/,
      ["1", "--malloc", "--native"] => /--native needs --malloc and --output/,
      ["1", "--malloc", "--output", "x", "--limit", "3"] => /--limit cannot be used with --output/,
      ["--track"] => /PID is missing/,
      ["--track", "x"] => /invalid PID "x"/,
      ["--track", "1", "2"] => /unexpected arguments: 2/,
      ["--track", "--for", "-1", "1"] => /invalid --for "-1"/,
      ["--eval", "none.rb", Process.pid] => /cannot read none\.rb: no such file/,
      ["--eval", "code.rb", "--limit", "3", "1"] => /--limit cannot be used with --eval/
    }.each do |arguments, message|
      result = run_memprof("attach", *arguments)
      expect([result.stderr.lines.size, result.status.exitstatus]).to eq([1, 2])
      expect(result.stderr).to match(message)
    end
    other = Process.spawn("sleep", "1000")
    expect(run_memprof("attach", "--track", other).stderr).to eq("memprof: process #{other} runs no Ruby\n")
  ensure
    Process.kill(:KILL, other)
    Process.wait(other)
  end
end
