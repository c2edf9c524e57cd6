# frozen_string_literal: true

module Memprof
  class Web
    # The page shown after an error.
    class ErrorPage < Page
      attr_reader :title, :entry

      def initialize(heaps, title, error, heap)
        super(heaps)
        @entry = heaps.find { |entry| entry.id.to_s == heap }
        @title = title
        @error = error
      end

      def data = { error: @error.message }

      def view = "error"
    end

    # The page shown while a heap is opening.
    class WaitingPage < Page
      def initialize(heaps, entry)
        super(heaps)
        @entry = entry
      end

      def title = "Opening #{@entry.name}"

      def data
        progress = @entry.progress
        { opening: { heap: @entry.id, name: @entry.name, stage: progress.stage, done: progress.done,
                     total: progress.total } }
      end

      def view = "waiting"
    end
  end
end
