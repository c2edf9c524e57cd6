# frozen_string_literal: true

require_relative "../output"
require_relative "../paint"

module Memprof
  module Dump
    # The destination of a dump: checked before anything is created, by path as well as by IO.
    #
    # A file is replaced, as is a link to one. A device, a pipe and names such as /dev/stdout are written to.
    # A link to a device or a pipe is neither followed, as it may have been planted, nor replaced, as it may
    # belong to the system (/dev/stdin, whatever its path).
    module Target
      LOOK = File::WRONLY | File::NOCTTY | File::NONBLOCK
      private_constant :LOOK

      class << self
        def check(target)
          path = Output.file_path(target)
          return unless path && Native.kind_of_file(path) == "link"

          raise Error,
            "cannot write #{path}: it is a symbolic link to a device or a pipe; give the path of its target"
        end

        def terminal?(target)
          return Paint.terminal?(target) if %i[isatty tty?].any? { |name| target.respond_to?(name) }

          path = path_of(target)
          path && device?(path) ? File.open(path, LOOK, &:tty?) : false
        rescue SystemCallError
          false # writing there raises the error
        end

        private

        # For a stream, too: its name shows what it is.
        def path_of(target)
          path = target.respond_to?(:to_path) ? target.to_path : target
          Output.full_path(path) if path.is_a?(String) && !Output.file_path(path)
        end

        def device?(path) = File.stat(path).chardev?
      end
    end
  end
end
