# frozen_string_literal: true

require "memprof/trace"
require "memprof/trace/keeper"
require "memprof/trace/log"

module Memprof
  class Web
    class Live
      # Traces the next so many requests of this process, and keeps what they did.
      #
      # While none is wanted, a request pays for one comparison: calls are put back as soon as the last one is
      # through.
      #
      # @api private
      class Recorder
        MOST = 500 # requests
        # In the environment of requests to these pages, which are nobody's concern.
        OWN = "memprof.web"

        # Where a request's report goes.
        Sheet = Struct.new(:recorder, :env, :round) do
          # @param record [Hash]
          # @return [void]
          def write(record)
            tracers = Native.quiet { record["tracers"].to_h }
            recorder.keep(record.merge("tracers" => tracers), round, own: env.key?(OWN))
          end
        end
        private_constant :Sheet

        # @return [Recorder] the one that the middleware and the pages share
        def self.shared
          @shared ||= new
        end

        def initialize
          @lock = Mutex.new
          @keeper = Trace::Keeper.new
          @installed = false
          start_anew
        end

        # @return [Boolean] whether there is a middleware that asks
        attr_accessor :installed

        # @return [Boolean] whether the next request is to be traced
        def wanted?
          @left.positive?
        end

        # Forgets the requests that are kept, and traces the next ones.
        #
        # @param count [Integer]
        # @return [void]
        # @raise [ArgumentError] if that is too many
        def start(count)
          raise ArgumentError, "1 to #{MOST} requests can be traced" unless count.between?(1, MOST)

          @lock.synchronize do
            check_process
            @records = []
            @round += 1
            @left = @wanted = count
            @stopped = false
          end
        end

        # Traces no more; what was traced stays.
        #
        # @return [void]
        def stop
          @lock.synchronize do
            check_process
            @left = 0
            @stopped = true
            let_go
          end
        end

        # Runs a block, in a trace if it is its turn.
        #
        # @param env [Hash] of Rack
        # @yield handles the request
        # @return [Object] the block's value
        def trace(env, &block)
          round = claim
          return yield unless round

          begin
            Trace::Request.trace(env, Sheet.new(self, env, round), Trace.new, &block)
          ensure
            release
          end
        end

        # @param record [Hash] a traced request
        # @param round [Integer] what it was traced for
        # @param own [Boolean] whether it was a request to these pages
        # @return [void]
        def keep(record, round, own:)
          @lock.synchronize do
            next unless round == @round

            own ? give_back : @records << record
          end
        end

        # @return [Hash{Symbol => Integer}] `:wanted`, `:left` (those that run now are among them), `:traced`
        def state
          @lock.synchronize do
            check_process
            { wanted: @wanted, left: @left + @running, traced: @records.size }
          end
        end

        # @return [Array<Hash>] the traced requests, in the order in which they ended
        def records
          @lock.synchronize do
            check_process
            @records.dup
          end
        end

        private

        # What was wanted of the parent is not wanted of its copy.
        def check_process
          start_anew unless @pid == Process.pid
        end

        def start_anew
          @pid = Process.pid
          @records = []
          @round = 0
          @wanted = @left = @running = 0
        end

        # Unless there is no next one, as somebody stopped it.
        def give_back
          @left += 1 unless @stopped
        end

        # @return [Integer, nil] what the request is traced for; nil if it is not
        def claim
          @lock.synchronize do
            check_process
            next if @left.zero?

            @keeper.keep
            @left -= 1
            @running += 1
            @round
          end
        end

        def release
          @lock.synchronize do
            check_process
            @running -= 1 if @running.positive?
            let_go if @left.zero?
          end
        end

        def let_go
          @keeper.let_go if @running.zero?
        end
      end
    end
  end
end
