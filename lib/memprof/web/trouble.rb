# frozen_string_literal: true

require_relative "page"

module Memprof
  class Web
    # What is shown in place of a page that can't be.
    #
    # @api private
    class TroublePage < Page
      # @return [String]
      attr_reader :title

      # @return [Heaps::Entry, nil]
      attr_reader :entry

      # @param heaps [Heaps]
      # @param title [String]
      # @param error [StandardError] whose message says what went wrong
      # @param heap [String, nil] number of the heap that the page would have been about
      def initialize(heaps, title, error, heap)
        super(heaps)
        @entry = heaps.find { |entry| entry.id.to_s == heap }
        @title = title
        @error = error
      end

      # @return [Hash{Symbol => Object}]
      def data = { error: @error.message }

      # @return [String]
      def view = "trouble"
    end

    # What is shown while a heap is opened.
    #
    # @api private
    class WaitingPage < Page
      # @param heaps [Heaps]
      # @param entry [Heaps::Entry]
      def initialize(heaps, entry)
        super(heaps)
        @entry = entry
      end

      # @return [String]
      def title = "Opening #{@entry.name}"

      # @return [Hash{Symbol => Object}]
      def data
        progress = @entry.progress
        { opening: { heap: @entry.id, name: @entry.name, stage: progress.stage, done: progress.done,
                     total: progress.total } }
      end

      # @return [String]
      def view = "waiting"
    end
  end
end
