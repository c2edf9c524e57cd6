# frozen_string_literal: true

module Memprof
  module CLI
    # Files of another process, by names that it has given. Each is opened below that process's root by
    # descriptors (openat2), so no link, `..` or rename leads anywhere else. Where the system lacks that
    # (macOS), only the last name is checked.
    class ForeignFiles
      # An entry of an open directory.
      class Entry
        attr_reader :name

        # `place` is the directory's name for people, `held` a path of this process for it.
        def initialize(directory, place, name, held)
          @directory = directory
          @place = place
          @name = name
          @held = held
        end

        # The name for people; never opened.
        def to_s = File.join(@place, @name)

        def with_suffix(suffix) = Entry.new(@directory, @place, "#{@name}#{suffix}", @held)
        def without_suffix(suffix) = Entry.new(@directory, @place, @name.delete_suffix(suffix), @held)

        def stat
          File.lstat(path)
        rescue SystemCallError
          nil
        end

        # Opens a regular file for reading, without blocking on a FIFO or a device.
        def open
          file = ForeignFiles.open(@directory, path, @name, "file")
          begin
            raise Error, "cannot read #{self}: not a regular file" unless file.stat.file?

            yield(file)
          ensure
            file.close
          end
        rescue SystemCallError => e
          raise Error, "cannot read #{self}: #{Output.reason(e)}"
        end

        # Yields a path of this process by which to connect to the entry, if it is a socket.
        def connectable
          return (yield(path) if stat&.socket?) unless @directory

          entry = ForeignFiles.open(@directory, path, @name, "anything")
          begin
            yield("/proc/self/fd/#{entry.fileno}") if entry.stat.socket?
          ensure
            entry.close
          end
        rescue SystemCallError
          nil
        end

        # Removes the name if it still refers to the file.
        def remove(file)
          found = stat
          here = file.stat
          File.unlink(path) if found && [found.dev, found.ino] == [here.dev, here.ino]
        rescue SystemCallError
          nil # it is not ours to remove
        end

        def ==(other) = other.is_a?(Entry) && to_s == other.to_s
        alias_method :eql?, :==
        def hash = to_s.hash

        private

        # A path of this process: the directory stays open, and a link in the last name is not followed.
        def path = File.join(@held, @name)
      end

      # Opens a name in a directory.
      def self.open(directory, path, name, what)
        return File.open(path, File::RDONLY | File::NOFOLLOW | File::NONBLOCK) unless directory

        IO.for_fd(Native.open_beneath(directory.fileno, name, what), "rb")
      end

      # `root` is the open root directory of the process, `shown` its name for people.
      def initialize(root, shown)
        @root = root
        @shown = shown
        @directories = {}
      end

      # An entry of a directory named by the process; nil if the directory can't be entered.
      def entry(directory, name)
        held = hold(directory) or return
        Entry.new(held.is_a?(IO) ? held : nil, "#{@shown}#{directory}", name, path_of(held))
      end

      # The entries of a directory whose names match.
      def entries(directory, pattern)
        held = hold(directory) or return []
        Dir.children(path_of(held)).grep(pattern).map { |name| entry(directory, name) }
      rescue SystemCallError
        []
      end

      private

      def path_of(held) = held.is_a?(IO) ? "/proc/self/fd/#{held.fileno}" : held

      def hold(directory)
        return @directories[directory] if @directories.key?(directory)

        @directories[directory] = opened(directory)
      end

      def opened(directory)
        return directory unless @root && Native.respond_to?(:open_beneath)

        IO.for_fd(Native.open_beneath(@root.fileno, directory, "directory"), "rb")
      rescue SystemCallError, ArgumentError
        nil
      end
    end
  end
end
