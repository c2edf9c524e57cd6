# frozen_string_literal: true

require_relative "server"

module Servers
  # PostgreSQL, at a socket in its directory. It writes each statement to its log, with the name that the
  # client has given itself.
  class Postgres < Server
    PROGRAMS = %w[initdb postgres].freeze
    SETTINGS = { listen_addresses: "", fsync: "off", shared_buffers: "8MB", max_connections: 20,
                 log_statement: "all", log_line_prefix: "[%a] ", logging_collector: "off" }.freeze

    # Debian has a directory for each version; the newest comes first.
    def self.places
      Dir["/usr/lib/postgresql/*/bin"].sort_by { |path| -path[/\d+/].to_i } + super
    end

    # (see Memcached#environment)
    def environment
      { "PGHOST" => directory, "PGUSER" => "memprof", "PGDATABASE" => "postgres", "PG_LOG" => @log }
    end

    private

    def prepare
      run("initdb", "--pgdata=#{data}", "--username=memprof", "--auth=trust", "--no-sync", "--encoding=UTF8",
        "--locale=C")
    end

    def command
      settings = SETTINGS.flat_map { |name, value| ["-c", "#{name}=#{value}"] }
      ["postgres", "-D", data, "-k", directory, *settings]
    end

    # It answers who asks for TLS with a letter; it is of use only when it says so in its log.
    def ready?
      log.include?("ready to accept connections")
    end

    def data
      File.join(directory, "data")
    end
  end
end
