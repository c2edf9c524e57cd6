# frozen_string_literal: true

require_relative "../dump/in_progress"

module Memprof
  module CLI
    # Waits for the dump that a process writes after its signal: a new file beside the existing ones.
    class Arrival
      STEP = 0.05
      SUFFIX = Memprof::Dump::InProgress::SUFFIX
      private_constant :STEP, :SUFFIX

      def initialize(target)
        @target = target
        @before = target.dumps
      end

      # The new file, as {ForeignFiles::Entry} under its name once it is complete.
      def begin(seconds)
        found = poll(seconds) { (@target.dumps - @before).min_by(&:name) }
        found&.without_suffix(SUFFIX)
      end

      def finish(dump, seconds)
        poll(seconds) do
          yield(dump.with_suffix(SUFFIX).stat&.size.to_i)
          state(dump)
        end || :late
      end

      private

      # A missing file may have been renamed between the two checks.
      def state(dump)
        return :whole if dump.stat
        return if dump.with_suffix(SUFFIX).stat && @target.running?

        dump.stat ? :whole : :failed
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
