# frozen_string_literal: true

require "zlib"
require_relative "../../dump/in_progress"
require_relative "../collection"
require_relative "../next_steps"

module Memprof
  module CLI
    class Classic
      # What is done with a dump where it once was uploaded: compressed, kept here, and deleted there.
      #
      # @api private
      class Upload
        COMPRESSED = /\.(?:gz|zst|memprof)\z/
        private_constant :COMPRESSED

        # @param dump [String] path
        # @param terminal [Terminal]
        # @param options [Hash{Symbol => Object}] name, test, delete, file, pid
        def initialize(dump, terminal, options)
          @dump = dump
          @terminal = terminal
          @options = options
        end

        # @return [void]
        # @raise [Memprof::Error] if it can't be written
        def run
          compressed = compress
          keep(compressed) unless @options[:test]
          return unless @options.fetch(:delete, @options[:file].nil?)

          [@dump, compressed].uniq.each { |path| File.unlink(path) if File.exist?(path) }
          say "Deleted dump file."
        end

        private

        # In place of the dump, as gzip does it; a file that the user named stays.
        def compress
          return @dump if @dump.match?(COMPRESSED)

          say "Compressing with gzip..."
          path = "#{@dump}.gz"
          Memprof::Dump::InProgress.open(path) { |file| deflate(file) }
          File.unlink(@dump) unless @options[:file]
          path
        end

        def deflate(file)
          gzip = Zlib::GzipWriter.new(file)
          IO.copy_stream(@dump, gzip)
          gzip.finish
        end

        def keep(compressed)
          path = File.join(Dir.pwd, name(compressed))
          Output.open(path) { |io| IO.copy_stream(compressed, io) }
          say "memprof.com is gone, so nothing was uploaded. The dump is here: #{path}"
          say "Next: #{NextSteps.for(path)}"
        end

        def name(compressed)
          application = @options[:name].gsub(/[^\w.-]+/, "_").delete_prefix(".")
          parts = [application, @options[:pid], Time.now.strftime("%Y%m%d-%H%M%S")].compact
          "#{parts.join("-")}#{File.basename(compressed)[/\.[a-z.]+\z/]}"
        end

        def say(text)
          @terminal.print("#{text}\n")
        end
      end
    end
  end
end
