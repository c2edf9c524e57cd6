# frozen_string_literal: true

require_relative "target"

module Memprof
  module CLI
    # What the verbs have in common that speak to a running process.
    module LiveProcess
      HOW = 'add `require "memprof/signal"` to it, or start it with RUBYOPT=-rmemprof/signal'

      private

      def pid(parser)
        count(parser, "-p", "--pid PID", "the process", :pid)
      end

      def target(arguments)
        raise UsageError, "no process given: --pid PID; see `memprof help #{verb}`" unless @options[:pid]
        raise UsageError, "#{verb} takes no arguments: #{arguments.join(" ")}" unless arguments.empty?

        Target.new(@options[:pid]).tap(&:check)
      rescue Errno::ESRCH
        raise UsageError, "no such process: #{@options[:pid]}"
      rescue Errno::EPERM
        raise UsageError,
          "process #{@options[:pid]} belongs to somebody else: run memprof as its user, or as root"
      rescue RangeError
        raise UsageError, "no process can have the id #{@options[:pid]}"
      end

      # Asks over the socket, and gives the answer.
      def ask(target, request)
        client = target.connect
        unless client
          raise UsageError, "process #{target.pid} has not loaded memprof/signal, or has no socket: #{HOW}"
        end

        client.ask(request)
      rescue Control::Broken => e
        raise UsageError, "process #{target.pid}: #{e.message}"
      ensure
        client&.close
      end
    end
  end
end
