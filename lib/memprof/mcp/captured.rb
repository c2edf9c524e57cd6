# frozen_string_literal: true

require_relative "../cli"

module Memprof
  module MCP
    # Extends a command, so that its answer can be taken instead of being printed: what it says, the document
    # that --json would print, and the commands that it suggests.
    module Captured
      WIDTH = 110 # columns
      # What was not printed.
      Taken = Struct.new(:document, :text, :steps)
      private_constant :WIDTH

      # What a command would have printed; nil if it does not lay out a page.
      attr_reader :taken

      # Where copies of dumps without values come from; nil if values may be seen.
      attr_writer :hidden

      private

      # The defaults in a file are those of a person.
      def defaults = {}

      def screen = { width: WIDTH, paint: Paint.new }

      def present(answer, steps = [])
        return super unless is_a?(CLI::HeapCommand)

        page = CLI::Page.new(**screen)
        yield(page)
        @taken = Taken.new(answer, page.to(:text), steps)
        0
      end

      # Each question passes here, so that all that is made of the answer has names that are cut and escaped.
      def busy
        answer = super
        answer.is_a?(Hash) ? Answer.clean(answer) : answer
      end

      def open_heap(path)
        return super unless @hidden

        copy, warnings = @hidden.copy(path)
        warnings.each { |warning| @terminal.warn("#{path}: #{warning}") }
        super(copy)
      end
    end
  end
end
