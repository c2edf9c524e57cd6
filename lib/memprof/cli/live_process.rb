# frozen_string_literal: true

module Memprof
  module CLI
    # Shared by the verbs that talk to a running process.
    module LiveProcess
      HOW = 'add `require "memprof/signal"` to it, or start it with RUBYOPT=-rmemprof/signal'
      PID = /\A[1-9]\d{0,9}\z/

      private

      def arrange(arguments) = parser.permute(arguments)

      # The arguments, beginning with the process of --pid.
      def with_pid(arguments) = @options[:pid] ? [@options[:pid].to_s, *arguments] : arguments

      # The process named by the only argument.
      def target(arguments)
        pid, = expect_arguments(with_pid(arguments), "PID")
        target_of(pid)
      end

      # The process named by an argument.
      def target_of(pid)
        raise UsageError, "invalid PID \"#{pid}\"; expected a process id" unless PID.match?(pid)

        checked_target(pid.to_i)
      end

      # Whether an argument names a process: a file may have any name.
      def pid?(argument) = PID.match?(argument) && !File.exist?(argument)

      def checked_target(pid)
        Target.new(pid).tap(&:check)
      rescue Errno::ESRCH
        raise UsageError, "process #{pid} has ended, and its parent has yet to wait for it" if
          File.exist?("/proc/#{pid}")

        raise UsageError, "no such process: #{pid}"
      rescue Errno::EPERM
        raise UsageError, "process #{pid} belongs to another user; run memprof as that user, or as root"
      rescue RangeError
        raise UsageError, "invalid PID \"#{pid}\"; expected a process id"
      end

      # Asks over the socket, and returns the answer.
      def ask_process(target, request)
        client = target.connect
        unless client
          target.refuse_forbidden
          raise UsageError, "process #{target.pid} has not loaded memprof/signal, or has no socket: #{HOW}"
        end

        target.refuse_stopped
        client.ask(request)
      rescue Control::Broken => e
        raise UsageError, "process #{target.pid}: #{e.message}"
      ensure
        client&.close
      end
    end
  end
end
