# frozen_string_literal: true

require_relative "../autorun/recorder"
require_relative "../clock"
require_relative "../output"
require_relative "../trace"

module Memprof
  class Trace
    # `memprof run --trace`: traces a process from load to end. Its report is one JSON document, which
    # `memprof trace` reads.
    class Recorder < Autorun::Recorder
      # The trace of a process, used in place of a Memprof::Session.
      class WholeProcess
        def initialize
          @trace = Trace.new(:process)
          @start = Process.clock_gettime(Process::CLOCK_REALTIME, :microsecond)
          @began = Clock.now
          @trace.start
        end

        def finish
          @finish ||= begin
            report = @trace.finish.to_h
            { "start" => @start, "tracers" => report, "command" => Printable.utf8($PROGRAM_NAME),
              "pid" => Process.pid, "time" => (Clock.now - @began).round(9) }
          end
        end

        # Ends the trace without a report, in a forked copy of its process.
        def close = @trace.finish
      end
      private_constant :WholeProcess

      private

      def open_session
        @session = WholeProcess.new
      end

      def write(_serial = nil)
        $LOAD_PATH.push(LIB) unless $LOAD_PATH.include?(LIB)
        path = @settings.path(Process.pid, main: @main)
        record = @session.finish
        Output.write(path, Journal.json(record, pretty: shown?))
        @reports << path
        @allocated = record.dig("tracers", "objects", "bytes")
        path
      end

      # One line in a file that the user asked for, indented in one that the command prints.
      def shown?
        directory = @settings.run_directory
        !directory.nil? && @settings.output.to_s.start_with?("#{directory}/")
      end
    end
  end
end
