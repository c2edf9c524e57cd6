# frozen_string_literal: true

module Memprof
  module CLI
    # Makes a process write a dump, and waits for it: over its socket if it has one, otherwise by its signal,
    # otherwise in a copy of it. The process gets a pipe to write to, never a file name.
    module Dumping
      TO_BEGIN = 30 # seconds for a dump requested by signal to begin
      GLANCE = 0.1
      BAR = 20
      CHUNK = 256 * 1024
      SMALLEST_LIMIT = 1 << 30 # maximum bytes of a dump
      LIMIT_FACTOR = 100 # or that times the memory of its process
      private_constant :TO_BEGIN, :GLANCE, :BAR, :CHUNK, :SMALLEST_LIMIT, :LIMIT_FACTOR

      private

      # Returns the path of the dump: `out`, or if nil, one named after the application.
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
        answer = client.ask({ do: "dump" }.merge(wanted), pass: writer, seconds: [TO_BEGIN, seconds].min)
        writer.close
        options = Memprof::Dump::Options.new(format: answer["format"], compression: answer["compression"])
        out ||= default_name(target, options.ending)
        Output.open(out) { |file| receive(target, client, reader, file, seconds) }
        out
      rescue ArgumentError, Control::Broken => e
        raise UsageError, "process #{target.pid} aborted the dump: #{e.message}"
      ensure
        [reader, writer].compact.each(&:close)
      end

      # Copies until the process reports that the dump is complete: its end of the pipe may stay open longer,
      # in a child forked meanwhile.
      def receive(target, client, reader, file, seconds)
        beginning = Clock.now
        bytes = 0
        loop do
          answered = client.wait(0) # checked first: all of the dump is in the pipe then
          chunk = reader.read_nonblock(CHUNK, exception: false)
          break if chunk.nil? || (answered && chunk == :wait_readable)

          if chunk == :wait_readable
            show(target, bytes, Clock.now - beginning)
            reader.wait_readable(GLANCE)
          else
            bytes += file.write(chunk)
          end
          check(target, bytes, Clock.now - beginning, seconds)
        end
        client.answer
      end

      # Limits what a process may send.
      def check(target, bytes, time, seconds)
        raise UsageError, too_late(target, seconds) if time > seconds
        raise UsageError, "the dump of process #{target.pid} has no end" if bytes > limit(target)
      end

      def limit(target) = [SMALLEST_LIMIT, target.resident * LIMIT_FACTOR].max

      def by_signal(target, out, wanted, seconds)
        refuse_wanted(target) if wanted.any?
        arrival = Arrival.new(target)
        target.send_signal
        to_begin = [TO_BEGIN, seconds].min
        dump = arrival.begin(to_begin) or raise UsageError, no_response(target, to_begin)
        beginning = Clock.now
        state = arrival.finish(dump, seconds) { |bytes| show(target, bytes, Clock.now - beginning) }
        raise UsageError, "#{too_late(target, seconds)}: #{dump}" if state == :late
        raise UsageError, "process #{target.pid} aborted the dump: see its stderr" if state == :failed

        out ||= default_name(target, dump.name[/\.[a-z.]+\z/].to_s)
        take(target, dump, out)
        out
      end

      # The process has not loaded memprof and does nothing: a copy of it writes the dump.
      def from_copy(target, out, wanted, seconds)
        request = { format: "memprof", compression: "none", values: "full" }.merge(wanted)
        out ||= default_name(target, ending(request))
        copy = ProcessCopy.new(target)
        beginning = Clock.now
        Output.open(out) do |file|
          copy.ask({ do: "dump" }.merge(request), seconds: seconds, output: file, limit: limit(target)) do
            show(target, file.stat.size, Clock.now - beginning)
          end
        end
        copied(target, copy.pause)
        out
      end

      # Reads a copy from outside: Ruby does not know malloc's blocks.
      def with_blocks(target, out, wanted)
        require_relative "../core"
        wanted = wanted.except(:compression)
        out ||= default_name(target, ending({ format: "memprof", compression: "none" }.merge(wanted)))
        Memprof::Core.of(target.pid) do |core|
          core.dump(out, blocks: true, **wanted)
          @terminal.warn("dumped a copy of process #{target.pid}, which was paused for #{shown(core.pause)}")
        end
        out
      end

      def default_name(target, ending)
        "#{target.name}-#{target.pid}-#{Time.now.strftime("%Y%m%d-%H%M%S")}#{ending}"
      end

      # Copies a process's file (a {ForeignFiles::Entry}) to a path here, and removes the original.
      def take(target, dump, destination)
        dump.open do |file|
          # Checked again: the name may belong to another file by now.
          raise Error, "cannot read #{dump}: it does not belong to process #{target.pid}" unless
            target.ours?(file.stat)

          Output.open(destination) { |io| IO.copy_stream(file, io) }
          dump.remove(file)
        end
      rescue Error => e
        # The process is done: the dump is left where it is.
        raise UsageError, "#{e.message}; the dump is #{dump}"
      end

      def copied(target, pause)
        @terminal.warn("dumped a copy of process #{target.pid}, which was paused for #{shown(pause)} " \
                       "(memprof/signal does not answer there)")
      end

      def shown(pause) = "#{(pause * 1000).round(1)} ms"

      def ending(request)
        format = request[:format].to_sym == :binary ? ".memprof" : ".json"
        format + { gzip: ".gz", zstd: ".zst" }.fetch(request[:compression].to_sym, "")
      end

      def refuse_wanted(target)
        raise UsageError, "process #{target.pid} has no socket, and a signal has no options: " \
                          "omit --output, --format and --contents, and use `memprof convert` afterwards"
      end

      def no_response(target, seconds)
        return "process #{target.pid} ended" unless target.running?

        "no response from #{target.pid}: no dump begun within #{seconds} s; see its stderr"
      end

      def too_late(target, seconds)
        "the dump of process #{target.pid} was not complete within #{seconds} s (--timeout)"
      end

      # The total size is unknown, so the bar only moves.
      def show(target, bytes, seconds)
        place = (seconds / GLANCE).to_i % BAR
        bar = "#{" " * place}=#{" " * (BAR - 1 - place)}"
        @terminal.progress("dumping #{target.pid} [#{bar}] #{Units.bytes(bytes)}, #{seconds.to_i} s")
      end
    end
  end
end
