# frozen_string_literal: true

require_relative "client"

module Memprof
  module Tracers
    # `redis`: commands by name, through the gems redis-client (and so redis 5) and redis 4. Counts everything
    # sent over the connection, including the client's own commands; commands of a pipeline share its time.
    class Redis < Client
      # Host and port, or the path of a socket; nil if unknown.
      def self.server(through)
        config = through.respond_to?(:host) ? through : through.instance_variable_get(:@config)
        path = config.path if config.respond_to?(:path)
        return path.to_s if path
        return unless config.respond_to?(:host) && config.host

        "#{config.host}:#{config.port}"
      rescue StandardError
        nil
      end

      # redis-client: all drivers include this, under clients, pools and clusters.
      module Connection
        def call(command, *, **)
          Redis.running.empty? ? super : Redis.measure([command], self) { super }
        end

        def call_pipelined(commands, *, **)
          Redis.running.empty? ? super : Redis.measure(commands, self) { super }
        end
      end

      # redis 4: single commands and pipelines alike.
      module Client4
        def process(commands)
          Redis.running.empty? ? super : Redis.measure(commands, self) { super }
        end
      end

      hook "RedisClient::ConnectionMixin", Connection
      hook "Redis::Client", Client4

      def initialize
        super
        @total = {}
        @commands = {}
        @servers = {}
      end

      def measured(time, wait, commands, through)
        server = Redis.server(through)
        shares = [time / commands.size, wait / commands.size]
        commands.each do |command|
          count(@total, *shares)
          count(@commands[name(command)] ||= {}, *shares)
          count(@servers[server] ||= {}, *shares) if server
        end
      end

      def report = @commands.empty? ? {} : { **@total, "commands" => @commands, "servers" => @servers }

      private

      def name(command)
        first = command.is_a?(Array) ? command.first : command
        first = first.first if first.is_a?(Array) # as ["CLIENT", "SETNAME"] in redis 4
        first.to_s.downcase
      end
    end
  end
end
