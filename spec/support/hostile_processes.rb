# frozen_string_literal: true

require "fileutils"
require "rbconfig"
require "tmpdir"

# Processes of another user, with their own directory for temporary files, and the command that root runs on
# them. Results are read from the file system and /proc, never from memprof's output.
module HostileProcesses
  MALLORY = 65_534
  CONTAINER = File.join(__dir__, "hostile/container.sh")
  MEMPROF = [RbConfig.ruby, "-I#{ChildRuby::LIB}", File.join(ChildRuby::ROOT, "exe/memprof")].freeze
  # Contents of files that only root may read.
  SECRET = "for root's eyes only"
  # Output of Ruby, Rust or memprof on an internal error.
  CRASH = /^\S+\.rb:\d+:in |internal error|\[BUG\]|panicked|stack level too deep|failed to allocate/
  # Maximum bytes that the command may use, and the limit at which it is killed.
  MOST_MEMORY = 500 << 20
  KILLED_AT = 600 << 20

  # A running memprof command.
  Command = Struct.new(:pid, :directory, :failure) do
    def stdout = File.read(File.join(directory, "out"), encoding: "UTF-8")
    def stderr = File.read(File.join(directory, "err"), encoding: "UTF-8")

    def status = @status ||= Process.wait2(pid, Process::WNOHANG)&.last
    def running? = status.nil?

    # Its peak memory, as long as that can be read.
    def peak
      @peak = [@peak.to_i, File.read("/proc/#{pid}/status")[/^VmHWM:\s+(\d+)/, 1].to_i << 10].max
    rescue SystemCallError
      @peak.to_i
    end

    def kill
      Process.kill(:KILL, -pid) if running?
    rescue Errno::ESRCH
      nil # its group is gone
    end

    # Waits for its end while monitoring its memory. Returns an error message or nil.
    def finish(seconds)
      deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + seconds
      while running?
        late = Process.clock_gettime(Process::CLOCK_MONOTONIC) > deadline
        return "no end after #{seconds} s: #{stdout}#{stderr}" if late
        return "#{peak >> 20} MiB, and more to come" if peak > KILLED_AT

        sleep(0.005)
      end
    ensure
      kill
      @status ||= Process.wait2(pid).last
    end
  end

  # A program run by another user; `home` is the directory for its temporary files, as seen by root.
  Foreign = Struct.new(:pid, :home, :input, :output) do
    def line = output.gets&.chomp

    def ask(text)
      input.puts(text)
      line
    end

    def files = Dir.children(home).grep_v(/\.sock\z/).sort
  end

  def self.included(group)
    group.around do |example|
      Dir.mktmpdir("memprof-root-", "/tmp") { |directory| Dir.chdir(directory) { example.run } }
    end
    group.before do
      skip "needs root, to be somebody else" unless Process.euid.zero?
      skip "needs setpriv and unshare" unless system(*as(MALLORY), "true", err: File::NULL) &&
        system("unshare", "-m", "true", err: File::NULL)
      readable = system(*as(MALLORY), "test", "-r", File.join(ChildRuby::LIB, "memprof.rb"))
      skip "no other user may read #{ChildRuby::LIB}" unless readable
    end
  end

  def as(uid) = %W[setpriv --reuid #{uid} --regid #{uid} --clear-groups]

  # A directory owned by root that other users may not enter, with files of a user; the block gets its path.
  def with_victim(*names, uid: 0)
    Dir.mktmpdir("memprof-victim-", "/tmp") do |path|
      names.each { |name| plant(File.join(path, name), uid) }
      yield(path)
    end
  end

  # A valid heap dump for any command.
  def plant(path, uid)
    File.write(path, <<~JSON, perm: 0o600)
      {"type":"ROOT", "root":"vm", "references":["0x100000"]}
      {"address":"0x100000", "type":"STRING", "class":"0x8", "value":"#{SECRET}", "memsize":40}
    JSON
    File.chown(uid, uid, path)
  end

  # Everything in a directory, and the directory itself: type, owner, and contents.
  def facts(directory)
    Dir.glob("**/*", File::FNM_DOTMATCH, base: directory).sort.to_h do |name|
      path = File.join(directory, name)
      stat = File.lstat(path)
      [name, [stat.ino, stat.uid, stat.gid, stat.mode, stat.file? ? File.binread(path) : stat.ftype]]
    end
  end

  # Fails the example if the block changes anything in a directory, even if it is restored at the end.
  def leaves_alone(directory)
    before = facts(directory)
    seen = []
    done = false
    watcher = Thread.new do
      until done
        seen |= Dir.children(directory) - before.keys
        sleep(0.0005)
      end
    end
    result = yield
    done = true
    watcher.join
    expect([facts(directory), seen]).to eq([before, []]), result.respond_to?(:stderr) ? result.stderr : nil
    result
  ensure
    done = true
  end

  # A directory of another user.
  def with_home(uid = MALLORY)
    Dir.mktmpdir("memprof-home-", "/tmp") do |home|
      File.chown(uid || MALLORY, uid || MALLORY, home)
      yield(home)
    end
  end

  # Runs Ruby code as another user, which prints "ready" when it is. `wrapper` is a command that runs it;
  # without `uid`, the wrapper changes the user.
  def foreign_program(code, *wrapper, uid: MALLORY, home: nil, env: {}, ruby_args: [])
    return with_home(uid) { |path|
      foreign_program(code, *wrapper, uid: uid, home: path, env: env, ruby_args: ruby_args) { |program|
        yield(program)
      }
    } unless home

    theirs, input = IO.pipe
    output, ours = IO.pipe
    variables = { "RUBYOPT" => nil, "LC_ALL" => "C.UTF-8", "TMPDIR" => home, "MEMPROF_DIR" => home }
    command = [*wrapper, *(as(uid) if uid), RbConfig.ruby, *ruby_args, "-e", "$stdout.sync = true\n#{code}"]
    pid = Process.spawn(variables.merge(env), *command, in: theirs, out: ours, pgroup: true)
    [theirs, ours].each(&:close)
    program = Foreign.new(pid, home, input, output)
    raise "does not start: #{code}" unless program.line == "ready"

    yield(program)
  ensure
    if pid
      end_group(pid)
      [input, output].each(&:close)
    end
  end

  # The same in a separate root. Its home is /inside there, and `prepare` is a shell script that runs in the
  # new root first.
  def contained_program(code, kind, prepare: "", library: ChildRuby::LIB, tmp: "mode=1777", env: {},
    **options)
    Dir.mktmpdir("memprof-container-", "/tmp") do |root|
      given = { "PREPARE" => "mkdir -p inside && chown #{MALLORY} inside\n#{prepare}", "LIBRARY" => library,
                "HIDDEN" => File.dirname(ChildRuby::ROOT),
                "TMP_OPTIONS" => tmp, "TMPDIR" => "/inside", "MEMPROF_DIR" => "/inside" }
      wrapper = ["unshare", "-m", "sh", CONTAINER, kind.to_s, root]
      foreign_program(code, *wrapper, home: "/inside", env: given.merge(env), **options) do |program|
        program.home = "/proc/#{program.pid}/root#{program.home}"
        yield(program)
      end
    end
  end

  # Starts the command, as root.
  def start_memprof(*arguments, env: {}, **options)
    directory = Dir.mktmpdir("command-", Dir.pwd)
    variables = { "RUBYOPT" => nil, "NO_COLOR" => nil, "LC_ALL" => "C.UTF-8", "MEMPROF_DIR" => nil }
    streams = { out: File.join(directory, "out"), err: File.join(directory, "err") }
    pid = Process.spawn(variables.merge(env), *MEMPROF, *arguments.map(&:to_s),
      pgroup: true, in: File::NULL, **streams, **options)
    Command.new(pid, directory)
  end

  # Runs the command, which must end in time, without a crash, and with little memory.
  def bounded(*arguments, **options) = all_bounded([arguments], **options).first

  # The same for several command lines at once: each may have to wait for a timeout.
  def all_bounded(lines, seconds: 60, **options)
    commands = lines.map { |arguments| start_memprof(*arguments, **options) }
    ends = commands.map { |command| Thread.new { command.failure = command.finish(seconds) } }
    ends.each(&:join)
    aggregate_failures do
      lines.zip(commands) { |arguments, command| expect_bounded(arguments.first, command) }
    end
    commands
  ensure
    commands&.each(&:kill)
  end

  # The same for commands that must fail.
  def refused(*arguments, **options)
    command = bounded(*arguments, **options)
    expect(command.status.exitstatus).to eq(2), command.stdout + command.stderr
    command
  end

  private

  def expect_bounded(verb, command)
    said = "memprof #{verb}: #{command.status}\n#{command.stdout}#{command.stderr}"
    expect(command.failure).to be_nil, "memprof #{verb}: #{command.failure}"
    return if command.failure

    expect(command.peak).to be < MOST_MEMORY
    expect(command.status.exitstatus).to be_between(0, 2).inclusive, said
    expect(command.stderr).not_to match(CRASH) # what it prints may be a stack
    expect(said).not_to match(/[\e\a\u202e]/)
  end

  def end_group(pid)
    Process.kill(:KILL, -pid)
    Process.wait(pid)
  rescue Errno::ESRCH, Errno::ECHILD
    nil # already ended
  end
end
