# frozen_string_literal: true

require "fileutils"

module Memprof
  module CLI
    # Takes a dump from where its process left it.
    module Collection
      READ = File::RDONLY | File::NOFOLLOW | File::NONBLOCK | File::BINARY
      private_constant :READ

      class << self
        # Moves a file; it is ours alone (mode 0600) when it appears under its new name.
        def move(source, destination)
          return copy(source, destination) unless File.owned?(source)

          begin
            File.chmod(0o600, source)
            File.rename(source, destination)
          rescue SystemCallError # another file system
            copy(source, destination)
          end
        end

        def copy(source, destination)
          read(source) do |file|
            Output.open(destination) { |io| IO.copy_stream(file, io) }
          end
          FileUtils.rm_f(source) # if it is ours to remove
        end

        # The name of a stored dump unless one is given.
        def name(target, source)
          ending = File.basename(source)[/\.[a-z.]+\z/].to_s
          "#{target.name}-#{target.pid}-#{Time.now.strftime("%Y%m%d-%H%M%S")}#{ending}"
        end

        private

        # Not through a link: the directory may be one for all.
        def read(source)
          file = File.open(source, READ)
          begin
            raise Error, "can't read #{source}: not a regular file" unless file.stat.file?

            yield(file)
          ensure
            file.close
          end
        rescue SystemCallError => e
          raise Error, "can't read #{source}: #{Output.reason(e)}"
        end
      end
    end
  end
end
