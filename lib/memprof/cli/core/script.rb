# frozen_string_literal: true

require_relative "core_request"

module Memprof
  module CLI
    class Core
      # A script of chap: one request a line, comments after `#`, and `redirect on`, after which each
      # answer goes to a file of its own beside the core file.
      class Script
        include Enumerable

        # @param source [#each_line]
        # @param file [String] the core file, or the process id
        def initialize(source, file)
          @source = source
          @file = file
        end

        # Yields each request, and the file for its answer if that is redirected. Lines are read one by one,
        # so that a wrong one does not hide the answers before it.
        def each
          redirected = false
          @source.each_line do |line|
            words = line.sub(/(?:\A|\s)#.*/, "").split
            next if words.empty?
            next redirected = redirect(words) if words.first == "redirect"

            yield CoreRequest.new(words), (path(words) if redirected)
          end
        end

        private

        def redirect(words)
          return words.last == "on" if words.size == 2 && %w[on off].include?(words.last)

          raise UsageError, "redirect is followed by on or off"
        end

        # As chap names it: core.4711.list_used_%RubyString::minsize:1000
        def path(words)
          switch = false
          name = words.map do |word|
            value = switch
            switch = word.start_with?("/")
            switch ? "::#{word.delete_prefix("/")}" : "#{value ? ":" : "_"}#{word}"
          end
          "#{@file}.#{name.join.delete_prefix("_").tr("/", "_")}"
        end
      end
    end
  end
end
