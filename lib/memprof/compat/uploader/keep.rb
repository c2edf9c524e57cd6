# frozen_string_literal: true

require "zlib"
require_relative "../../library"

module Memprof
  module Compat
    class Uploader
      # Adds a dump, compressed, to this machine's library.
      class Keep
        COMPRESSED = /\.(?:gz|zst|memprof)\z/
        private_constant :COMPRESSED

        def initialize(dump, terminal, options)
          @dump = dump
          @terminal = terminal
          @options = options
        end

        def run
          entry = take(Library.new(Library.default_directory))
          @terminal.puts("Added to the library: #{Printable.line(entry.path)}")
          @terminal.puts("View it: memprof web --library")
          @terminal.puts("Or run: memprof leaks #{CLI::Suggestion.word(entry.path)}")
        rescue InvalidDump
          raise Error, "#{@dump} is not a heap dump"
        end

        private

        def take(library)
          facts = { pid: @options[:pid] }
          progress = CLI::Loading.new(@terminal, @dump).method(:show)
          @terminal.busy do
            library.take(app: @options[:name], facts: facts, progress: progress) { |part| fill(part) }
          end
        end

        def fill(part)
          return IO.copy_stream(@dump, part) if @dump.match?(COMPRESSED)

          @terminal.puts("Compressing with gzip...")
          gzip = Zlib::GzipWriter.new(part)
          IO.copy_stream(@dump, gzip)
          gzip.finish
        end
      end
    end
  end
end
