# frozen_string_literal: true

require "rbconfig"
require_relative "../clock"

module Memprof
  module CLI
    # Starts the tracked command with our library in RUBYOPT, forwards signals to it, and waits for it.
    #
    # Runs as a child process rather than by exec, so that this process can print the reports, or say why
    # there is no report.
    class Program
      LIB = File.expand_path("../..", __dir__)
      FORWARDED = %w[INT QUIT TERM HUP ALRM USR1 USR2].freeze
      # A terminal sends these to its whole foreground process group, including the command.
      FROM_KEYBOARD = %w[INT QUIT].freeze
      # ioctl(2): which process group is in the foreground. On Linux and on macOS.
      TIOCGPGRP = RUBY_PLATFORM.include?("linux") ? 0x540F : 0x40047477
      # Binstubs would delegate to Spring, a server that is already running.
      WITHOUT_SPRING = { "DISABLE_SPRING" => "1" }.freeze
      # A command that took this many seconds, and used less than this share of them, only waited.
      LONG = 5
      IDLE = 0.05
      private_constant :LIB, :FORWARDED, :FROM_KEYBOARD, :TIOCGPGRP, :LONG, :IDLE

      attr_reader :pid

      # Whether the command is a Ruby, or a script run by Ruby.
      def self.ruby?(command)
        path = command.include?("/") || File.file?(command) ? command : which(command)
        return false unless path && File.file?(path)

        real = File.realpath(path)
        names = [path, real].map { |name| File.basename(name) }
        return true if names.any? { |name| name.start_with?("ruby") || name.end_with?(".rb") }

        File.open(real, "rb") { |file| file.gets(256).to_s.b.match?(/\A#!.*ruby/n) }
      rescue SystemCallError
        false
      end

      # The file of a command on PATH; nil if not found.
      def self.which(command)
        directories = ENV.fetch("PATH", "").split(File::PATH_SEPARATOR)
        paths = directories.map { |directory| File.join(directory, command) }
        paths.find { |path| File.file?(path) && File.executable?(path) }
      end

      # `signal` is forwarded in addition to FORWARDED.
      def initialize(command, environment, terminal, feature: "memprof/autorun", redirect: {}, signal: nil)
        @command = interpreted(command)
        @environment = environment
        @terminal = terminal
        @feature = feature
        @redirect = redirect
        @forwarded = FORWARDED | [signal].compact
        @early = []
      end

      def run
        forwarding_signals do
          name, *arguments = @command
          @pid = Process.spawn(environment, [name, name], *arguments, @redirect)
          begun = [Clock.now, cpu]
          @early.each { |signal| pass_on(signal) }
          _, status = Process.wait2(@pid)
          warn_if_idle(*begun) if status.success?
          status.exitstatus || (ExitStatus::SIGNAL + status.termsig)
        end
      rescue Errno::ENOENT
        @terminal.warn("no such command: #{@command.first}")
        ExitStatus::NOT_FOUND
      rescue SystemCallError => e
        @terminal.warn("cannot start #{@command.first}: #{e.message.delete_suffix(" - #{@command.first}")}")
        ExitStatus::NOT_STARTED
      end

      private

      # CPU seconds used by the awaited child processes and their own awaited children.
      def cpu = Process.times.then { |times| times.cutime + times.cstime }

      # A client, such as Spring's or docker, does none of the work itself. Nor does a server without
      # requests, which is ended by a signal.
      def warn_if_idle(begun, used)
        seconds = Clock.now - begun
        worked = cpu - used
        return if @signaled || seconds < LONG || worked > seconds * IDLE

        @terminal.warn(format("the command worked for %.1f s of %.1f s: what processes that it did not " \
                              "start did for it was not measured", worked, seconds))
      end

      # RUBYOPT can't quote a space; RUBYLIB can contain one, but a program may well replace it.
      def environment
        required = File.join(LIB, @feature)
        plain = !LIB.match?(/\s/)
        options = plain ? "-I#{LIB} -r#{required}" : "-r#{@feature}"
        # First, so that at_exit handlers of the user's own options run before ours.
        variables = { "RUBYOPT" => [options, ENV["RUBYOPT"]&.gsub(options, "")].join(" ").strip }
        variables["RUBYLIB"] = [LIB, ENV["RUBYLIB"]].compact.join(File::PATH_SEPARATOR) unless plain
        WITHOUT_SPRING.merge(@environment, variables)
      end

      # A Ruby script that the system can't start by itself is run by the current Ruby.
      def interpreted(command)
        script = command.first
        return command unless File.file?(script) && (script.end_with?(".rb") || ruby_shebang?(script))
        return command if File.executable?(script) && shebang(script) && script.include?("/")

        [RbConfig.ruby, *command]
      end

      def ruby_shebang?(path) = shebang(path)&.include?("ruby")

      def shebang(path)
        line = File.open(path, "rb") { |file| file.gets(256) }
        line if line&.start_with?("#!")
      rescue SystemCallError
        nil
      end

      def forwarding_signals
        before = @forwarded.to_h { |name| [name, trap(name) { forward(name) }] }
        # The command inherits ignored signals, as under nohup, but not the forwarding.
        before.each { |name, handler| trap(name, handler) if handler == "IGNORE" }
        yield
      ensure
        before&.each { |name, handler| trap(name, handler || "DEFAULT") }
      end

      def forward(signal)
        @signaled = true
        @pid ? pass_on(signal) : @early << signal
      end

      def pass_on(signal)
        Process.kill(signal, @pid) unless FROM_KEYBOARD.include?(signal) && foreground?
      rescue Errno::ESRCH, Errno::EPERM
        nil # it has ended, or belongs to someone else now
      end

      def foreground?
        File.open("/dev/tty") do |tty|
          group = [0].pack("i!")
          tty.ioctl(TIOCGPGRP, group)
          group.unpack1("i!") == Process.getpgrp
        end
      rescue SystemCallError
        false # no terminal: the signal was sent to this process alone
      end
    end
  end
end
