# frozen_string_literal: true

require_relative "server"

module Servers
  # MariaDB, at a socket in its directory, with a database "test" that anybody may do anything in.
  class MariaDB < Server
    PROGRAMS = %w[mariadbd].freeze

    # (see Memcached#environment)
    def environment
      { "MYSQL_SOCKET" => socket, "MYSQL_USER" => "root" }
    end

    private

    # Without the database "mysql", which knows users, it needs no preparation by another program.
    def prepare
      directories = [data, File.join(data, "test")]
      FileUtils.mkdir(directories)
      FileUtils.chown(user, nil, directories) if Process.uid.zero?
    end

    def command
      ["mariadbd", "--no-defaults", "--datadir=#{data}", "--socket=#{socket}", "--skip-networking",
        "--skip-grant-tables",
        "--pid-file=#{File.join(directory, "pid")}", "--skip-log-bin", "--innodb-buffer-pool-size=8M",
        "--innodb-flush-log-at-trx-commit=0"]
    end

    # It greets who comes, with its protocol's version in the fifth byte.
    def ready?
      File.socket?(socket) && answer(nil, socket)&.getbyte(4) == 10
    end

    def data
      File.join(directory, "data")
    end

    def socket
      File.join(directory, "socket")
    end
  end
end
