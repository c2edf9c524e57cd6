# frozen_string_literal: true

require_relative "client"

module Memprof
  module Tracers
    # `memcache`, the part of the gem dalli: calls by name, with their responses. The extension traces
    # libmemcached, and both appear in one report.
    class Memcache < Client
      # libmemcached's names for the same calls.
      NAMES = { incr: "increment", decr: "decrement", get_multi: "mget", get_multi_cas: "mget",
                get_multi_with_metadata: "mget" }.freeze
      MISSED = %i[delete touch gat get cas incr decr].freeze
      # Calls that take their keys in one argument, and options in others.
      FIRST = %i[set_multi delete_multi].freeze
      # dalli's flag for not waiting for answers: in blocks of `multi` and `quiet`.
      QUIET = :dalli_multi
      private_constant :NAMES, :MISSED, :FIRST, :QUIET

      def self.called(operation, arguments = nil, handed = nil)
        subscribers = running
        began = Clock.now
        waited = Native.gvl_wait
        given = false
        begin
          value = yield
          given = true
          value
        ensure
          record(subscribers, began, waited) do |client, time, wait|
            answers = given ? answers(operation, value, arguments, handed) : { "error" => 1 }
            client.called(operation, time, wait, answers)
          end
        end
      end

      def self.answers(operation, value, arguments, handed)
        return responses(operation, value) unless arguments

        responses_for_many(operation, handed ? handed.first : value, arguments)
      end
      private_class_method :answers

      # The server's response, derived from dalli's return value: nil for a missing key, false for a value
      # that was not stored. Unknown where dalli does not wait for an answer.
      def self.responses(operation, value)
        return { "unknown" => 1 } if Thread.current[QUIET]

        found = operation == :cas && value.is_a?(Array) ? value.first : value
        found = nil if defined?(::Dalli::NOT_FOUND) && ::Dalli::NOT_FOUND.equal?(found)
        return { found ? "success" : "notfound" => 1 } if MISSED.include?(operation)

        # A stored value has a version, which is never 0.
        { found && found != 0 ? "success" : "notstored" => 1 }
      end

      def self.responses_for_many(operation, found, arguments)
        asked = FIRST.include?(operation) ? arguments.first.size : arguments.flatten.compact.size
        found = found.size if found.is_a?(Hash)
        return { "unknown" => asked } if operation == :set_multi || !found.is_a?(Integer)

        { "success" => found, "notfound" => asked - found }.select { |_, count| count.positive? }
      end

      # Hooks the method that all single-key calls pass through.
      module Dalli
        # Not every version of dalli has all multi-key calls.
        def self.prepended(client)
          super
          MANY.each { |name, hook| client.prepend(hook) if client.method_defined?(name) }
        end

        private

        def perform(*arguments, **)
          operation = arguments.first
          # Without one, as in dalli's own calls, it only concerns the connection.
          return super if Memcache.running.empty? || !operation.is_a?(Symbol)

          Memcache.called(operation) { super }
        end
      end

      # Hooks into a multi-key call.
      def self.hook_for(name)
        Module.new do
          # Not with a block, which would allocate an object for the block it is given.
          module_eval(<<~RUBY, __FILE__, __LINE__ + 1)
            def #{name}(*arguments, **)
              return super if Memcache.running.empty?
              return Memcache.called(:#{name}, arguments) { super } unless block_given?

              handed = [0]
              Memcache.called(:#{name}, arguments, handed) do
                super do |key, value|
                  handed[0] += 1
                  yield key, value
                end
              end
            end
          RUBY
        end
      end
      private_class_method :hook_for

      MANY = %i[get_multi get_multi_cas get_multi_with_metadata set_multi delete_multi].to_h do |name|
        [name, hook_for(name)]
      end.freeze
      private_constant :MANY

      hook "Dalli::Client", Dalli

      def initialize
        super
        @operations = {}
      end

      def called(operation, time, wait, responses)
        entry = @operations[NAMES.fetch(operation, operation.to_s)] ||= {}
        count(entry, time, wait)
        answered = entry["responses"] ||= {}
        responses.each { |response, number| answered[response] = answered.fetch(response, 0) + number }
      end

      def report = @operations
    end
  end
end
