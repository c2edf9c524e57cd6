# frozen_string_literal: true

module Memprof
  module CLI
    # `memprof attach`: tracking, malloc, or Ruby code, in a process that has not loaded memprof.
    class Attach < Command
      include LiveProcess

      SUMMARY = "tracks a running process that has not loaded memprof"
      USAGE = "[OPTIONS] PID"
      DETAILS = <<~TEXT
        Loads memprof into a process. --track prints the objects that are allocated from
        now on and still live at the end, most first, as `memprof stats` does. --malloc
        prints the lines whose malloc'ed memory is still live. --eval prints what the
        code in FILE returns. The process runs a full GC first, so that garbage does not
        count as live.

        With --malloc and --output memprof writes a recording instead, with calling
        frames, which `memprof malloc FILE` and `memprof web FILE` show.

        Unlike `memprof dump` and `memprof stack`, which ask a copy, this changes the
        process: a thread of memprof runs in it until the answer is complete. Then
        memprof ends tracking and removes all hooks; only the loaded files remain. Press
        Ctrl-C to end it early. If this command is killed, the process undoes everything
        as well. If the process has loaded memprof/signal, --track uses its socket.

        Linux only; run it as the user of the process or as root, with the permission
        to trace it (ptrace). The process must see this installation of memprof.

        Examples:
          memprof attach 4711 --track --for 30s
          memprof attach 4711 --malloc --sample-bytes 512KiB
          memprof attach 4711 --malloc --native -o app.malloc
          memprof attach 4711 --eval count.rb
      TEXT
      SLACK = 60 # seconds for loading and for the answer
      DOES = {
        track: "tracks allocations for %<duration>s s, and stops",
        malloc: "records malloc for %<duration>s s, and stops",
        eval: "evaluates %<file>s"
      }.freeze
      private_constant :SLACK, :DOES

      def call(arguments)
        check_options
        target = target(arguments)
        load_library
        answer = recorded { |file| answer(target, file) }
        lines = Array(answer["lines"])
        ExitStatus.of(@terminal.print(lines.map { |line| "#{Printable.line(line)}\n" }.join))
      end

      private

      def check_options
        modes = DOES.keys.select { |mode| @options[mode] }
        unless modes.one?
          raise UsageError, "expected one of: --track, --malloc, --eval FILE; see `memprof help attach`"
        end

        @mode = modes.first
        refuse_options(%i[for sample sample_bytes limit], "cannot be used with --eval") if @mode == :eval
        refuse_options(%i[output sample_bytes], "needs --malloc") unless @mode == :malloc
        check_sample if @mode == :track
        refuse_options(%i[native stack], "needs --malloc and --output") unless @options[:output]
        refuse_options(%i[limit], "cannot be used with --output") if @options[:output]
      end

      def duration = option(:for)

      # The process writes to a nameless file: a named one it could overwrite later.
      def recorded
        path = @options[:output] or return yield(nil)

        require "tempfile"
        Tempfile.create("memprof", binmode: true) do |recording|
          File.unlink(recording)
          answer = yield(recording)
          recording.rewind
          Output.open(path) { |file| IO.copy_stream(recording, file) }
          @terminal.hint("Next: memprof malloc #{Suggestion.word(path)}")
          answer
        end
      end

      def answer(target, file)
        client = target.connect if @mode == :track
        return over_socket(target, client) if client

        request = request()
        attachment = Attachment.new(target, ProcessCopy.new(target).library, @terminal)
        announce(target, "loads memprof at its next interrupt check, ")
        seconds = option(:timeout)
        work = @mode == :eval ? Float::INFINITY : duration + SLACK
        answer = attachment.run(request, seconds: seconds, work: work, file: file)
        @terminal.warn("done; its main thread was paused for #{(attachment.pause * 1000).round(1)} ms")
        answer
      ensure
        client&.close
      end

      def announce(target, how)
        file = Printable.line(@options[:eval].to_s)
        what = format(DOES.fetch(@mode), duration: duration.round(3), file: file)
        @terminal.warn("process #{target.pid} (#{target.name}): #{how}#{what}")
      end

      def request
        common = { do: @mode.to_s }
        wanted = { sample: sample, limit: @options[:limit] }.compact.merge(recording)
        return common.merge(wanted, duration: duration) unless @mode == :eval

        file = @options[:eval]
        check_readable(file, stdin: false)
        code = File.read(file, encoding: "UTF-8")
        raise UsageError, "cannot read #{file}: it is not UTF-8" unless code.valid_encoding?

        common.merge(file: File.expand_path(file), code: code)
      end

      def sample
        return @options[:sample] unless @mode == :malloc

        size = @options[:sample] or return @options[:sample_bytes]

        @terminal.renamed("--sample of --malloc", "--sample-bytes")
        Flags::SIZE.read(size.to_s)
      end

      def recording = @options[:output] ? { file: true, **@options.slice(:native, :stack) } : {}

      # Tracking that was already on stays on.
      # The process stops when the client's connection is closed, however this command ends.
      def over_socket(target, client)
        target.refuse_stopped
        announce(target, "has loaded memprof/signal; asked over its socket, it ")
        started = client.ask({ do: "start", lease: true }.merge(@options.slice(:sample)))["changed"]
        @terminal.warn("tracking was on before: older objects count, too, and it stays on") unless started
        sleep(duration)
        ask_process(target, { do: "stats", collect: true }.merge(@options.slice(:limit)))
      rescue Control::Broken => e
        raise UsageError, "process #{target.pid}: #{e.message}"
      end
    end
  end
end
