# frozen_string_literal: true

require_relative "client"

module Memprof
  module Tracers
    # `redis`: commands by name, through the gems redis-client (and so redis 5) and redis 4. Counted is what
    # goes over the connection, with what the client sends by itself; commands of a pipeline share its time.
    class Redis < Client
      # Tells of commands.
      def self.sent(commands)
        followers = running
        began = Clock.now
        waited = Native.gvl_wait
        begin
          yield
        ensure
          tell(followers, began, waited) { |client, time, wait| client.sent(commands, time, wait) }
        end
      end

      # redis-client: all drivers include this, under clients, pools and clusters.
      module Connection
        def call(command, *, **)
          Redis.running.empty? ? super : Redis.sent([command]) { super }
        end

        def call_pipelined(commands, *, **)
          Redis.running.empty? ? super : Redis.sent(commands) { super }
        end
      end

      # redis 4: single commands and pipelines alike.
      module Client4
        def process(commands)
          Redis.running.empty? ? super : Redis.sent(commands) { super }
        end
      end

      hook "RedisClient::ConnectionMixin", Connection
      hook "Redis::Client", Client4

      def initialize
        super
        @total = {}
        @commands = {}
      end

      def sent(commands, time, wait)
        shares = [time / commands.size, wait / commands.size]
        commands.each do |command|
          count(@total, *shares)
          count(@commands[name(command)] ||= {}, *shares)
        end
      end

      def report
        @commands.empty? ? {} : { **@total, "commands" => @commands }
      end

      private

      def name(command)
        first = command.is_a?(Array) ? command.first : command
        first = first.first if first.is_a?(Array) # as ["CLIENT", "SETNAME"] in redis 4
        first.to_s.downcase
      end
    end
  end
end
