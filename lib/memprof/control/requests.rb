# frozen_string_literal: true

require_relative "leases"
require_relative "wire"
require_relative "../loading"

module Memprof
  # Loaded in advance: later, the process may have another root, or no permission to read files.
  %i[Dump Memory].each { |part| Loading.part(part) }

  module Control
    # The requests that a process accepts: `{"do":"ping"}`, `start`, `stop`, `stats`, `memory`, `agent`,
    # `dump`. Each answer has `"ok"`, and `"error"` if that is false. A `start` with `"lease":true` keeps the
    # connection open: tracking ends with it.
    class Requests
      SECONDS = 5
      private_constant :SECONDS

      attr_reader :leases

      def initialize(dumper)
        @dumper = dumper
        @leases = Leases.new
      end

      # Answers at once, and again after a dump is complete. Removes descriptors from `passed` that it closes
      # itself, and returns whether it keeps the connection open.
      def handle(request, client, passed)
        case request["do"]
        when "dump" then return dump(request, client, passed)
        when "ping" then reply(client, ping)
        when "start" then return start(request, client)
        when "stop" then reply(client, changed: Memprof.stop)
        when "stats" then reply(client, stats(request))
        when "memory" then reply(client, memory: Memprof.memory.to_h)
        when "agent" then reply(client, agent: agent)
        else refuse(client, "unknown request #{request["do"].inspect}; " \
                               "expected one of: ping, start, stop, stats, memory, agent, dump")
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

      # Nil if no agent is running.
      def agent = defined?(Memprof::Agent.running?) && Memprof::Agent.running? ? Memprof::Agent.state : nil

      def start(request, client)
        options = { sample: request["sample"], stack: request["stack"] }.compact
        lease = request["lease"] == true
        reply(client, changed: lease ? @leases.add(client, **options) : Memprof.start(**options))
        lease
      rescue Broken
        @leases.close([client]) if lease
        raise
      end

      def stats(request)
        limit = request["limit"]
        raise NotRunning, "objects are not tracked; run `memprof start` first" unless
          Memprof.running?

        session = Memprof.send(:session)
        session.collect if request["collect"] == true
        rows = session.stats_lines(limit: limit)
        { lines: rows.map { |row| Printable.line(row) } }
      end

      # Writes to the descriptor passed by the client. The dump's own thread may finish before the first
      # answer is sent: it waits for its turn.
      def dump(request, client, passed)
        raise Error, "no descriptor was passed for the dump" if passed.empty?

        turn = Thread::Queue.new
        options = options(request)
        begun = @dumper.stream(passed.first, options) do |outcome|
          turn.pop
          finish(client, outcome)
        end
        raise Error, "a dump is being written already" unless begun

        begin
          passed.clear
          reply(client, format: options.format, compression: options.compression)
          true
        ensure
          turn << true
        end
      end

      # Options missing in the request default to the process's settings.
      def options(request)
        given = request.slice("format", "values", "compression").compact.transform_keys(&:to_sym)
        own = @dumper.options
        format = given.fetch(:format, own.format)
        # The binary format is already compressed, whatever the process's setting.
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
        nil # the client is gone
      ensure
        client.close
      end
    end
  end
end
