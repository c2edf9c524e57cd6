# frozen_string_literal: true

# Has a process end while a command of memprof deals with it, and another one get its number. To be run in a
# process namespace of its own, as `ruby reused_pid.rb KIND MEMPROF...`. Prints what the second one noticed.

require "fileutils"
require "rbconfig"

LAST = "/proc/sys/kernel/ns_last_pid"
MANY = 200_000 # names, for the command to read for a while

def wait_for(what, seconds = 60)
  deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + seconds
  until (found = yield)
    abort("not staged: #{what}") if Process.clock_gettime(Process::CLOCK_MONOTONIC) > deadline
    sleep(0.0005)
  end
  found
end

Subject = Struct.new(:pid, :input, :output) do
  def ask
    input.puts
    output.gets.chomp
  end

  def finish
    Process.kill(:KILL, pid)
    Process.wait(pid)
  end
end

# Starts a process, which prints what it notices whenever it is asked.
def subject(code, env)
  theirs, input = IO.pipe
  output, ours = IO.pipe
  pid = Process.spawn(env, RbConfig.ruby, "-I#{ENV.fetch("LIB")}", "-e", <<~RUBY, in: theirs, out: ours)
    $stdout.sync = true
    noticed = []
    #{code}
    puts "ready"
    puts noticed.join(" ") while gets
  RUBY
  [theirs, ours].each(&:close)
  Subject.new(pid, input, output)
end

# The same, under a given number.
def subject_at(pid, code, env)
  100.times do
    File.write(LAST, pid - 1)
    found = subject(code, env)
    return found if found.pid == pid

    found.finish
  end
  abort("not staged: the number #{pid} is not free")
end

def exchange(old, code, env)
  old.finish
  new = subject_at(old.pid, code, env)
  abort("not staged: it ended") unless new.output.gets == "ready\n"
  new
end

# What a process has open.
def links(pid)
  Dir.glob("/proc/#{pid}/fd/*").filter_map do |path|
    File.readlink(path)
  rescue SystemCallError
    nil # closed meanwhile
  end
end

def ended?(command) = !Process.wait2(command, Process::WNOHANG).nil?

def halt(command)
  Process.kill(:STOP, command)
  wait_for("the command stops") { ticks(command).first == "T" }
end

def ticks(pid) = File.read("/proc/#{pid}/stat")[/\) (.*)/m, 1].split.values_at(0, 11, 12)

kind, *memprof = ARGV
home = File.join(Dir.pwd, "home").tap { |path| Dir.mkdir(path) }
env = { "MEMPROF_DIR" => home, "TMPDIR" => home, "RUBYOPT" => nil }

case kind
when "signal"
  # Has loaded memprof/signal, but has no socket.
  code = <<~'RUBY'
    require "memprof/signal"
    socket = "#{ENV["MEMPROF_DIR"]}/memprof-#{$$}.sock"
    sleep(0.01) until File.socket?(socket)
    File.unlink(socket)
    trap("URG") { noticed << "signal" }
  RUBY
  options = "nr_inodes=#{2 * MANY}"
  system("mount", "-t", "tmpfs", "-o", options, "names", home) or abort("not staged: no tmpfs")
  File.write("#{home}/0", "")
  MANY.times { |number| File.link("#{home}/0", "#{home}/#{number + 1}") }
  old = subject(code, env)
  old.output.gets
  command = Process.spawn(*memprof, "dump", "--pid", old.pid.to_s, out: File::NULL, err: File::NULL)
  # It has looked at the first one once it has anything of it open.
  wait_for("the command has a look at it") do
    abort("not staged: the command has ended") if ended?(command)
    links(command).any? { |link| link == home || link.match?(%r{pidfd|\A/proc/#{old.pid}\b}) }
  end
  halt(command)
  abort("not staged: it was too fast") unless old.ask.empty?
  new = exchange(old, code, env)
  Process.kill(:CONT, command)
  wait_for("the end") { !new.ask.empty? || ended?(command) }
when "attach"
  loaded = "Thread.new { sleep 0.01 until $LOADED_FEATURES.grep(/memprof/).any?; noticed << 'loaded' }"
  old = subject(loaded, env)
  old.output.gets
  stderr, full = IO.pipe
  begin
    loop { full.write_nonblock("x" * 4096) }
  rescue IO::WaitWritable
    nil # what the command announces has to wait
  end
  command = Process.spawn(*memprof, "attach", old.pid.to_s, "--track", "--for", "0.1", "--timeout", "10",
    out: File::NULL, err: full)
  before = nil
  since = 0
  wait_for("the command waits") do
    abort("not staged: the command has ended") if ended?(command)
    now = ticks(command)
    now == before && now.first == "S" ? since += 1 : since = 0
    before = now
    since > 1500
  end
  abort("not staged: it was too fast") unless old.ask.empty?
  new = exchange(old, loaded, env)
  full.close
  Thread.new { stderr.read }
  wait_for("the end") { ended?(command) }
when "socket"
  code = <<~RUBY
    require "memprof/signal"
    tracks = ENV["MEMPROF_TRACK"] == "on"
    Thread.new do
      sleep(0.001) until Memprof.running? != tracks
      noticed << "tracking"
      sleep(0.001) until Memprof.running? == tracks
      noticed << "untracked"
    end
    sleep(0.01) until File.socket?("\#{ENV["MEMPROF_DIR"]}/memprof-\#{$$}.sock")
  RUBY
  old = subject(code, env.merge("MEMPROF_TRACK" => "off"))
  old.output.gets
  command = Process.spawn(*memprof, "attach", old.pid.to_s, "--track", "--for", "4",
    out: File::NULL, err: File::NULL)
  wait_for("tracking") { !old.ask.empty? }
  halt(command)
  abort("not staged: it was too fast") if old.ask.include?("untracked")
  FileUtils.rm_f("#{home}/memprof-#{old.pid}.sock")
  new = exchange(old, code, env.merge("MEMPROF_TRACK" => "on"))
  Process.kill(:CONT, command)
  wait_for("the end") { ended?(command) }
end

puts "noticed: #{new.ask}"
