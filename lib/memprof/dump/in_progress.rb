# frozen_string_literal: true

require_relative "../output"

module Memprof
  module Dump
    # A file that is being written as `PATH.IN_PROGRESS`, and gets its name when it is whole. Whoever waits
    # for the dump can see it grow.
    #
    # The writer holds a lock on it. So a file without one is what a process left that was killed, and may be
    # replaced.
    #
    # @api private
    module InProgress
      SUFFIX = ".IN_PROGRESS"
      CREATE = File::WRONLY | File::CREAT | File::EXCL | File::NOFOLLOW | File::BINARY
      LOOK = File::RDONLY | File::NOFOLLOW | File::NONBLOCK
      private_constant :CREATE, :LOOK

      class << self
        # Opens a new file for a block, mode 0600, and renames it to `path` when the block has ended. What was
        # at `path` is replaced; a link there, or at the temporary name, is never followed. If anything fails,
        # the file is removed and what was at `path` stays.
        #
        # @param path [String] full path
        # @yieldparam file [File]
        # @return [Object] the block's value
        # @raise [Memprof::Error] if it can't be written
        def open(path)
          temporary = path + SUFFIX
          file = create(temporary)
          value = yield(file)
          file.close
          File.rename(temporary, path)
          temporary = nil
          value
        rescue SystemCallError, IOError => e
          raise Output.failure(path, e)
        ensure
          discard(file, temporary) if file && temporary
        end

        private

        def create(path)
          loop do
            file = File.open(path, CREATE, 0o600)
            file.flock(File::LOCK_EX | File::LOCK_NB)
            # Somebody may have taken it for a stale one before it was locked.
            return file if same?(file, path)

            file.close
          rescue Errno::EEXIST
            replace(path)
          end
        end

        # Removes what a killed process left. Raises if it is anything else.
        def replace(path)
          File.open(path, LOOK) do |old|
            refuse(path, "something that is no file is in the way") unless old.stat.file?
            refuse(path,
              "another dump is being written there") unless old.flock(File::LOCK_EX | File::LOCK_NB)
            File.unlink(path) if same?(old, path)
          end
        rescue Errno::ENOENT
          nil # gone in between
        rescue Errno::ELOOP
          refuse(path, "a symbolic link is in the way")
        end

        def refuse(path, problem)
          raise Error, "can't write #{path}: #{problem}"
        end

        def same?(file, path)
          there = File.lstat(path)
          here = file.stat
          there.ino == here.ino && there.dev == here.dev
        rescue Errno::ENOENT
          false
        end

        def discard(file, path)
          File.unlink(path)
        rescue SystemCallError
          nil # somebody else removed it
        ensure
          file.close
        end
      end
    end
  end
end
