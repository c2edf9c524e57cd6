# frozen_string_literal: true

require "open3"
require "rbconfig"

# Runs programs in child processes: tests code that forks, crashes or exits from outside.
module ChildRuby
  ROOT = File.expand_path("../..", __dir__)
  LIB = File.join(ROOT, "lib")
  # Seconds: a busy machine is slow, and a long limit costs nothing.
  PATIENCE = 180

  # The result of a child. Takes part in multiple assignment: `stdout, stderr, status = run_ruby(...)`.
  Result = Struct.new(:stdout, :stderr, :status) do
    alias_method :to_ary, :to_a

    def success?
      status.success?
    end
  end

  # Runs Ruby code, or a file if one of that name exists, with lib/ on the load path.
  # Environment variables that are nil are unset. `options` go to Process.spawn (such as `chdir:`).
  def run_ruby(code_or_file, env: {}, args: [], ruby_args: [], input: "", timeout: PATIENCE, **options)
    program = File.file?(code_or_file) ? [code_or_file] : ["-e", code_or_file]
    run_command(RbConfig.ruby, "-I#{LIB}", *ruby_args, *program, *args,
      env: env, input: input, timeout: timeout, **options)
  end

  # Like #run_ruby, for the `memprof` command.
  def run_memprof(*args, **options)
    run_ruby(File.join(ROOT, "exe/memprof"), args: args, **options)
  end

  # Runs any command; kills it with all its children, and fails the example, after `timeout` seconds.
  def run_command(*command, env: {}, input: "", timeout: PATIENCE, **options)
    environment = { "RUBYOPT" => nil, "NO_COLOR" => nil, "LC_ALL" => "C.UTF-8" }.merge(env)
    Open3.popen3(environment, *command.map(&:to_s), pgroup: true, **options) do |stdin, stdout, stderr, child|
      deadline = monotonic + timeout
      readers = [stdout, stderr].map { |io| Thread.new { io.read.force_encoding(Encoding::UTF_8) } }
      feed(stdin, input)
      # Also waits for the pipes: a grandchild that keeps one open would block the readers.
      finished = [child, *readers].all? { |thread| thread.join([deadline - monotonic, 0].max) }
      kill_group(child.pid) unless finished
      result = Result.new(*readers.map(&:value), child.value)
      next result if finished

      raise "no end after #{timeout} s: #{command.join(" ")}\n#{result.stdout}#{result.stderr}"
    end
  end

  private

  def monotonic
    Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end

  def kill_group(leader)
    Process.kill(:KILL, -leader)
  rescue Errno::ESRCH
    nil # ended in between
  end

  def feed(stdin, input)
    stdin.write(input)
  rescue Errno::EPIPE
    nil # the child did not read it
  ensure
    stdin.close
  end
end
