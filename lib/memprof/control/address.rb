# frozen_string_literal: true

require "socket"

module Memprof
  module Control
    # The socket file.
    module Address
      # Maximum bytes of a Unix socket's path (sun_path without its terminating null byte).
      LONGEST = RUBY_PLATFORM.include?("linux") ? 107 : 103
      # Maximum number of clients in the queue.
      WAITING = 128
      private_constant :WAITING

      class << self
        def path(directory, pid) = File.join(directory, name(pid))

        def name(pid) = "memprof-#{pid}.sock"

        # Listens, mode 0600. Replaces a socket without a listener.
        def listen(path)
          raise Error, "#{path} is longer than a socket's path may be" if path.bytesize > LONGEST

          remove_stale(path)
          bind(path)
        rescue SystemCallError => e
          raise Error, "cannot create #{path}: #{Output.reason(e)}"
        end

        # Removes the sockets of killed processes.
        def sweep(directory)
          Dir.glob("memprof-*.sock", base: directory).first(200).each do |name|
            path = File.join(directory, name)
            File.unlink(path) if !running?(name[/\d+/].to_i) && File.owned?(path) && stale?(path)
          rescue SystemCallError
            nil # another user's, or gone
          end
        end

        private

        # The mode is set before the socket has a name (Linux): others cannot open it, not even for a moment.
        def bind(path)
          socket = Socket.new(:UNIX, :STREAM)
          mode = File.for_fd(socket.fileno, autoclose: false)
          begin
            mode.chmod(0o600)
          rescue SystemCallError
            nil # not supported here: only its owner is served anyway
          end
          socket.bind(Addrinfo.unix(path))
          File.chmod(0o600, path)
          socket.listen(WAITING)
          socket
        rescue SystemCallError
          socket&.close
          raise
        end

        def remove_stale(path)
          there = File.lstat(path)
          raise Error, "#{path} exists and is not a socket" unless there.socket?
          raise Error, "another process listens at #{path}" unless stale?(path)

          File.unlink(path)
        rescue Errno::ENOENT
          nil # the usual case
        end

        def stale?(path)
          return false unless File.lstat(path).socket?

          socket = Socket.new(:UNIX, :STREAM)
          socket.connect_nonblock(Addrinfo.unix(path))
          false
        rescue Errno::ECONNREFUSED
          true
        rescue IO::WaitWritable
          false # busy
        ensure
          socket&.close
        end

        # Another container with the same directory may use that id: hence the check of the socket.
        def running?(pid)
          Process.kill(0, pid)
          true
        rescue Errno::ESRCH
          false
        rescue SystemCallError
          true
        end
      end
    end
  end
end
