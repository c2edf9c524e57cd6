# frozen_string_literal: true

require_relative "../cli"

module Memprof
  module MCP
    # Extends a command, so that its answer can be taken instead of being printed: what it says, the document
    # that --json would print, and the commands that it suggests.
    module Captured
      WIDTH = 110 # columns
      # The answer that was taken.
      Taken = Struct.new(:document, :text, :steps)
      QUOTE = /: ".*/m
      private_constant :WIDTH, :QUOTE

      # The answer that a command would have printed; nil if it does not lay out a page.
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

      # The reason why a file is not a dump quotes its beginning, which is not for the model: the file may be
      # any that the user can read.
      def open_heap(path)
        return super unless @hidden

        copy, warnings = @hidden.copy(path)
        warnings.each { |warning| @terminal.warn("#{path}: #{warning.sub(QUOTE, "")}") }
        super(copy)
      rescue CLI::UsageError => e
        raise e.class, e.message.sub(QUOTE, "")
      end
    end
  end
end
