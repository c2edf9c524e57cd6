# frozen_string_literal: true

module Memprof
  module Compat
    module Chap
      # A chap script: one request per line, comments after `#`, `source FILE` for another script, and
      # `redirect on`, after which each answer goes to its own file beside the core file.
      class Script
        include Enumerable

        # Maximum nesting of scripts.
        DEEPEST = 16
        private_constant :DEEPEST

        def initialize(source, file)
          @source = source
          @file = file
        end

        # Yields each request, and the file for its answer if redirected. Lines are read one by one, so an
        # invalid one does not hide the answers before it.
        def each(&block)
          @redirected = false
          read(@source, 0, &block)
        end

        private

        def read(source, depth, &block)
          source.each_line do |line|
            words = line.sub(/(?:\A|\s)#.*/, "").split
            case words.first
            when nil then next
            when "redirect" then @redirected = redirect(words)
            when "source" then read_file(words, depth + 1, &block)
            else yield Request.new(words), (path(words) if @redirected)
            end
          end
        end

        def read_file(words, depth, &block)
          raise CLI::UsageError, "source is missing its file" unless words.size == 2
          too_deep = "#{words.last} is nested more than #{DEEPEST} scripts deep"
          raise CLI::UsageError, too_deep if depth > DEEPEST

          read(text(words.last), depth, &block)
        end

        def text(path)
          File.read(path)
        rescue SystemCallError => e
          raise CLI::UsageError, "cannot read #{path}: #{Output.reason(e)}"
        end

        def redirect(words)
          return words.last == "on" if words.size == 2 && %w[on off].include?(words.last)

          raise CLI::UsageError, "invalid redirect; expected on or off"
        end

        # chap's naming: core.4711.list_used_%RubyString::minsize:1000
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
