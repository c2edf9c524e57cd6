# frozen_string_literal: true

require_relative "../native"
require_relative "../output"
require_relative "../units"

module Memprof
  class Trace
    # The file of a Journal: lines are appended to the file at its path. After the file is moved away, as by
    # logrotate, the next line goes to a new file of that name.
    class JournalFile
      # NONBLOCK: opening a named pipe without a reader must fail, not wait.
      FLAGS = File::WRONLY | File::CREAT | File::APPEND | File::BINARY | File::NONBLOCK | File::NOCTTY
      # Actions for a file that has reached its maximum size.
      WHEN_FULL = %i[rotate stop].freeze
      # Appended to the name of a full file.
      ROTATED = ".1"
      # fcntl commands, the same on Linux and macOS. The fcntl library is a gem, and the program may want
      # another version of it.
      GET_FLAGS = 3
      SET_FLAGS = 4
      private_constant :FLAGS, :ROTATED, :GET_FLAGS, :SET_FLAGS

      # Checks the limits of a file.
      def self.limits(max_size:, when_full:)
        unless max_size.nil? || (max_size.is_a?(Integer) && max_size.positive?)
          raise ArgumentError, "max_size must be a positive Integer, not #{max_size.inspect}"
        end
        unless WHEN_FULL.include?(when_full)
          raise ArgumentError, "when_full must be :rotate or :stop, not #{when_full.inspect}"
        end

        { max_size: max_size, when_full: when_full }
      end

      attr_reader :path

      # Opens the file; creates it with mode 0600 if it does not exist.
      def initialize(path, own: false, max_size: nil, when_full: :rotate)
        Output.file_path(path) # complains about directories and the like
        @path = path
        @full_path = Output.full_path(path) # the process may change its directory
        @own = own
        @max_size = max_size
        @when_full = when_full
        open
      end

      # Appends a text in one write: other processes may append to the same file.
      def append(text)
        return false unless room?(text.bytesize)

        rest = text
        rest = rest.byteslice(@io.syswrite(rest)..) until rest.empty?
        true
      rescue SystemCallError, IOError => e
        cut(text.bytesize - rest.bytesize) if rest && rest.bytesize < text.bytesize
        raise Output.failure(@path, e) if e.is_a?(SystemCallError)

        raise Error, "cannot write #{@path}: #{e.message}"
      end

      def full?
        return false unless @stopped

        @stopped = false unless current_size
        @stopped
      end

      def close = @io.close

      private

      def open
        @io = open_path
        @io.sync = true
        stat = @io.stat
        @regular = stat.file?
        @own ? check(stat) : set_blocking
      rescue Errno::ENXIO
        raise Error, "cannot write #{@path}: it is a pipe without a reader, or a socket"
      rescue SystemCallError => e
        raise Output.failure(@path, e)
      end

      # In a directory where others may write, their symlink may point to a file that this user values. A
      # symlink owned by this user or root is deliberate, such as one created by a deployment.
      def open_path
        File.open(@full_path, FLAGS | File::NOFOLLOW, 0o600)
      rescue Errno::ELOOP
        link = File.lstat(@full_path)
        raise if @own || !link.symlink?
        unless link.owned? || link.uid.zero?
          raise Error, "cannot write #{@path}: it is a link of another user"
        end

        File.open(@full_path, FLAGS, 0o600)
      end

      # Closes a file that it rejects. A hard link may lead to a file that its owner values.
      def check(stat)
        problem =
          if !stat.file? then "it is not a regular file"
          elsif !stat.owned? then "it belongs to somebody else"
          elsif stat.nlink > 1 then "it has a second name"
          end
        return unless problem

        @io.close
        raise Error, "cannot write #{@path}: #{problem}"
      end

      # Once it is open, a pipe that the user asked for is written to like any other.
      def set_blocking
        @io.fcntl(SET_FLAGS, @io.fcntl(GET_FLAGS) & ~File::NONBLOCK) unless @regular
      end

      def current_size = Native.size_at(@io.fileno, @full_path)

      # Ensures that the open file is the one at the path, and that it has room.
      def room?(bytes)
        return true unless @regular

        size = current_size || reopen
        return true unless @max_size && size + bytes > @max_size && size.positive?
        return rotate if @when_full == :rotate

        @stopped = true
        false
      end

      def reopen
        left = @io
        open
        left.close
        @io.stat.size
      end

      # Only one of the processes that append to this file renames it. The others write to it until they
      # notice that it was renamed.
      def rotate
        return true unless @io.flock(File::LOCK_EX | File::LOCK_NB)

        File.rename(@full_path, @full_path + ROTATED) if current_size
        reopen # closes the locked file
        true
      end

      # Removes a partial line, unless another process has appended after it.
      def cut(written)
        size = @io.stat.size
        @io.truncate(size - written) if @regular && @io.pos == size
      rescue SystemCallError, IOError
        nil # it stays; readers skip invalid lines
      end
    end
  end
end
