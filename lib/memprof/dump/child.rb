# frozen_string_literal: true

require "io/wait"
require "json"

module Memprof
  module Dump
    # A dump that a forked child writes, while the threads of this process go on. The child runs no Ruby code;
    # it says in one line how it went, and this side waits for that line.
    #
    # @api private
    class Child
      # Seconds to wait at most for a collection that is under way, which the child would have to finish.
      PATIENCE = 0.25
      STEP = 0.005
      # Seconds without a byte written after which the child is taken for stuck.
      STALLED = 60
      LINE = 64 * 1024
      # How much lower the child's priority is.
      NICE = 10
      private_constant :PATIENCE, :STEP, :LINE, :NICE

      # Writes a dump to a file.
      #
      # @param file [File]
      # @param settings [Proc] gives a Hash, as Native.fork_dump takes it
      # @return [Hash{String => Integer}] what was written
      # @raise [Memprof::Error] if it could not be written
      def self.write(file, settings)
        child = new(file)
        child.start(settings)
        child.result
      ensure
        child&.finish
      end

      # Waits until no collection is half done, but not for long.
      #
      # @return [void]
      def self.between_collections
        (PATIENCE / STEP).round.times do
          return if GC.latest_gc_info(:state) == :none

          sleep(STEP)
        end
      end

      def initialize(file)
        @file = file
      end

      # @return [void]
      def start(settings)
        self.class.between_collections
        @pid, reader = Native.quiet { Dump.still { Native.fork_dump(@file.fileno, settings.call) } }
        @reader = IO.for_fd(reader, "rb")
        be_nice
      rescue Error => e
        raise Failed, e.message
      end

      # Waits for the child.
      #
      # @return [Hash{String => Integer}]
      def result
        line = read
        status = reap
        raise Failed, death(status) if line.nil? || !line.end_with?("\n")

        counts = JSON.parse(line)
        # Rust puts the number behind the system's text.
        raise Failed, counts["error"].sub(/ \(os error \d+\)\z/, "") if counts["error"]

        counts
      end

      # Leaves nothing behind, also if the waiting thread is being ended.
      #
      # @return [void]
      def finish
        @reader&.close
        return unless @pid

        kill
        reap
      end

      private

      # Whoever lets a child write wants the program disturbed least.
      def be_nice
        own = Process.getpriority(Process::PRIO_PROCESS, 0)
        Process.setpriority(Process::PRIO_PROCESS, @pid, own + NICE)
      rescue SystemCallError
        nil # it ended already, or this is not allowed here
      end

      def read
        line = +""
        while wait
          chunk = @reader.read_nonblock(LINE, exception: false)
          return line if chunk.nil?

          line << chunk unless chunk == :wait_readable
        end
        nil
      end

      # True when there is something to read, false if the child is stuck.
      def wait
        size = @file.size
        since = now
        until @reader.wait_readable(1) || @stalled
          since = now if @file.size != size
          size = @file.size
          @stalled = now - since > STALLED
        end
        !@stalled
      end

      def kill
        Process.kill(:KILL, @pid)
      rescue SystemCallError
        nil # it has ended
      end

      # A server that waits for any child may get it first.
      def reap
        kill if @stalled
        _, status = Process.wait2(@pid)
        @pid = nil
        status
      rescue Errno::ECHILD
        @pid = nil
      end

      def death(status)
        return "the child that wrote it made no progress for #{STALLED} s and was killed" if @stalled
        return "the child that wrote it ended without a word" unless status

        if status.signaled?
          "the child that wrote it was ended by signal #{status.termsig} (#{Signal.signame(status.termsig)})"
        else
          "the child that wrote it ended with status #{status.exitstatus}"
        end
      end

      def now
        Process.clock_gettime(Process::CLOCK_MONOTONIC)
      end
    end
  end
end
