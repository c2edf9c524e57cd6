# frozen_string_literal: true

require "rbconfig"
require "socket"
require "tmpdir"

# Programs that have loaded memprof/signal and go on while the example looks into them.
module LivePrograms
  # For a program that is looked at while a dump is being written, however long that takes: the child that
  # writes it is stopped as soon as it is there, and the program prints its id.
  HALTING = <<~'RUBY'
    Memprof.const_get(:Native).singleton_class.prepend(Module.new do
      def fork_dump(_descriptor, _settings, made)
        super.tap { Process.kill(:STOP, made.first) && STDOUT.syswrite("#{made.first}\n") }
      end
    end)
  RUBY

  # One such program: `directory` is where its dumps go.
  LiveProgram = Struct.new(:pid, :directory, :input, :output, :errors) do
    # What it has written to stderr.
    def stderr
      File.read(errors)
    end

    def dumps
      Dir.glob(File.join(directory, "memprof-*")).grep_v(/\.(?:sock|IN_PROGRESS)\z/).sort
    end

    def files
      Dir.children(directory).sort
    end

    def signal(name = :URG)
      Process.kill(name, pid)
    end

    # The next line that it prints.
    def line
      output.gets&.chomp
    end

    # Lets it go on to its next `gets`.
    def continue
      input.puts
    end

    # Its exit status.
    def wait
      @wait ||= Process.wait2(pid).last
    end
  end

  # Runs code in a child that has loaded memprof/signal and said so; ends it after the block.
  def live_program(code = "sleep", env: {}, before: "", directory: Dir.mktmpdir("memprof-live-"), **options)
    errors = File.join(Dir.mktmpdir("memprof-errors-"), "stderr")
    program = "$stdout.sync = true\n#{before}\nrequire \"memprof/signal\"\nputs :ready\n#{code}"
    variables = { "RUBYOPT" => nil, "LC_ALL" => "C.UTF-8", "MEMPROF_DIR" => directory }.merge(env)
    theirs, input = IO.pipe
    output, ours = IO.pipe
    pid = Process.spawn(variables, RbConfig.ruby, "-W", "-I#{ChildRuby::LIB}", "-e", program,
      in: theirs, out: ours, err: errors, pgroup: true, **options)
    [theirs, ours].each(&:close)
    live = LiveProgram.new(pid, directory, input, output, errors)
    raise "does not start: #{live.stderr}" unless live.line == "ready"

    yield(live)
  ensure
    finish(pid) if pid
    [input, output].each { |io| io&.close }
    FileUtils.rm_rf([directory, errors && File.dirname(errors)].compact)
  end

  # The path of its first dump, once there is one.
  def one_dump(program)
    eventually("a dump of #{program.pid} (#{program.stderr})") { program.dumps.first }
  end

  # The path of a process's socket, once somebody listens there: the file is there a moment before.
  def socket_of(program, pid = program.pid)
    path = File.join(program.directory, "memprof-#{pid}.sock")
    eventually("the socket") { listened_to?(path) }
    path
  end

  def listened_to?(path)
    UNIXSocket.open(path) { true }
  rescue Errno::ENOENT, Errno::ECONNREFUSED
    false
  end

  # Waits until the block gives something, and gives it; fails the example if it does not in time: of that a
  # busy machine may need much, as the children that write dumps let everybody else go first.
  def eventually(what = "it", seconds: 120)
    now = -> { Process.clock_gettime(Process::CLOCK_MONOTONIC) }
    deadline = now.call + seconds
    loop do
      found = yield
      return found if found
      raise "#{what} did not happen within #{seconds} s" if now.call > deadline

      sleep(0.01)
    end
  end

  # Every line of a dump, each of which must be valid.
  def records(path)
    File.foreach(path, encoding: Encoding::UTF_8).map { |line| JSON.parse(line) }
  end

  # Fails the example if the dump is cut.
  def expect_whole(path)
    lines = records(path)
    expect(lines.first).to include("type" => "header")
    expect(lines.last).to include("type" => "footer")
    lines
  end

  private

  # The whole group: also what it forked.
  def finish(pid)
    Process.kill(:KILL, -pid)
    Process.wait(pid)
  rescue Errno::ESRCH, Errno::ECHILD
    nil
  end
end
