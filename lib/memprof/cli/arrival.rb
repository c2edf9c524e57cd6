# frozen_string_literal: true

require_relative "../dump/in_progress"

module Memprof
  module CLI
    # Waits for the dump that a process writes after its signal: a new file beside the existing ones.
    class Arrival
      STEP = 0.05
      private_constant :STEP

      def initialize(target)
        @target = target
        @before = target.dumps
      end

      def begin(seconds) = poll(seconds) { (@target.dumps - @before).min }

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
