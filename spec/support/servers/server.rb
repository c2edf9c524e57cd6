# frozen_string_literal: true

require "etc"
require "fileutils"
require "io/wait"
require "socket"
require "timeout"
require "tmpdir"

module Servers
  # A server of a database or cache that this suite started, alone in a directory of its own. It does not run
  # as root, and it ends with the suite: at exit, and where `setpriv` is there by the kernel if the suite is
  # killed.
  #
  # A subclass says which {PROGRAMS} it needs, by what {#command} it is started, and when it is {#ready?}.
  class Server
    # Where Debian has programs that are not on everybody's PATH.
    PLACES = [*ENV.fetch("PATH", "").split(":"), "/usr/sbin", "/usr/local/sbin", "/sbin"].uniq.freeze
    PATIENCE = 120 # seconds
    TRIES = 5

    # It did so before it answered.
    class Ended < StandardError; end

    class << self
      # What keeps it from running here; nil if nothing does.
      def obstacle
        program = self::PROGRAMS.find { |name| path(name).nil? }
        return "#{program} is not installed" if program

        "no server runs as root, and setpriv is not installed" if Process.uid.zero? && path("setpriv").nil?
      end

      def path(program)
        places.map { |place| File.join(place, program) }.find { |path| File.executable?(path) }
      end

      def places
        PLACES
      end
    end

    attr_reader :directory, :pid

    def initialize
      @directory = Dir.mktmpdir("memprof-#{self.class.name[/\w+\z/].downcase}-")
      FileUtils.chown(user, nil, @directory) if Process.uid.zero?
      @log = File.join(@directory, "log")
    end

    def start
      tries = 0
      begin
        prepare
        @pid = spawn(*command)
        wait_until_ready
      rescue Ended
        # Who chose the same port may have been faster: the specs of another Ruby run beside these.
        retry if @port && (tries += 1) < TRIES
        raise
      end
      self
    end

    # Ends it and all that it started; returns when it is gone.
    def stop
      return unless @pid

      Process.kill(:TERM, -@pid)
      Timeout.timeout(10) { Process.wait(@pid) }
    rescue Timeout::Error
      Process.kill(:KILL, -@pid)
      Process.wait(@pid)
    rescue Errno::ESRCH, Errno::ECHILD
      nil # it has ended by itself
    ensure
      @pid = nil
      FileUtils.rm_rf(@directory)
    end

    # What it has written to its standard streams.
    def log
      File.exist?(@log) ? File.read(@log, encoding: Encoding::UTF_8).scrub : ""
    end

    private

    # Makes what the server expects to find.
    def prepare; end

    # Runs a program to its end.
    def run(*command)
      pid = spawn(*command)
      _, status = Process.wait2(pid)
      raise "#{command.first} failed (#{status}):\n#{log}" unless status.success?
    end

    def spawn(program, *arguments)
      command = [self.class.path(program), *arguments]
      # In this order: a change of the user takes the signal back.
      guard = self.class.path("setpriv")
      command = [guard, *other_user, "--pdeathsig", "KILL", "--", *command] if guard
      Process.spawn({ "HOME" => @directory, "TMPDIR" => @directory, "LC_ALL" => "C.UTF-8" }, *command,
        chdir: @directory, in: File::NULL, out: [@log, "a"], err: [:child, :out], pgroup: true)
    end

    def other_user
      return [] unless Process.uid.zero?

      ["--reuid", user, "--regid", Etc.getgrgid(Etc.getpwnam(user).gid).name, "--clear-groups"]
    end

    def user
      "nobody"
    end

    def wait_until_ready
      deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + PATIENCE
      until ready?
        raise Ended, "#{command.first} ended:\n#{log}" if Process.wait(@pid, Process::WNOHANG)
        raise "#{command.first} does not answer:\n#{log}" if
          Process.clock_gettime(Process::CLOCK_MONOTONIC) > deadline

        sleep(0.02)
      end
    end

    # A port of the loopback without a listener.
    def free_port
      TCPServer.open("127.0.0.1", 0) { |server| server.addr[1] }
    end

    # Says a line to a port or a socket, and gives how the answer begins; nil if there is none.
    def answer(line, *place)
      socket = place.first.is_a?(String) && place.size == 1 ? UNIXSocket.new(*place) : TCPSocket.new(*place)
      socket.write(line) if line
      socket.readpartial(4096) if socket.wait_readable(5)
    rescue SystemCallError, EOFError
      nil
    ensure
      socket&.close
    end
  end
end
