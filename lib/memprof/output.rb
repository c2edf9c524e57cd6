# frozen_string_literal: true

require_relative "errors"

module Memprof
  # Destinations of results: an IO is written to as it is; a file is written atomically.
  module Output
    # Names of streams that the process already has open, in all spellings. Replacing one by a file, as for an
    # ordinary path, would put the file into /dev.
    STREAM = %r{\A/(?:dev/(?:(?<out>stdout)|(?<err>stderr)|fd/(?<number>\d+))|proc/self/fd/(?<number>\d+))\z}
    CREATE = File::WRONLY | File::CREAT | File::EXCL | File::BINARY
    private_constant :STREAM, :CREATE

    # Opens `path_or_io` for a block that writes to it.
    #
    # A path is written with mode 0600 under a temporary name next to it, and renamed when the block has
    # ended; a symbolic link is replaced, not followed. If anything fails, the existing file remains. Devices,
    # pipes and names such as /dev/stdout are written to directly.
    def self.open(path_or_io, &block)
      return to_path(path_of(path_or_io), &block) if path?(path_or_io)
      return to_io(path_or_io, &block) if path_or_io.respond_to?(:write)

      raise ArgumentError, "path_or_io must be a path or an IO, not #{path_or_io.inspect}"
    end

    # Like {open}, but yields an IO that has a file descriptor, for the extension to write to.
    def self.open_file(path_or_io, &block)
      self.open(path_or_io) do |io|
        next spool(io, &block) unless io.respond_to?(:fileno) && io.fileno

        io.flush
        yield(io)
      end
    end

    # Like {open_file}, for an extension whose errors do not name the file.
    def self.open_named(path_or_io)
      open_file(path_or_io) do |file|
        yield(file)
      rescue Error => e
        name = path?(path_or_io) ? path_of(path_or_io) : io_name(path_or_io)
        raise Error, "cannot write #{name}: #{e.message}"
      end
    end

    # Writes `text` to `path_or_io`, as {open} does.
    def self.write(path_or_io, text)
      self.open(path_or_io) { |io| io.write(text) }
      nil
    end

    # Refuses a format that is not one of `known`.
    def self.check_format(format, known)
      known.find { |name| name.to_s == format.to_s } ||
        raise(ArgumentError, "unknown format #{format.inspect}; expected one of: #{known.join(", ")}")
    end

    # The file at a path, if it is to be created or replaced.
    def self.file_path(path_or_io)
      unless path?(path_or_io)
        return if path_or_io.respond_to?(:write)

        raise ArgumentError, "path_or_io must be a path or an IO, not #{path_or_io.inspect}"
      end

      path = path_of(path_or_io)
      full = full_path(path)
      return if stream(full)

      # Without Ruby's own functions: since 3.2 these let all other threads run first. And the extension is
      # loaded only here: commands that only print usage do without it.
      require_relative "native" unless defined?(Native)
      kind = Native.kind_of_file(full)
      raise Error, "cannot write #{path}: it is a directory" if kind == "directory"

      # A link is replaced, whatever it points to.
      full unless kind == "other"
    end

    # The absolute path. A removed working directory has none.
    def self.full_path(path)
      File.expand_path(path)
    rescue SystemCallError => e
      raise Error, "cannot write #{path}: the working directory is unknown: #{reason(e)}"
    end

    # The error at a path, in words.
    def self.failure(path, error)
      directory = File.dirname(path)
      return Error.new("cannot write #{path}: #{reason(error)}") if File.directory?(directory)

      Error.new("cannot write #{path}: no such directory: #{directory}")
    end

    # Ruby adds the C function and the path to the message; the path is already mentioned.
    def self.reason(error)
      error.is_a?(SystemCallError) ? SystemCallError.new(nil, error.errno).message : error.message
    end

    class << self
      private

      # As bytes: a file name may be invalid UTF-8.
      def stream(full) = STREAM.match(full.b)

      # A Pathname has `write`, too, and a File has a path: only an open file can be flushed.
      def path?(path_or_io)
        path_or_io.is_a?(String) || (path_or_io.respond_to?(:to_path) && !path_or_io.respond_to?(:flush))
      end

      def path_of(path)
        path = path.respond_to?(:to_path) ? path.to_path : path
        raise ArgumentError, "the path is empty" if path.empty?
        raise ArgumentError, "the path contains a null byte: #{path.inspect}" if path.include?("\0")

        path
      end

      def to_io(io)
        value = yield(io)
        # A full disk shows here, not at process exit, when an error can no longer be reported.
        io.flush if io.respond_to?(:flush)
        value
      rescue SystemCallError, IOError => e
        raise Error, "cannot write to #{io_name(io)}: #{reason(e)}"
      end

      def to_path(path, &block)
        full = full_path(path)
        name = stream(full)
        return to_stream(name, &block) if name
        raise Error, "cannot write #{path}: it is a directory" if File.directory?(full)

        is_device = File.exist?(full) && !File.file?(full)
        is_device ? File.open(path, File::WRONLY | File::BINARY, &block) : to_file(path, &block)
      rescue SystemCallError, IOError => e
        raise failure(path, e)
      end

      # Uses the existing descriptor: a second one for the same file would have its own position, and one of
      # the two would overwrite the other.
      def to_stream(name, &block)
        [$stdout, $stderr].each(&:flush) # earlier output comes first
        number = name[:out] ? 1 : name[:err] ? 2 : name[:number].to_i
        to_io(IO.for_fd(number, "wb", autoclose: false), &block)
      end

      def to_file(path)
        # The name is short whatever the path is: a file name of maximum length must remain writable.
        name = ".memprof-#{Process.pid}-#{Random.urandom(6).unpack1("H*")}.tmp"
        temporary = File.join(File.dirname(path), name)
        value = File.open(temporary, CREATE, 0o600) { |io| yield(io) }
        File.rename(temporary, path)
        temporary = nil
        value
      ensure
        remove(temporary) if temporary
      end

      def spool(io)
        require_relative "loading" unless defined?(Loading)
        Loading.load("tempfile")
        Tempfile.create("memprof", binmode: true) do |file|
          result = yield(file)
          file.rewind
          IO.copy_stream(file, io)
          result
        end
      end

      def remove(path)
        File.unlink(path)
      rescue SystemCallError
        nil # it was never created
      end

      def io_name(io)
        name = io.respond_to?(:path) ? io.path : nil
        name || io.class.name || "the given io"
      rescue IOError, SystemCallError
        "the given io"
      end
    end
  end
end
