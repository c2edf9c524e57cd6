# frozen_string_literal: true

require_relative "server"

module Servers
  # Redis, on a port of the loopback, without files.
  class Redis < Server
    PROGRAMS = %w[redis-server].freeze

    # (see Memcached#environment)
    def environment
      { "REDIS_PORT" => @port.to_s }
    end

    private

    def prepare
      @port = free_port
    end

    def command
      ["redis-server", "--bind", "127.0.0.1", "--port", @port.to_s, "--save", "", "--appendonly", "no",
        "--dir", directory]
    end

    def ready?
      answer("INFO server\r\n", "127.0.0.1", @port)&.include?("\nprocess_id:#{pid}\r") # and no other suite's
    end
  end
end
