# frozen_string_literal: true

require_relative "../../cli/scratch"

module Memprof
  module Compat
    class Uploader
      # Makes the process write a dump, by its signal, and waits for it.
      class SignalDump
        BEGIN_SECONDS = 30
        private_constant :BEGIN_SECONDS

        def initialize(target, terminal, seconds)
          @target = target
          @terminal = terminal
          @seconds = seconds
        end

        # Copies the dump into a directory of this process and yields its path. With `keep`, the process's own
        # file is not removed.
        def take(keep:)
          refuse unless @target.answers_signal?
          arrival = CLI::Arrival.new(@target)
          signal
          dump = begun(arrival)
          wait(arrival, dump)
          CLI::Scratch.directory do |directory|
            path = File.join(directory, dump.name)
            dump.open do |file|
              raise Failure, "#{dump} does not belong to process #{@target.pid}" unless
                @target.ours?(file.stat)

              Output.open(path) { |io| IO.copy_stream(file, io) }
              yield(path, dump)
              dump.remove(file) unless keep
            end
          end
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

          unfinished = found.with_suffix(Dump::InProgress::SUFFIX)
          shown = found.stat ? found : unfinished
          @terminal.puts("Found file #{Printable.line(shown.to_s)}")
          found
        end

        def wait(arrival, dump)
          return if dump.stat

          @terminal.puts("Dump in progress. Waiting #{@seconds} seconds for it to complete...")
          case arrival.finish(dump, @seconds) { |bytes| @terminal.progress("#{bytes} bytes") }
          when :late then raise Failure, "Timed out after waiting #{@seconds} seconds"
          when :failed then raise Failure, "Process #{@target.pid} aborted the dump; see its stderr"
          end
        ensure
          @terminal.progress(nil)
        end

        # The process ignores the signal, or would end.
        def refuse
          name = "SIG#{@target.signal}"
          raise Failure, "Process #{@target.pid} does not handle #{name}: #{CLI::LiveProcess::HOW}"
        end
      end
    end
  end
end
