# frozen_string_literal: true

require_relative "../output"

module Memprof
  module Dump
    # A file that is written as `PATH.IN_PROGRESS` and renamed when it is complete. A process that waits for
    # the dump can watch it grow.
    #
    # The writer has it locked. So an unlocked file was left behind by a killed process, and may be replaced.
    module InProgress
      SUFFIX = ".IN_PROGRESS"
      WRITE = File::WRONLY | File::BINARY
      LOOK = File::RDONLY | File::NOFOLLOW | File::NONBLOCK
      # Dumps that a process writes on request from outside, see OnSignal::Dumper.
      NAMED_AFTER_PROCESS = /\Amemprof-(?<pid>\d+)-[\d-]+\.[a-z.]+#{SUFFIX}\z/
      private_constant :WRITE, :LOOK, :NAMED_AFTER_PROCESS

      class << self
        # Opens a new file for a block, mode 0600, and renames it to `path` when the block has ended. An
        # existing file at `path` is replaced; a link there, or at the temporary name, is never followed. If
        # anything fails, or the thread is killed, the new file is removed and the existing one remains.
        def open(path)
          # Not a return value: the thread may be killed before it is assigned.
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
          if made&.any? # nil if interrupted before the first line
            file = File.for_fd(made.first, WRITE) unless opened
            discard(file, temporary) if temporary
          end
        end

        # Removes leftovers of processes that were killed while they wrote dumps to a directory: unlocked
        # files named after a process that no longer exists. A process of another container may have that id
        # and be writing, but then it has the lock.
        def sweep(directory)
          Dir.each_child(directory) do |name|
            pid = name[NAMED_AFTER_PROCESS, :pid]
            remove_stale(File.join(directory, name)) if pid && !running?(pid.to_i)
          end
        rescue SystemCallError
          nil # unreadable, so there may be leftovers
        end

        # Removes a file of this user that no process is writing.
        def remove_stale(path)
          File.open(path, LOOK) do |file|
            stat = file.stat
            stale = stat.file? && stat.owned? && file.flock(File::LOCK_EX | File::LOCK_NB)
            File.unlink(path) if stale && same?(file, path)
          end
        rescue SystemCallError
          nil # deleted in between, or a link, or owned by another user
        end

        private

        def running?(pid)
          Process.kill(0, pid) ? true : false
        rescue Errno::ESRCH, RangeError
          false
        rescue SystemCallError
          true # another user's
        end

        def create(path, made)
          Native.create_locked(path, made) while made.empty?
        rescue Errno::EEXIST
          replace(path)
          retry
        end

        # Removes a leftover of a killed process. Raises if it is anything else.
        def replace(path)
          File.open(path, LOOK) do |old|
            refuse(path, "something other than a file is there") unless old.stat.file?
            refuse(path,
              "another dump is being written there") unless old.flock(File::LOCK_EX | File::LOCK_NB)
            File.unlink(path) if same?(old, path)
          end
        rescue Errno::ENOENT
          nil # deleted in between
        rescue Errno::ELOOP
          refuse(path, "a symbolic link is in the way")
        end

        # The caller checked earlier, but a dump takes time. A link is replaced: nothing is lost by that.
        def keep_device(path)
          refuse(path, "a device or a pipe is there now") if Native.kind_of_file(path) == "other"
        end

        def refuse(path, problem)
          raise Error, "cannot write #{path}: #{problem}"
        end

        def same?(file, path)
          there = File.lstat(path)
          here = file.stat
          there.ino == here.ino && there.dev == here.dev
        rescue Errno::ENOENT
          false
        end

        # Without Ruby's own functions: the thread may be killed again before they remove the name.
        def discard(file, path)
          Native.remove_file(path)
        rescue SystemCallError
          nil # its directory is no longer writable: nothing can be done
        ensure
          file&.close
        end
      end
    end
  end
end
