# frozen_string_literal: true

require_relative "wire"
require_relative "../dump"

module Memprof
  module Control
    # What a process can be asked for: `{"do":"ping"}`, `start`, `stop`, `stats`, `memory`,
    # `dump`. Each answer has
    # `"ok"`, and `"error"` if that is false.
    class Requests
      SECONDS = 5
      private_constant :SECONDS

      def initialize(dumper)
        @dumper = dumper
      end

      # Answers, at once or, for a dump, once more when it is whole.
      def handle(request, client)
        case request["do"]
        when "dump" then return dump(request, client)
        when "ping" then reply(client, ping)
        when "start" then reply(client, start(request))
        when "stop" then reply(client, changed: Memprof.stop)
        when "stats" then reply(client, stats(request))
        when "memory" then reply(client, memory: Memprof.memory.to_h)
        else refuse(client, "can't do #{request["do"].inspect}: only ping, start, stop, stats, memory, dump")
        end
        false
      rescue Broken
        raise
      rescue ArgumentError, Error, ThreadError => e
        refuse(client, e.message.lines.first.to_s.chomp)
        false
      end

      def refuse(client, message)
        Wire.write(client, { ok: false, error: Printable.utf8(message) }, seconds: SECONDS)
      end

      private

      def reply(client, facts) = Wire.write(client, { ok: true }.merge(facts), seconds: SECONDS)

      def ping = { pid: Process.pid, memprof: VERSION, ruby: RUBY_DESCRIPTION, tracking: Memprof.running? }

      def start(request)
        options = { sample: request["sample"], stack: request["stack"] }.compact
        { changed: Memprof.start(**options) }
      end

      def stats(request)
        limit = request["limit"]
        raise NotRunning, "objects are not tracked: `memprof start` has the process track them" unless
          Memprof.running?

        rows = Memprof.send(:session).stats_lines(limit: limit)
        { lines: rows.map { |row| Printable.line(row) } }
      end

      # The dump's own thread may end before the first answer is out: it waits for its turn.
      def dump(request, client)
        turn = Thread::Queue.new
        options = options(request)
        path = @dumper.start(options) do |outcome|
          turn.pop
          finish(client, outcome)
        end
        return refuse(client, "a dump is being written already") && false unless path

        begin
          reply(client, path: Printable.utf8(path))
          true
        ensure
          turn << true
        end
      end

      # What is not asked for is as the process is set.
      def options(request)
        given = request.slice("format", "values", "compression").compact.transform_keys(&:to_sym)
        own = @dumper.options
        format = given.fetch(:format, own.format)
        # The binary format is compressed inside already, whatever the process is set to.
        compression = own.compression unless format.to_s == "binary"
        Dump::Options.new(values: own.values, compression: compression, **given, format: format)
      end

      def finish(client, outcome)
        if outcome.is_a?(Exception)
          refuse(client, outcome.message.lines.first.to_s.chomp)
        else
          reply(client, outcome.to_h.except(:path))
        end
      rescue Broken
        nil # the client is gone; the dump is there
      ensure
        client.close
      end
    end
  end
end
