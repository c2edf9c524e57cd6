# frozen_string_literal: true

module Memprof
  class Web
    # Two heaps side by side, or three, and what was asked of them already: heaps never change.
    #
    # @api private
    class Comparison
      # @return [Array<Heaps::Entry>] in the order of time
      attr_reader :entries

      # @param entries [Array<Heaps::Entry>]
      # @raise [Opening] if one is not open yet; all of them are on the way then
      # @raise [Memprof::Error] if one could not be opened
      def initialize(entries)
        @entries = entries
        entries.each(&:prepare)
        before, *after = entries.map(&:heap)
        @diff = before.diff(*after)
        @lock = Mutex.new
      end

      # @return [Boolean] whether it is known what survived
      def three? = @entries.size == 3

      # @param question [Symbol] as Heap::Diff#ask takes it
      # @param parameters [Hash{Symbol => Object}] what is nil is left to the question
      # @return [Hash{Symbol => Object}]
      # @raise [BadRequest] if it makes no sense
      def ask(question, **parameters)
        @diff.ask(question, **parameters.compact)
      rescue ArgumentError => e
        raise BadRequest, e.message
      end

      # @return [Array<Hash{Symbol => Object}>] each heap in numbers: `:id`, `:name`, `:objects` (count
      #   and size), `:counts`, `:process`
      def heaps
        @lock.synchronize do
          @overviews ||= @entries.map do |entry|
            # The same question as that page puts: it is answered already, or will be.
            overview = entry.answer(:overview, Pages::Overview::NUMBERS)
            { id: entry.id, name: entry.name, **overview.slice(:objects, :counts, :process) }
          end
        end
      end
    end

    # The comparisons that were asked for last: what is new and what is gone is found out once for all their
    # pages.
    #
    # @api private
    class Comparisons
      MOST = 4
      private_constant :MOST

      def initialize
        @lock = Mutex.new
        @kept = {}
      end

      # @param entries [Array<Heaps::Entry>]
      # @return [Comparison]
      # @raise (see Comparison#initialize)
      def of(entries)
        key = entries.map(&:id)
        @lock.synchronize do
          comparison = @kept.delete(key) || Comparison.new(entries)
          @kept.shift if @kept.size >= MOST
          @kept[key] = comparison
        end
      end

      # Lets go of a heap that is being closed.
      #
      # @param id [Integer]
      # @return [void]
      def forget(id)
        @lock.synchronize { @kept.delete_if { |key, _| key.include?(id) } }
      end
    end
  end
end
