# frozen_string_literal: true

require_relative "../clock"
require_relative "../dump/in_progress"

module Memprof
  module CLI
    # A dump that a process is asked for by its signal: it appears as a new file among those that were there.
    class Arrival
      STEP = 0.05
      private_constant :STEP

      def initialize(target)
        @target = target
        @before = target.dumps
      end

      # Waits for a new dump to begin.
      def begin(seconds)
        poll(seconds) { (@target.dumps - @before).min }
      end

      # Waits for a dump to be whole.
      def finish(path, seconds)
        path = path.delete_suffix(Memprof::Dump::InProgress::SUFFIX)
        poll(seconds) do
          yield(size(path + Memprof::Dump::InProgress::SUFFIX))
          state(path)
        end || :late
      end

      def size(path)
        File.size(path)
      rescue SystemCallError
        0
      end

      private

      # A file that is gone may have got its name between two looks.
      def state(path)
        return :whole if File.exist?(path)
        return if File.exist?(path + Memprof::Dump::InProgress::SUFFIX) && @target.running?

        File.exist?(path) ? :whole : :failed
      end

      def poll(seconds)
        deadline = Clock.now + seconds
        loop do
          found = yield
          return found if found || Clock.now > deadline || !@target.running?

          sleep(STEP)
        end
      end
    end
  end
end
