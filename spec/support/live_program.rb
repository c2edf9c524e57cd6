# frozen_string_literal: true

require "rbconfig"
require "socket"
require "tmpdir"

# Programs that have loaded memprof/signal and run while the example inspects them.
module LivePrograms
  # For a program that is inspected while a dump is being written, however long that takes: the child that
  # writes it is stopped as soon as it exists, and the program prints its id.
  HALTING = <<~'RUBY'
    Memprof.const_get(:Native).singleton_class.prepend(Module.new do
      def fork_dump(_descriptor, _settings, made)
        super.tap { Process.kill(:STOP, made.first) && STDOUT.syswrite("#{made.first}\n") }
      end
    end)
  RUBY

  # A running program: its dumps go to `directory`.
  LiveProgram = Struct.new(:pid, :directory, :input, :output, :errors) do
    # Its stderr so far.
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

    # Lets it continue to its next `gets`.
    def continue
      input.puts
    end

    # Its exit status.
    def wait
      @wait ||= Process.wait2(pid).last
    end
  end

  # Runs code in a child that has loaded memprof/signal and is ready; ends it after the block.
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

  # The path of its first dump, once it exists.
  def one_dump(program)
    eventually("a dump of #{program.pid} (#{program.stderr})") { program.dumps.first }
  end

  # The path of a process's socket, once a process listens on it: the file exists a moment earlier.
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

  # Waits until the block returns a true value, and returns it; fails the example after a timeout. A busy
  # machine may need long, as the children that write dumps have low priority.
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

  # Every line of a dump; each must be valid.
  def records(path)
    File.foreach(path, encoding: Encoding::UTF_8).map { |line| JSON.parse(line) }
  end

  # Fails the example if the dump is truncated.
  def expect_whole(path)
    lines = records(path)
    expect(lines.first).to include("type" => "header")
    expect(lines.last).to include("type" => "footer")
    lines
  end

  private

  # The whole process group, including its children.
  def finish(pid)
    Process.kill(:KILL, -pid)
    Process.wait(pid)
  rescue Errno::ESRCH, Errno::ECHILD
    nil
  end
end
