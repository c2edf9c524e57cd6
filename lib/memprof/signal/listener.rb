# frozen_string_literal: true

require "io/wait"
require_relative "dumper"
require_relative "settings"
require_relative "../after_fork"
require_relative "../control/server"
require_relative "../stderr"

module Memprof
  # The part of `memprof/signal` that runs in the process which loads it.
  module OnSignal
    class << self
      attr_reader :listener

      # Starts tracking if configured, and waits for the signal and for requests. A failure here becomes a
      # warning: a program that can't be inspected must still run. A second call does nothing.
      def start(env)
        return if @listener

        settings = Settings.new(env)
        settings.problems.each { |problem| warn_user(problem) }
        track(settings)
        listener = @listener = Listener.new(settings)
        listener.start
        Trap.set(settings.signal) { listener.wake } if settings.signal
        AfterFork.register(self)
        at_exit { listener.close }
      end

      def after_fork = @listener.after_fork
      alias_method :after_daemon, :after_fork
      def before_daemon = @listener.before_daemon

      def warn_user(message) = Stderr.warn(message)

      private

      def track(settings)
        Memprof.start(sample: settings.sample) if settings.track?
      rescue Error => e
        warn_user("objects are not tracked, dumps are without file and line: #{e.message}")
      end
    end

    # A thread that waits for the signal and for requests over the socket. Each process has its own: after a
    # fork, the child gets a new thread, pipe and socket.
    class Listener
      # Seconds before a forked child creates its socket: many children have exited or exec'ed by then.
      SOCKET_DELAY = 0.1
      private_constant :SOCKET_DELAY

      def initialize(settings)
        @settings = settings
      end

      def start(delay: 0)
        renew
        @thread = OnSignal.thread("memprof") { listen(delay) } unless @thread&.alive?
      rescue SystemCallError, ThreadError => e
        OnSignal.warn_user("process #{@pid} cannot wait for its signal: #{e.message}")
      end

      # Requests a dump. Safe in a signal handler: takes no lock.
      def wake
        start unless @pid == Process.pid && @thread&.alive? # a program may end threads that it does not know
        @writer.write_nonblock("!", exception: false)
      rescue SystemCallError, IOError, ThreadError => e
        OnSignal.warn_user("process #{Process.pid}: no dump: #{e.message}")
      end

      # In a process created by a fork.
      def after_fork
        # The signal may arrive anywhere in here, and its handler may do all this: so the parent's state is
        # captured in one step.
        inherited = [@pid, @server, @dumper, @reader, @writer]
        pid, server, dumper, *pipe = inherited
        return if pid == Process.pid

        start(delay: SOCKET_DELAY)
        server&.abandon
        dumper&.abandon
        pipe.each(&:close)
      rescue SystemCallError, IOError => e
        OnSignal.warn_user("process #{Process.pid} cannot wait for its signal: #{e.message}")
      end

      # In a process about to continue under another id.
      def before_daemon
        close
        @server = nil
      end

      # At process exit. The thread may be about to create the socket, whose file would be left behind.
      def close
        return unless @pid == Process.pid

        @opening.synchronize do
          @closed = true
          @server&.close
        end
      rescue ThreadError
        nil # a signal handler can't take a lock
      end

      private

      # Creates this process's own resources. No signal handler runs between the check and the assignments, as
      # nothing is called there.
      def renew
        pid = Process.pid
        return if @pid == pid

        reader, writer = IO.pipe
        dumper = Dumper.new(@settings)
        opening = Mutex.new
        if @pid == pid
          [reader, writer].each(&:close)
        else
          @pid = pid
          @reader = reader
          @writer = writer
          @dumper = dumper
          @opening = opening
          @server = nil
          @closed = false
        end
      end

      def listen(delay)
        @reader.wait_readable(delay)
        # A signal in the middle of a fork may have started two of these threads.
        @opening.synchronize do
          directory = @settings.directory unless @closed
          @server ||= Control::Server.open(directory, @dumper, sweep: delay.zero?) if directory
        end
        loop do
          ready, = IO.select([@reader, *@server&.sockets])
          next signalled if ready.include?(@reader)

          @server.serve(ready)
        end
      rescue IOError
        nil # closed: the process ends, or has become another one
      end

      # However many signals arrived, one dump is enough.
      def signalled
        return if @reader.read_nonblock(4096, exception: false) == :wait_readable

        Native.quiet { @dumper.start }
      rescue Error, ThreadError => e
        OnSignal.warn_user("process #{@pid}: no dump: #{e.message}")
      end
    end

    # A signal handler that also calls the previous one.
    #
    # A handler of C code, as rbtrace's, can neither be called nor restored: it keeps its signal.
    module Trap
      # Signals to take instead, if nothing uses them.
      SPARE = %w[USR2 USR1].freeze
      DEFAULTS = %w[DEFAULT SYSTEM_DEFAULT].freeze
      private_constant :SPARE, :DEFAULTS

      def self.set(signal, &wake)
        return take(signal, &wake) unless owner(signal) == "other"

        spare = SPARE.find { |name| take_free(name, &wake) }
        instead = "#{spare} requests a dump instead" if spare
        instead ||= "no signal requests a dump; `memprof dump` does"
        OnSignal.warn_user("signal #{signal} has a handler of other code: #{instead}; " \
                           "MEMPROF_SIGNAL selects another signal")
      rescue ArgumentError, SystemCallError => e
        OnSignal.warn_user("no dump on signal #{signal}: #{e.message}")
      end

      def self.owner(signal) = Native.signal_owner(::Signal.list.fetch(signal))

      def self.take(signal)
        previous = nil
        previous = ::Signal.trap(signal) do |number|
          yield
          chain(previous, number)
        end
      end

      # Ruby has its own handler for the default of some signals, and only the return value of trap shows
      # whether that was replaced.
      def self.take_free(signal, &wake)
        return false unless %w[default ruby].include?(owner(signal))

        previous = ::Signal.trap(signal, &wake)
        return true if DEFAULTS.include?(previous)

        ::Signal.trap(signal, previous)
        false
      end
      private_class_method :owner, :take, :take_free

      # Calls the previous handler. Names of Ruby's and the system's defaults have no code to call: for the
      # signals that may be chosen they ignore the signal or end the program, which a dump request must not
      # do.
      def self.chain(previous, number)
        case previous
        when "EXIT" then exit
        when String, nil then nil
        else previous.call(number)
        end
      end
    end

    # A thread of memprof's own: named, silent, and marked for puma as safe to fork.
    def self.thread(name, &block)
      Thread.new(&block).tap do |thread|
        thread.name = name
        thread.report_on_exception = false
        thread.thread_variable_set(:memprof, true)
        thread.thread_variable_set(:fork_safe, true)
      end
    end
  end
end
