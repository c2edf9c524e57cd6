# frozen_string_literal: true

require_relative "../output"

module Memprof
  module Dump
    # A file that is being written as `PATH.IN_PROGRESS`, and gets its name when it is whole. Whoever waits
    # for the dump can see it grow.
    #
    # The writer holds a lock on it. So a file without one is what a process left that was killed, and may be
    # replaced.
    module InProgress
      SUFFIX = ".IN_PROGRESS"
      WRITE = File::WRONLY | File::BINARY
      LOOK = File::RDONLY | File::NOFOLLOW | File::NONBLOCK
      # Dumps that a process makes when it is asked from outside, see OnSignal::Dumper.
      NAMED_AFTER_PROCESS = /\Amemprof-(?<pid>\d+)-[\d-]+\.[a-z.]+#{SUFFIX}\z/
      private_constant :WRITE, :LOOK, :NAMED_AFTER_PROCESS

      class << self
        # Opens a new file for a block, mode 0600, and renames it to `path` when the block has ended. What was
        # at `path` is replaced; a link there, or at the temporary name, is never followed. If anything fails,
        # or the thread is ended, the file is removed and what was at `path` stays.
        def open(path)
          # Not what a method returns: at its end, before that is assigned, the thread may be ended.
          made = []
          opened = false
          temporary = path + SUFFIX
          create(temporary, made)
          opened = true # the GC closes it, if nothing else does
          file = File.for_fd(made.first, WRITE)
          value = yield(file)
          file.close
          keep_device(path)
          Native.rename_file(temporary, path)
          temporary = nil
          value
        rescue SystemCallError, IOError => e
          raise Output.failure(path, e)
        ensure
          if made&.any? # nil if this ends where it begins
            file = File.for_fd(made.first, WRITE) unless opened
            discard(file, temporary) if temporary
          end
        end

        # Removes what processes left in a directory that were killed while they wrote dumps there: files
        # named after a process that is no more, without a lock. A process of another container may have that
        # number and write, but then it has the lock.
        def sweep(directory)
          Dir.each_child(directory) do |name|
            pid = name[NAMED_AFTER_PROCESS, :pid]
            remove_stale(File.join(directory, name)) if pid && !running?(pid.to_i)
          end
        rescue SystemCallError
          nil # it can't be read, so whether anything is left there is not known
        end

        # Removes a file of this user that no process writes any more.
        def remove_stale(path)
          File.open(path, LOOK) do |file|
            stat = file.stat
            stale = stat.file? && stat.owned? && file.flock(File::LOCK_EX | File::LOCK_NB)
            File.unlink(path) if stale && same?(file, path)
          end
        rescue SystemCallError
          nil # gone in between, or a link, or not ours to remove
        end

        private

        def running?(pid)
          Process.kill(0, pid) ? true : false
        rescue Errno::ESRCH, RangeError
          false
        rescue SystemCallError
          true # somebody else's
        end

        def create(path, made)
          Native.create_locked(path, made) while made.empty?
        rescue Errno::EEXIST
          replace(path)
          retry
        end

        # Removes what a killed process left. Raises if it is anything else.
        def replace(path)
          File.open(path, LOOK) do |old|
            refuse(path, "something other than a file is there") unless old.stat.file?
            refuse(path,
              "another dump is being written there") unless old.flock(File::LOCK_EX | File::LOCK_NB)
            File.unlink(path) if same?(old, path)
          end
        rescue Errno::ENOENT
          nil # gone in between
        rescue Errno::ELOOP
          refuse(path, "a symbolic link is in the way")
        end

        # Who asked looked before, but a dump takes its time. A link is replaced: nothing is lost by that.
        def keep_device(path)
          refuse(path, "a device or a pipe is there now") if Native.kind_of_file(path) == "other"
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

        # Not by Ruby's own functions: before these take the name away, the thread may be ended once more.
        def discard(file, path)
          Native.remove_file(path)
        rescue SystemCallError
          nil # what it is in can't be written any more: nothing can be done about it
        ensure
          file&.close
        end
      end
    end
  end
end
