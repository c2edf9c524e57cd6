# frozen_string_literal: true

module Memprof
  # What is to be done in the child of a fork, in the order in which it was registered: sessions, traces,
  # threads and locks that were copied are the parent's. A child that becomes another program by `system`,
  # `spawn` or backticks is not made this way.
  module AfterFork
    @parts = [].freeze

    class << self
      # Has `part.after_fork` called in the child of a fork. `Process.daemon` is no fork to Ruby: a part that
      # has `before_daemon` and `after_daemon` is called.
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

      # The same program goes on under another id.
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
