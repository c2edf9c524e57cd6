# frozen_string_literal: true

require "securerandom"
require_relative "../library"
require_relative "../output"

module Memprof
  module CLI
    class Web
      # The library that `memprof web --library` shows, and its uploads.
      class LibraryServer
        KEY = "MEMPROF_KEY"
        # Options that make no sense without a library.
        OPTIONS = %i[max_size max_upload key].freeze

        attr_reader :library

        def initialize(options)
          @options = options
          directory = options[:library] == true ? Library.default_directory : options[:library]
          raise UsageError, "#{directory} is not a directory; use --library=DIR FILE" if File.file?(directory)

          @library = Library.new(directory, max_size: options[:max_size])
          @key, @made = given_key ? [given_key, false] : Key.of(@library.directory)
        end

        def uploads
          Memprof::Web::Uploads.new(@library, @key, limit: @options[:max_upload])
        end

        def hint(url)
          lines = ["Upload dumps with: memprof --pid PID --name my_app --key KEY --url #{url}"]
          if @made
            lines << "The KEY, shown only this time: #{@key}"
            lines << "It is stored in #{Key.path(@library.directory)}"
          elsif !given_key
            lines << "The KEY is in #{Key.path(@library.directory)}"
          end
          lines.join("\n")
        end

        # The upload key: generated once, and stored in the library's directory, readable only
        # by its owner.
        module Key
          FILE = ".key"
          SHORTEST = 16 # characters
          private_constant :FILE

          class << self
            def of(directory)
              path = path(directory)
              [read(path), false]
            rescue Errno::ENOENT
              key = SecureRandom.urlsafe_base64(24)
              Output.write(path, "#{key}\n")
              [key, true]
            rescue SystemCallError => e
              raise Error, "cannot read #{path}: #{Output.reason(e)}"
            end

            def path(directory) = File.join(directory, FILE)

            private

            def read(path)
              File.open(path, File::RDONLY | File::NOFOLLOW | File::NONBLOCK) do |file|
                raise Error, "#{path} is not a regular file" unless file.stat.file?

                private = (file.stat.mode & 0o077).zero?
                raise Error, "#{path} is accessible to others; run chmod 600 on it" unless private

                key = file.read(1024).to_s.strip
                raise Error, "the key in #{path} is too short: #{SHORTEST} characters, or none" if
                  key.size < SHORTEST

                key
              end
            end
          end
        end

        private

        def given_key
          @given_key ||= [@options[:key], ENV.fetch(KEY, nil)].compact.reject(&:empty?).first.tap do |key|
            next if key.nil? || key.length >= Key::SHORTEST

            raise UsageError, "invalid key; expected at least #{Key::SHORTEST} characters"
          end
        end
      end
    end
  end
end
