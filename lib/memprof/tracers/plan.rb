# frozen_string_literal: true

require_relative "../native"
require_relative "../support"

module Memprof
  module Tracers
    # The tracers that traces with the same choice have, sorted out once: a server makes a trace for each
    # request.
    class Plan
      # Tracers that need the hook on allocations.
      ALLOCATIONS = %w[objects threads].freeze
      private_constant :ALLOCATIONS

      attr_reader :names
      attr_reader :asked
      attr_reader :native
      attr_reader :choice
      attr_reader :clients
      attr_reader :own
      attr_reader :ready

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

      def without_calls
        choice_of(@native - Native::Trace.call_names)
      end

      private

      def choice_of(native)
        Native::TraceChoice.new(native, @names.map(&:name))
      end

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
