# frozen_string_literal: true

require "securerandom"
require_relative "../dump/in_progress"

module Memprof
  module CLI
    # Has a process write a dump, and waits for it: over its socket if there is one, else by its signal.
    module Dumping
      TO_BEGIN = 30 # seconds until a dump that was asked for by signal must have begun
      GLANCE = 0.1
      BAR = 20
      private_constant :TO_BEGIN, :GLANCE, :BAR

      private

      def dump_of(target, wanted, seconds)
        client = target.connect
        answers_signal = client.nil? && target.answers_signal?
        target.refuse_stopped if client || answers_signal
        return over_socket(target, client, wanted, seconds) if client
        return by_signal(target, wanted, seconds) if answers_signal

        from_copy(target, wanted, seconds)
      ensure
        client&.close
        @terminal.progress(nil)
      end

      def over_socket(target, client, wanted, seconds)
        reader, writer = IO.pipe(binmode: true)
        answer = client.ask({ do: "dump" }.merge(wanted), pass: writer)
        writer.close
        options = Memprof::Dump::Options.new(format: answer["format"], compression: answer["compression"])
        path = File.join(Dir.tmpdir, "memprof-#{SecureRandom.hex(8)}#{options.ending}")
        unfinished = path + Memprof::Dump::InProgress::SUFFIX
        File.open(unfinished, File::WRONLY | File::CREAT | File::EXCL | File::BINARY, 0o600) do |file|
          copying = Thread.new { IO.copy_stream(reader, file) }
          copying.report_on_exception = false
          wait(target, seconds, path) { client.wait(GLANCE) }
          client.answer
          copying.value
        end
        File.rename(unfinished, path)
        path
      rescue ArgumentError, Control::Broken => e
        raise UsageError, "process #{target.pid} aborted the dump: #{e.message}"
      ensure
        [reader, writer].each { |io| io&.close }
        FileUtils.rm_f(unfinished) if unfinished
      end

      def wait(target, seconds, path)
        watch = Arrival.new(target)
        beginning = Clock.now
        until yield
          raise UsageError, too_late(target, seconds, path) if Clock.now - beginning > seconds

          show(target, watch.size(path + Memprof::Dump::InProgress::SUFFIX), Clock.now - beginning)
        end
      end

      def by_signal(target, wanted, seconds)
        refuse_wanted(target) if wanted.any?
        arrival = Arrival.new(target)
        target.send_signal
        path = arrival.begin(TO_BEGIN) or raise UsageError, no_response(target)
        beginning = Clock.now
        state = arrival.finish(path, seconds) { |bytes| show(target, bytes, Clock.now - beginning) }
        raise UsageError, too_late(target, seconds, path) if state == :late
        raise UsageError, "process #{target.pid} aborted the dump: see its stderr" if state == :failed

        path.delete_suffix(Memprof::Dump::InProgress::SUFFIX)
      end

      # A process that has not loaded memprof does nothing: a copy of it writes the dump.
      def from_copy(target, wanted, seconds)
        request = { format: "memprof", compression: "none", values: "full" }.merge(wanted)
        path = File.join(target.temporary_directory, "memprof-#{SecureRandom.hex(8)}#{ending(request)}")
        copy = ProcessCopy.new(target)
        beginning = Clock.now
        unfinished = target.outside(path) + Memprof::Dump::InProgress::SUFFIX
        copy.ask({ do: "dump", path: path }.merge(request), seconds: seconds) do
          show(target, File.size?(unfinished).to_i, Clock.now - beginning)
        end
        @terminal.warn("process #{target.pid} does not answer, so a copy of it was dumped; " \
                       "it was paused for #{(copy.pause * 1000).round(1)} ms")
        target.outside(path)
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

      def too_late(target, seconds, path)
        "the dump of process #{target.pid} was not complete within #{seconds} s (--seconds): " +
          target.shown(path)
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
