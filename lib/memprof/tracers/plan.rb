# frozen_string_literal: true

require_relative "../native"
require_relative "../support"

module Memprof
  module Tracers
    # The tracers for one choice of names, prepared once: a server creates a trace for each request.
    class Plan
      # Tracers that need the allocation hook.
      ALLOCATIONS = %w[objects threads].freeze
      private_constant :ALLOCATIONS

      attr_reader :names, :asked, :native, :choice, :clients, :own, :ready

      def initialize(names, native, clients, own, asked:)
        @names = names.freeze
        @asked = asked
        @native = supported((names & native).map(&:name)).freeze
        @choice = choice_of(@native)
        @clients = clients.slice(*names).freeze
        @own = own.slice(*names).freeze
        @ready = []
        freeze
      end

      def without_calls = choice_of(@native - Native::Trace.call_names)

      private

      def choice_of(native) = Native::TraceChoice.new(native, @names.map(&:name))

      def supported(names)
        Support.avoid_ractors
        return names unless names.intersect?(ALLOCATIONS)

        Support.check_ruby
        names
      rescue Unsupported
        raise if @asked

        names - ALLOCATIONS
      end
    end
  end
end
