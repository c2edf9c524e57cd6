# frozen_string_literal: true

require_relative "../../library"
require_relative "../../library/key"

module Memprof
  module CLI
    class Web
      # The library that `memprof web --library` shows, and its uploads.
      class LibraryServer
        SHORTEST_KEY = 16
        KEY = "MEMPROF_KEY"
        # Options that make no sense without a library.
        OPTIONS = %i[max_size max_upload key].freeze

        attr_reader :library

        def initialize(options)
          @options = options
          directory = options[:library] == true ? Library.default_directory : options[:library]
          raise UsageError, "#{directory} is not a directory; use --library=DIR FILE" if File.file?(directory)

          @library = Library.new(directory, max_size: options[:max_size])
          @key, @made = given_key ? [given_key, false] : Library::Key.of(@library.directory)
        end

        def uploads
          Memprof::Web::Uploads.new(@library, @key, limit: @options[:max_upload])
        end

        def hint(url)
          lines = ["Upload dumps with: memprof --pid PID --name my_app --key KEY --url #{url}"]
          if @made
            lines << "The KEY, shown only this time: #{@key}"
            lines << "It is stored in #{Library::Key.path(@library.directory)}"
          elsif !given_key
            lines << "The KEY is in #{Library::Key.path(@library.directory)}"
          end
          lines.join("\n")
        end

        private

        def given_key
          @given_key ||= [@options[:key], ENV.fetch(KEY, nil)].compact.reject(&:empty?).first.tap do |key|
            next if key.nil? || key.length >= SHORTEST_KEY

            raise UsageError, "invalid key; expected at least #{SHORTEST_KEY} characters"
          end
        end
      end
    end
  end
end
