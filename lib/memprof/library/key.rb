# frozen_string_literal: true

require "securerandom"
require_relative "../output"

module Memprof
  class Library
    # The upload key: generated once, and stored in the library's directory, readable only by its owner.
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
  end
end
