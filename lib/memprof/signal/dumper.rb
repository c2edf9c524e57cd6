# frozen_string_literal: true

require_relative "../dump"

module Memprof
  module OnSignal
    # Writes the dumps of a process that are requested from outside: one at a time, in a forked child, with a
    # thread that waits for the child.
    class Dumper
      def initialize(settings)
        @settings = settings
      end

      def options = @settings.options

      # Starts a dump to a file, unless one is being written.
      def start
        return busy if writing?

        @warned = false
        path = @path = free_path(options.ending)
        run(path, method(:warn)) do
          Dump::InProgress.sweep(File.dirname(path))
          Memprof.dump_all(path, fork: true, format: options.format, values: options.values,
            compression: options.compression)
        end
      end

      # Starts a dump to a pipe or a socket, and closes it; false if one is being written. The block gets the
      # outcome.
      def stream(io, options, &block)
        return false if writing?

        @path = nil
        @passed = [io.fileno, *identity(io)]
        run(io, block) { Dump.stream(io, options) }
        true
      end

      # In a forked child: as long as this process has the pipe open, too, its reader would wait for EOF. The
      # parent's thread may be about to close it: then the object is closed, but the descriptor is still open.
      def abandon
        descriptor, *identity = @passed
        return unless descriptor

        io = IO.for_fd(descriptor, "wb", autoclose: false)
        return unless identity(io) == identity

        io.autoclose = true
        io.close
      rescue SystemCallError
        nil # it is closed
      end

      private

      # Distinguishes a file from a later one with the same descriptor.
      def identity(io)
        stat = io.stat
        [stat.dev, stat.ino]
      end

      # False once the file has its name or the dump has ended: its thread only has to report it.
      def writing? = @target && @thread&.alive? && !(@path && Native.taken?(@path))

      def busy
        return if @warned

        @warned = true
        OnSignal.warn_user("process #{Process.pid}: a dump is being written already#{": #{@path}" if @path}")
      end

      def run(target, answer, &work)
        @target = target
        @thread = OnSignal.thread("memprof dump") { Native.quiet { write(answer, &work) } }
      rescue ThreadError
        @target = nil
        raise
      end

      # The client always gets an answer, even if this thread is killed. Then the child is killed, too, and
      # its file is removed (Dump::Child, Dump::InProgress).
      def write(answer)
        outcome = Error.new("the thread that waited for it ended")
        outcome = yield
      rescue StandardError => e
        outcome = e
      ensure
        @target = nil
        answer.call(outcome)
      end

      def warn(outcome)
        return unless outcome.is_a?(Exception)

        OnSignal.warn_user("process #{Process.pid}: no dump: #{outcome.message.lines.first.to_s.chomp}")
      end

      def free_path(ending)
        raise Error, "no directory for stored dumps: set #{Settings::DIRECTORY}" unless @settings.directory

        base = File.join(@settings.directory, "memprof-#{Process.pid}-#{Time.now.to_i}")
        names = [base].each + (1..).lazy.map { |number| "#{base}-#{number}" }
        names.map { |name| "#{name}#{ending}" }.find { |path| free?(path) }
      end

      def free?(path) = [path, path + Dump::InProgress::SUFFIX].none? { |name| Native.taken?(name) }
    end
  end
end
