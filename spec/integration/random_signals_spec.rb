# frozen_string_literal: true

# Commands that enter a process, ended at any moment: the process goes on as if nothing had been.
#
# MEMPROF_SIGNALS is the number of signals for each command (2), MEMPROF_SEED decides which and when.
RSpec.describe "A process that memprof enters, when memprof gets a signal" do
  include HostileProcesses

  signals = Integer(ENV.fetch("MEMPROF_SIGNALS", 2))
  seed = Integer(ENV.fetch("MEMPROF_SEED", 4711))

  before(:context) { RSpec.configuration.reporter.message("MEMPROF_SEED=#{seed} MEMPROF_SIGNALS=#{signals}") }

  # Seconds for what must be as before, and for a command to end.
  let(:patience) { 20 }

  # Answers a line with a line; the answer to "echo" passes through a thread that blocks in a read.
  let(:code) do
    <<~'RUBY'
      require "memprof/signal" if ENV["LOAD"]
      kept = Array.new(20_000) { |id| "text #{id}" }
      ticks = 0
      Thread.new { loop { ticks += 1; kept[ticks % 1000] = Object.new; sleep(0.001) } }
      pipe = IO.pipe
      read = Queue.new
      Thread.new { loop { read << pipe[0].gets } }
      state = lambda do
        busy = Thread.list.map { |thread| thread.name.to_s }.grep(/memprof attach/)
        memprof = Object.const_defined?(:Memprof) && Memprof
        busy << "tracks" if memprof && memprof.respond_to?(:running?) && memprof.running?
        loaded = memprof && !memprof.autoload?(:Malloc) && memprof.const_defined?(:Malloc)
        busy << "records malloc" if loaded && memprof::Malloc.respond_to?(:running?) && memprof::Malloc.running?
        busy
      end
      socket = File.join(ENV["MEMPROF_DIR"], "memprof-#{$$}.sock")
      sleep(0.01) until !ENV["LOAD"] || File.socket?(socket)
      puts "ready"
      while (line = gets)
        if line == "echo\n"
          pipe[1].puts(line)
          read.pop
          puts ticks
        else
          p state.call
        end
      end
    RUBY
  end

  def target(loaded, &block)
    env = { "MARK" => @mark = rand.to_s, "LOAD" => ("1" if loaded), "MEMPROF_TRACK" => "off" }
    foreign_program(code, env: env, ruby_args: ["-I#{ChildRuby::LIB}"], &block)
  end

  def ask(program, text)
    program.input.puts(text)
    program.output.wait_readable(patience) or raise "no answer to #{text.inspect}"
    program.line or raise "it ended"
  end

  # The process and its copies: they all have its environment.
  def copies(program)
    pids = Dir.children("/proc").grep(/\A\d/).map(&:to_i) - [program.pid]
    pids.select { |pid| marked?(pid) }
  end

  def marked?(pid)
    File.binread("/proc/#{pid}/environ").include?("MARK=#{@mark}")
  rescue SystemCallError
    false # it ended
  end

  # What is not as before.
  def disturbance(program)
    states = Dir.glob("/proc/#{program.pid}/task/*/status").map { |path| File.read(path) }
    return "it is stopped" if states.any? { |text| text.match?(/^State:\s+[Tt]/) }
    return "it is traced" unless states.all? { |text| text.match?(/^TracerPid:\s+0$/) }

    children = Dir.glob("/proc/#{program.pid}/task/*/children").flat_map { |path| File.read(path).split }
    return "it has children: #{children.join(" ")}" if children.any?
    return "there are copies: #{copies(program).join(" ")}" if copies(program).any?
    return "it has files: #{program.files.join(" ")}" if program.files.any?

    busy = ask(program, "state")
    "it is busy: #{busy}" unless busy == "[]"
  rescue SystemCallError
    "its threads change"
  end

  def ended?(program) = !Process.wait2(program.pid, Process::WNOHANG).nil?

  # Raises if the process is not as it was before.
  def expect_undisturbed(program)
    deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + patience
    found = nil
    loop do
      raise "it ended" if ended?(program)
      break unless (found = disturbance(program))
      raise found if Process.clock_gettime(Process::CLOCK_MONOTONIC) > deadline

      sleep(0.02)
    end
    before = Integer(ask(program, "echo"))
    sleep(0.02)
    deadline += patience
    until Integer(ask(program, "echo")) > before
      raise "a thread of it does not go on" if Process.clock_gettime(Process::CLOCK_MONOTONIC) > deadline
    end
  end

  # Signals the command, and waits for its end; what goes on for long is ended by Ctrl-C, too.
  def signal(command, signal, pause)
    send_signal(command, signal[/\w+/])
    if signal.start_with?("STOP")
      sleep(pause)
      send_signal(command, signal.split(" ").last)
      if signal.end_with?("CONT")
        sleep(pause)
        send_signal(command, "INT")
      end
    end
    failure = command.finish(60)
    raise "the command: #{failure}" if failure
    # Ruby 4.0 itself reports SIGABRT.
    raise "the command crashed: #{command.stderr}" if command.stderr.match?(/\[BUG\](?! Aborted)|panicked/)
  end

  def send_signal(command, name)
    Process.kill(name, command.pid) if command.running?
  end

  # The seconds that the command takes undisturbed.
  def usual(arguments)
    beginning = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    command = bounded(*arguments)
    expect(command.status).to be_success, command.stderr
    Process.clock_gettime(Process::CLOCK_MONOTONIC) - beginning
  end

  def expect_attachable(program)
    [%w[--track], %w[--malloc]].each do |mode|
      command = bounded("attach", program.pid, *mode, "--for", 0.1)
      raise "later, attach #{mode.first}: #{command.stderr}" unless command.status.success?

      expect_undisturbed(program)
    end
  end

  # One round: a process, and signals until it is disturbed. Gives what was wrong, and the number of signals.
  def round(loaded, shots, arguments, seconds)
    sent = 0
    last = nil
    target(loaded) do |program|
      shots.each do |(name, moment, pause)|
        sent += 1
        last = "#{name} after #{(moment * seconds).round(3)} s"
        command = start_memprof(*arguments.call(program.pid), rlimit_core: 0)
        sleep(moment * seconds)
        signal(command, name, pause)
        expect_undisturbed(program)
      ensure
        command&.kill
      end
      expect_attachable(program)
    end
    [nil, sent]
  rescue RuntimeError => e
    ["#{last}: #{e.message}", sent]
  end

  kinds = ["INT", "TERM", "HUP", "QUIT", "KILL", "ABRT", "STOP CONT", "STOP KILL"]
  dump = ->(pid) { ["dump", "--pid", pid, "--output", "heap.json"] }
  attach = ->(*rest) { ->(pid) { ["attach", pid, *rest] } }
  endless = 1000
  commands = {
    "dump --pid" => [dump],
    "dump --pid, with memprof/signal" => [dump, dump, true],
    "stack" => [->(pid) { ["stack", pid] }],
    "attach --track" => [attach.call("--track", "--for", endless),
      attach.call("--track", "--for", 0.1)],
    "attach --malloc" => [attach.call("--malloc", "--for", endless),
      attach.call("--malloc", "--for", 0.1)],
    "attach --eval" => [attach.call("--eval", "code.rb")],
    "core" => [->(pid) { ["core", pid] }],
    "memory" => [->(pid) { ["memory", pid] }],
    "memory, with memprof/signal" => [->(pid) { ["memory", pid] }, nil, true]
  }
  commands.each_with_index do |(name, (arguments, short, loaded)), index|
    it "goes on: #{name}" do
      File.write("code.rb", "sleep(0.2)")
      random = Random.new(seed + index)
      shots = Array.new(signals) { [kinds.sample(random: random), random.rand(0.15..1.1), random.rand(0.2)] }
      seconds = target(loaded) { |program| usual((short || arguments).call(program.pid)) }
      wrong = []
      until shots.empty?
        problem, sent = round(loaded, shots, arguments, seconds)
        wrong << problem if problem
        shots = shots.drop([sent, 1].max)
      end
      expect(wrong).to be_empty, "#{wrong.size} of #{signals} signals:\n#{wrong.join("\n")}"
    end
  end
end
