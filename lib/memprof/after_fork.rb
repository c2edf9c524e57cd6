# frozen_string_literal: true

module Memprof
  # Hooks for the child of a fork, called in the order of registration: copied sessions, traces, threads and
  # locks are the parent's. A child that becomes another program by `system`, `spawn` or backticks does not
  # run them.
  module AfterFork
    @parts = [].freeze

    class << self
      # Calls `part.after_fork` in the child of a fork. Ruby does not treat `Process.daemon` as a fork: parts
      # with `before_daemon` and `after_daemon` get these calls.
      def register(part)
        Process.singleton_class.prepend(Hook) if @parts.empty?
        @parts = [*@parts, part].uniq.freeze
      end

      def each(message)
        @parts.each { |part| part.public_send(message) if part.respond_to?(message) }
      end
    end

    # Prepended to Process.
    module Hook
      def _fork
        pid = super
        AfterFork.each(:after_fork) if pid.zero?
        pid
      end

      # The same program continues under another id.
      def daemon(...)
        AfterFork.each(:before_daemon)
        result = super
        AfterFork.each(:after_daemon)
        result
      end
    end
    private_constant :Hook
  end
end
