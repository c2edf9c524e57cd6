# frozen_string_literal: true

require_relative "client"

module Memprof
  module Tracers
    # `fd`, the part that never reaches the system's select: `select(nil, nil, nil, 0.15)`, which Ruby turns
    # into a sleep. It is reported as written. (The sleep may also appear as the call that Ruby sleeps with.)
    class Fd < Client
      # Prepended to the singletons of IO and Kernel.
      module Select
        def select(read, write = nil, error = nil, timeout = nil)
          read || write || error || Fd.running.empty? ? super : Fd.measure { super }
        end
      end

      # The same for Kernel, where it is private.
      module PrivateSelect
        private

        def select(read, write = nil, error = nil, timeout = nil)
          read || write || error || Fd.running.empty? ? super : Fd.measure { super }
        end
      end

      # Hooks in with the first trace that has this tracer. (Prepending twice has no further effect.)
      def self.install
        @installed ||= begin
          [IO, Kernel].each { |mod| mod.singleton_class.prepend(Select) }
          Kernel.prepend(PrivateSelect)
          true
        end
      end

      def initialize
        super
        @select = {}
      end

      def measured(time, wait, *) = count(@select, time + wait, 0.0)

      def report = @select.empty? ? {} : { "select" => @select }
    end
  end
end
