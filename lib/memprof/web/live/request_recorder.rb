# frozen_string_literal: true

require "memprof/trace"
require "memprof/trace/pool"
require "memprof/trace/journal"

module Memprof
  class Web
    class Live
      # Traces the next so many requests of this process, and keeps what they did.
      #
      # While none is wanted, a request pays for one comparison: calls are put back as soon as the last one is
      # through.
      class RequestRecorder
        MOST = 500 # requests
        # In the environment of requests to these pages, which are not to be shown.
        OWN = "memprof.web"

        # Where a request's report goes.
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

        # Forgets the requests that are kept, and traces the next ones.
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

        # Traces no more; what was traced stays.
        def stop
          @lock.synchronize do
            check_process
            @left = 0
            @stopped = true
            uninstall_unused
          end
        end

        # Runs a block, in a trace if it is its turn.
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

        private

        # What was wanted of the parent is not wanted of its copy.
        def check_process
          after_fork unless @pid == Process.pid
        end

        def after_fork
          @pid = Process.pid
          @records = []
          @round = 0
          @wanted = @left = @running = 0
        end

        # Unless there is no next one, as somebody stopped it.
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
