# frozen_string_literal: true

module Memprof
  module CLI
    # Has a process write a dump, and waits for it: over its socket if there is one, else by its signal, else
    # by a copy of it. The process gets a pipe to write to, and never the name of a file.
    module Dumping
      TO_BEGIN = 30 # seconds until a dump that was asked for by signal must have begun
      GLANCE = 0.1
      BAR = 20
      CHUNK = 256 * 1024
      ENDING = /\A\.(?:json|memprof)(?:\.gz|\.zst)?\z/
      # Bytes of a dump at most: what a process sends has an end, however much it would like to send.
      SMALLEST_LIMIT = 1 << 30
      LIMIT_FACTOR = 100 # times its memory
      private_constant :TO_BEGIN, :GLANCE, :BAR, :CHUNK, :ENDING, :SMALLEST_LIMIT, :LIMIT_FACTOR

      private

      # Returns the path of the dump: `out`, or if that is nil one that is named after the application.
      def dump_of(target, out, wanted, seconds)
        client = target.connect
        answers_signal = client.nil? && target.answers_signal?
        target.refuse_stopped if client || answers_signal
        return over_socket(target, client, out, wanted, seconds) if client
        return by_signal(target, out, wanted, seconds) if answers_signal

        from_copy(target, out, wanted, seconds)
      ensure
        client&.close
        @terminal.progress(nil)
      end

      def over_socket(target, client, out, wanted, seconds)
        reader, writer = IO.pipe(binmode: true)
        answer = client.ask({ do: "dump" }.merge(wanted), pass: writer)
        writer.close
        out ||= Collection.name(target, answer["ending"].to_s[ENDING] || ".json")
        Output.open(out) do |file|
          receive(target, reader, file, seconds)
          client.answer
        end
        out
      rescue Control::Broken => e
        raise UsageError, "process #{target.pid} aborted the dump: #{e.message}"
      ensure
        [reader, writer].compact.each(&:close)
      end

      # Copies until the process has closed its end.
      def receive(target, reader, file, seconds)
        beginning = Clock.now
        bytes = 0
        chunk = String.new
        until reader.wait_readable(GLANCE) && reader.read_nonblock(CHUNK, chunk, exception: false).nil?
          raise UsageError, too_late(target, seconds) if Clock.now - beginning > seconds

          file.write(chunk)
          bytes += chunk.bytesize
          raise UsageError, "the dump of process #{target.pid} has no end" if bytes > limit(target)

          chunk.clear
          show(target, bytes, Clock.now - beginning)
        end
      end

      def limit(target) = [SMALLEST_LIMIT, target.resident * LIMIT_FACTOR].max

      def by_signal(target, out, wanted, seconds)
        refuse_wanted(target) if wanted.any?
        arrival = Arrival.new(target)
        target.send_signal
        dump = arrival.begin(TO_BEGIN) or raise UsageError, no_response(target)
        beginning = Clock.now
        state = arrival.finish(dump, seconds) { |bytes| show(target, bytes, Clock.now - beginning) }
        raise UsageError, "#{too_late(target, seconds)}: #{dump}" if state == :late
        raise UsageError, "process #{target.pid} aborted the dump: see its stderr" if state == :failed

        out ||= Collection.name(target, dump.name[/\.[a-z.]+\z/].to_s)
        Collection.take(target, dump, out)
        out
      end

      # A process that has not loaded memprof does nothing: a copy of it writes the dump.
      def from_copy(target, out, wanted, seconds)
        request = { format: "memprof", compression: "none", values: "full" }.merge(wanted)
        out ||= Collection.name(target, ending(request))
        copy = ProcessCopy.new(target)
        beginning = Clock.now
        Output.open(out) do |file|
          copy.ask({ do: "dump" }.merge(request), seconds: seconds, output: file, limit: limit(target)) do
            show(target, file.stat.size, Clock.now - beginning)
          end
        end
        @terminal.warn("process #{target.pid} does not answer, so a copy of it was dumped; " \
                       "it was paused for #{(copy.pause * 1000).round(1)} ms")
        out
      end

      def ending(request)
        format = request[:format].to_sym == :binary ? ".memprof" : ".json"
        format + { gzip: ".gz", zstd: ".zst" }.fetch(request[:compression].to_sym, "")
      end

      def refuse_wanted(target)
        raise UsageError, "process #{target.pid} has no socket, and a signal has no options: " \
                          "omit --output, --format and --values, and use `memprof convert` afterwards"
      end

      def no_response(target)
        return "process #{target.pid} ended" unless target.running?

        "no response from #{target.pid}: no dump begun within #{TO_BEGIN} s; see its stderr"
      end

      def too_late(target, seconds)
        "the dump of process #{target.pid} was not complete within #{seconds} s (--seconds)"
      end

      # How large it will be is not known, so the bar only moves.
      def show(target, bytes, seconds)
        place = (seconds / GLANCE).to_i % BAR
        bar = "#{" " * place}=#{" " * (BAR - 1 - place)}"
        @terminal.progress("dumping #{target.pid} [#{bar}] #{Units.bytes(bytes)}, #{seconds.to_i} s")
      end
    end
  end
end
