# frozen_string_literal: true

require "memprof/trace"
require "memprof/trace/pool"
require "memprof/trace/journal"

module Memprof
  class Web
    class Live
      # Traces the next N requests of this process, and records what they did.
      #
      # While no trace is wanted, a request only costs one comparison: instrumented methods are restored as
      # soon as the last one finishes.
      class RequestRecorder
        MOST = 500 # requests
        # Set in the environment of requests to these pages, which are not shown.
        OWN = "memprof.web"

        # Receives a request's report.
        Sink = Struct.new(:recorder, :env, :round) do
          def write(record)
            tracers = Native.quiet { record["tracers"].to_h }
            recorder.keep(record.merge("tracers" => tracers), round, own: env.key?(OWN))
          end
        end
        private_constant :Sink

        def self.shared
          @shared ||= new
        end

        def initialize
          @lock = Mutex.new
          @pool = Trace::Pool.new
          @installed = false
          after_fork
        end

        attr_accessor :installed

        def wanted? = @left.positive?

        # Discards the recorded requests, and traces the next ones.
        def start(count)
          raise ArgumentError, "invalid count; expected 1 to #{MOST} requests" unless count.between?(1, MOST)

          @lock.synchronize do
            check_process
            @records = []
            @round += 1
            @left = @wanted = count
            @stopped = false
          end
        end

        # Stops tracing; recorded requests remain.
        def stop
          @lock.synchronize do
            check_process
            @left = 0
            @stopped = true
            uninstall_unused
          end
        end

        # Runs a block, traced if it is its turn.
        def trace(env, &block)
          round = claim
          return yield unless round

          begin
            Trace::Request.new(env, Sink.new(self, env, round)).trace(Trace.new, &block)
          ensure
            release
          end
        end

        def keep(record, round, own:)
          @lock.synchronize do
            next unless round == @round

            own ? uncount : @records << record
          end
        end

        def state
          @lock.synchronize do
            check_process
            { wanted: @wanted, left: @left + @running, traced: @records.size }
          end
        end

        def records
          @lock.synchronize do
            check_process
            @records.dup
          end
        end

        # The number of the current recording, and its requests after the first `known` ones of `round`.
        def since(round, known)
          @lock.synchronize do
            check_process
            [@round, @records.drop(round == @round ? known : 0)]
          end
        end

        private

        # A forked child does not continue its parent's tracing.
        def check_process
          after_fork unless @pid == Process.pid
        end

        def after_fork
          @pid = Process.pid
          @records = []
          @round = 0
          @wanted = @left = @running = 0
        end

        # Unless somebody stopped tracing.
        def uncount
          @left += 1 unless @stopped
        end

        def claim
          @lock.synchronize do
            check_process
            next if @left.zero?

            @pool.install
            @left -= 1
            @running += 1
            @round
          end
        end

        def release
          @lock.synchronize do
            check_process
            @running -= 1 if @running.positive?
            uninstall_unused if @left.zero?
          end
        end

        def uninstall_unused
          @pool.uninstall if @running.zero?
        end
      end
    end
  end
end
