# frozen_string_literal: true

require_relative "server"

module Servers
  # memcached, on a port of the loopback.
  class Memcached < Server
    PROGRAMS = %w[memcached].freeze

    # How programs find it, as environment variables.
    def environment
      { "MEMCACHED_PORT" => @port.to_s, "MEMCACHED_SERVER" => "127.0.0.1:#{@port}" }
    end

    private

    def prepare
      @port = free_port
    end

    def command
      ["memcached", "--listen=127.0.0.1", "--port=#{@port}", "--memory-limit=16", "--threads=1"]
    end

    def ready?
      answer("stats\r\n", "127.0.0.1", @port)&.start_with?("STAT pid #{pid}\r") # and no other suite's
    end
  end
end
