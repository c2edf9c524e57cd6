# frozen_string_literal: true

module Memprof
  module CLI
    class Classic
      # Has the process write a dump, by its signal, and waits for it.
      class SignalDump
        BEGIN_SECONDS = 30
        private_constant :BEGIN_SECONDS

        def initialize(target, terminal, seconds)
          @target = target
          @terminal = terminal
          @seconds = seconds
        end

        def path
          refuse unless @target.answers_signal?
          arrival = Arrival.new(@target)
          signal
          found = begun(arrival)
          path = found.delete_suffix(Memprof::Dump::InProgress::SUFFIX)
          wait(arrival, found) unless found == path
          path
        end

        private

        def signal
          @target.send_signal
          @terminal.puts("Signaled process #{@target.pid} with SIG#{@target.signal}")
        end

        def begun(arrival)
          seconds = [BEGIN_SECONDS, @seconds].min
          @terminal.puts("Waiting #{seconds} seconds for process #{@target.pid} to create a new dump...")
          found = arrival.begin(seconds)
          raise Failure, "Timed out after waiting #{seconds} seconds" unless found

          @terminal.puts("Found file #{Printable.line(found)}")
          found
        end

        def wait(arrival, found)
          @terminal.puts("Dump in progress. Waiting #{@seconds} seconds for it to complete...")
          case arrival.finish(found, @seconds) { |bytes| @terminal.progress("#{bytes} bytes") }
          when :late then raise Failure, "Timed out after waiting #{@seconds} seconds"
          when :failed then raise Failure, "Process #{@target.pid} aborted the dump; see its stderr"
          end
        ensure
          @terminal.progress(nil)
        end

        # The signal does nothing there, or ends the process.
        def refuse
          raise Failure, "Process #{@target.pid} does not handle SIG#{@target.signal}: #{LiveProcess::HOW}"
        end
      end
    end
  end
end
