# frozen_string_literal: true

require "rbconfig"
require_relative "../clock"

module Memprof
  module CLI
    # The command that is tracked: started with our library in RUBYOPT, sent what signals come, waited for.
    #
    # A process of its own, and not an exec of this one, so that somebody is left to print the reports and to
    # say why there is none.
    class Program
      LIB = File.expand_path("../..", __dir__)
      FORWARDED = %w[INT QUIT TERM HUP ALRM USR1 USR2].freeze
      # These a terminal sends to everyone in its foreground, the command included.
      FROM_KEYBOARD = %w[INT QUIT].freeze
      # ioctl(2): which process group is in the foreground. On Linux and on macOS.
      TIOCGPGRP = RUBY_PLATFORM.include?("linux") ? 0x540F : 0x40047477
      # Binstubs would have Spring do the work, in a server that is there already.
      WITHOUT_SPRING = { "DISABLE_SPRING" => "1" }.freeze
      # A command that took so many seconds, and worked for less than this part of them, only waited.
      LONG = 5
      IDLE = 0.05
      private_constant :LIB, :FORWARDED, :FROM_KEYBOARD, :TIOCGPGRP, :LONG, :IDLE

      attr_reader :pid

      # Whether the command is a Ruby, or a script that one runs.
      def self.ruby?(command)
        path = command.include?("/") ? command : which(command)
        return false unless path && File.file?(path)

        real = File.realpath(path)
        names = [path, real].map { |name| File.basename(name) }
        return true if names.any? { |name| name.start_with?("ruby") || name.end_with?(".rb") }

        File.open(real, "rb") { |file| file.gets(256).to_s.b.match?(/\A#!.*ruby/n) }
      rescue SystemCallError
        false
      end

      # The file that a command on PATH is; nil if there is none.
      def self.which(command)
        directories = ENV.fetch("PATH", "").split(File::PATH_SEPARATOR)
        paths = directories.map { |directory| File.join(directory, command) }
        paths.find { |path| File.file?(path) && File.executable?(path) }
      end

      # `signal` is forwarded besides those that always are.
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
          status.exitstatus || (128 + status.termsig)
        end
      rescue Errno::ENOENT
        @terminal.warn("no such command: #{@command.first}")
        127
      rescue SystemCallError => e
        @terminal.warn("cannot start #{@command.first}: #{e.message.delete_suffix(" - #{@command.first}")}")
        126
      end

      private

      # Seconds of CPU that the processes it waited for have used, and those that they waited for.
      def cpu = Process.times.then { |times| times.cutime + times.cstime }

      # A client, as of Spring or docker, does none of the work itself. Nor does a server without requests,
      # which a signal ends.
      def warn_if_idle(begun, used)
        seconds = Clock.now - begun
        worked = cpu - used
        return if @signaled || seconds < LONG || worked > seconds * IDLE

        @terminal.warn(format("the command worked for %.1f s of %.1f s: what processes that it did not " \
                              "start did for it was not measured", worked, seconds))
      end

      # RUBYOPT has no way to quote a space; RUBYLIB needs none, but a program may well replace it.
      def environment
        required = File.join(LIB, @feature)
        plain = !LIB.match?(/\s/)
        options = plain ? "-I#{LIB} -r#{required}" : "-r#{@feature}"
        # First, so that what the user's own options load runs its at_exit handlers before ours.
        variables = { "RUBYOPT" => [options, ENV["RUBYOPT"]&.gsub(options, "")].join(" ").strip }
        variables["RUBYLIB"] = [LIB, ENV["RUBYLIB"]].compact.join(File::PATH_SEPARATOR) unless plain
        WITHOUT_SPRING.merge(@environment, variables)
      end

      # A Ruby script that the system could not start by itself is given to the Ruby that runs this.
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
        # The command inherits that a signal is ignored, as under nohup, but not that it is forwarded.
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
        nil # it has ended, or become somebody else's
      end

      def foreground?
        File.open("/dev/tty") do |tty|
          group = [0].pack("i!")
          tty.ioctl(TIOCGPGRP, group)
          group.unpack1("i!") == Process.getpgrp
        end
      rescue SystemCallError
        false # no terminal: it was sent to this process alone
      end
    end
  end
end
