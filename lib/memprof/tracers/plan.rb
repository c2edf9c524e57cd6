# frozen_string_literal: true

require_relative "../native"
require_relative "../support"

module Memprof
  module Tracers
    # The tracers that traces with the same choice have, sorted out once: a server makes a trace for each
    # request.
    #
    # @api private
    class Plan
      # Tracers that need the hook on new objects.
      BIRTHS = %w[objects threads].freeze
      private_constant :BIRTHS

      # @return [Array<Symbol>] in the order of a report
      attr_reader :names
      # @return [Boolean] whether they were asked for by name
      attr_reader :asked
      # @return [Array<String>] those of the extension that work with this Ruby
      attr_reader :native
      # @return [Native::TraceChoice] the same, as the extension takes them
      attr_reader :choice
      # @return [Hash{Symbol => Class}] those of client gems
      attr_reader :clients
      # @return [Hash{Symbol => #new}] those of the program
      attr_reader :own
      # @return [Array<Trace>] that have ended and may be started again, of which a {Trace::Keeper} has use
      attr_reader :ready

      # @param names [Array<Symbol>]
      # @param native [Array<Symbol>] all of the extension
      # @param clients [Hash{Symbol => Class}] all of client gems
      # @param own [Hash{Symbol => #new}] all of the program
      # @param asked [Boolean] whether they were asked for by name
      # @raise [Unsupported] if one that was can't work with this Ruby
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

      # @return [Native::TraceChoice] without those that count calls of libraries
      def without_calls
        choice_of(@native - Native::Trace.call_names)
      end

      private

      def choice_of(native)
        Native::TraceChoice.new(native, @names.map(&:name))
      end

      def supported(names)
        return names unless names.intersect?(BIRTHS)

        Support.check
        names
      rescue Unsupported
        raise if @asked

        names - BIRTHS
      end
    end
  end
end
