# frozen_string_literal: true

require "io/wait"
require_relative "../clock"

module Memprof
  module Dump
    # A dump written by a forked child, while the threads of this process continue. The child runs no Ruby
    # code; it reports its result in one line, and this side waits for that line.
    class Child
      # Maximum seconds to wait for a GC in progress, which the child would have to finish.
      PATIENCE = 0.25
      STEP = 0.005
      # Seconds without progress after which the child counts as stuck.
      STALLED = 60
      LINE = 64 * 1024
      private_constant :PATIENCE, :STEP, :LINE

      # Yields as soon as the child has the file.
      def self.write(file, settings)
        child = new(file)
        child.start(settings)
        yield if block_given?
        child.result
      ensure
        child&.finish
      end

      # Waits until no GC is in progress, but not for long. Uses the clock: with other busy threads, a step
      # may take any time.
      def self.between_collections
        deadline = Clock.now + PATIENCE
        sleep(STEP) until GC.latest_gc_info(:state) == :none || Clock.now > deadline
      end

      def initialize(file)
        @file = file
        # Its process id, and the descriptor of its output.
        @made = []
      end

      def start(settings)
        self.class.between_collections
        Dump.failing do
          Native.quiet { Dump.still { Native.fork_dump(@file.fileno, settings.call, @made) } }
        end
      end

      # Waits for the child.
      def result
        line = read
        status = reap
        raise Failed, exit_reason(status) if line.nil? || !line.end_with?("\n")

        counts = JSON.parse(line)
        raise Failed, counts["error"] if counts["error"]

        counts
      end

      # Leaves nothing behind, even if the waiting thread is being killed.
      def finish
        reader.close if @reader || (@made[1] && !@opened)
        return unless pid

        kill
        reap
      end

      private

      # Nil if it was never forked, or is gone.
      def pid = @made[0]

      # The GC closes it if nothing else does: if this is interrupted, it must not be opened again.
      def reader
        return @reader if @reader

        @opened = true
        @reader = IO.for_fd(@made[1], "rb")
      end

      def read
        line = +""
        while wait
          chunk = reader.read_nonblock(LINE, exception: false)
          return line if chunk.nil?

          line << chunk unless chunk == :wait_readable
        end
        nil
      end

      # True when there is something to read, false if the child is stuck.
      def wait
        before = progress
        since = Clock.now
        until reader.wait_readable(1) || @stalled
          now = progress
          since = Clock.now if now != before || now.nil?
          before = now
          @stalled = Clock.now - since > STALLED
        end
        !@stalled
      end

      # Grows while the child works: the size of its file, or, for a pipe, its CPU time. Nil where the system
      # does not expose that.
      def progress = @file.respond_to?(:size) ? @file.size : processor_time

      # Uses the clock id that clock_getcpuclockid(3) returns for a process on Linux.
      def processor_time
        Process.clock_gettime((~pid << 3) | 2) if RUBY_PLATFORM.include?("linux")
      rescue SystemCallError
        nil # it has ended
      end

      def kill
        Process.kill(:KILL, pid)
      rescue SystemCallError
        nil # it has ended
      end

      # A server that waits for any child may reap it first.
      def reap
        kill if @stalled
        _, status = Process.wait2(pid)
        @made[0] = nil
        status
      rescue Errno::ECHILD
        @made[0] = nil
      end

      def exit_reason(status)
        return "the child that wrote it made no progress for #{STALLED} s and was killed" if @stalled
        return "the child that wrote it ended without a word" unless status

        if status.signaled?
          "the child that wrote it was ended by signal #{status.termsig} (#{Signal.signame(status.termsig)})"
        else
          "the child that wrote it ended with status #{status.exitstatus}"
        end
      end
    end
  end
end
