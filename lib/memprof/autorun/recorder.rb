# frozen_string_literal: true

require_relative "../api"
require_relative "../after_fork"
require_relative "../clock"
require_relative "../stderr"
require_relative "notice"
require_relative "settings"

module Memprof
  # Tracks the process it is loaded into, from load to end.
  module Autorun
    def self.start(env)
      settings = Settings.from_env(env)
      @recorder = (settings.tracing ? tracing : Recorder).new(settings)
      @recorder.start
      AfterFork.register(self)
    end

    def self.tracing
      require_relative "../trace/recorder"
      Memprof::Trace::Recorder
    end
    private_class_method :tracing

    class << self
      def after_fork = @recorder.after_fork
      def booted = @recorder&.booted || false
      def before_daemon = @recorder.before_daemon
      def after_daemon = @recorder.after_daemon
    end

    # Tracks one process and writes its reports. Errors here never reach the program: they become a warning on
    # stderr.
    class Recorder
      LIB = File.expand_path("../..", __dir__)
      NOT_BOOTED = Notice::NOT_BOOTED
      # Maximum seconds that a signal waits for a forked child to know that it is one.
      SETTLED = 1
      private_constant :LIB, :NOT_BOOTED, :SETTLED

      def initialize(settings)
        @settings = settings
        @pid = Process.pid
        @main = Process.ppid == settings.run_parent
        @writing = Mutex.new
        @serial = 0
        @reports = []
        @notice = Notice.new(settings.run_directory, settings.run_parent)
      end

      def start
        # Registered before the program's own at_exit blocks, so it runs after them: their allocations count.
        at_exit { finish }
        post
        trap_signal if @settings.signal
        @settings.after_boot ? await_boot : open_session
      end

      # Called when the program has booted. True if this was waiting for it.
      def booted = @boot&.finish || false

      # In a forked child: from here on only the child's own allocations count.
      def after_fork
        guard("process #{Process.pid} is not tracked") do
          @main = false
          @writing = Mutex.new # its owner may be a thread that the child does not have
          @serial = 0
          @reports = []
          @allocated = nil
          @notice.forked = true
          post
          @session&.close
          # A child that has not booted continues to wait.
          open_session if @session || !@settings.after_boot
          @pid = Process.pid
        end
      end

      # In a process about to continue under another id. Posted first, as `memprof run` may look before the
      # change.
      def before_daemon = guard("no report") { post("moved") }

      def after_daemon
        guard("no report") do
          @main = false
          @notice.follow(@pid)
          @pid = Process.pid
          post
        end
      end

      private

      def await_boot
        require_relative "boot_end"
        @boot = BootEnd.new { guard("process #{Process.pid} is not tracked") { open_session } }
        @boot.wait
      end

      def open_session
        @session = Session.prepare(sample: @settings.sample, stack: @settings.stack, strings: strings?)
        @session.open
        @session.watch_peak if @settings.peak
      end

      # The other formats do not show string values.
      def strings? = %i[json memory_profiler].include?(@settings.format)

      def trap_signal
        previous = trap(@settings.signal) do |number|
          # A handler may not take a lock, and the program's main thread may be inside anything. A thread
          # created here avoids both, and until the signal comes the program has no extra thread or pipe.
          Thread.new { on_signal }
          previous.call(number) if previous.respond_to?(:call)
        end
      end

      def on_signal
        guard("no report") do
          settle
          raise Error, NOT_BOOTED unless @session

          @writing.synchronize do
            Native.quiet { Stderr.warn("process #{Process.pid}, report #{@serial += 1}: #{write(@serial)}") }
            post
          end
        end
      end

      # The signal may arrive while a child is forked, before after_fork has run: the state is still the
      # parent's, including its report's name.
      def settle
        deadline = Clock.now + SETTLED
        sleep(0.001) until @pid == Process.pid || Clock.now > deadline
      end

      def finish
        guard("no report of process #{Process.pid}") do
          # `memprof run` reports this itself, if no other process of the command has a report.
          raise Error, NOT_BOOTED if @session.nil? && @settings.after_boot && @settings.run_directory.nil?
          next unless @session

          ignore_repeated_signal
          @session.finish
          path = @writing.synchronize { write }
          Stderr.warn("process #{Process.pid}, report: #{path}") unless @settings.run_directory
        end
        # Even without a report: the reason has been printed.
        guard("cannot report to memprof run that process #{Process.pid} has ended") { post("ended") }
      end

      # Ignores a repeat of the signal that ended the program: `timeout` sends TERM to memprof, which passes
      # it on, and to the group of both. Ctrl-C ends the report.
      def ignore_repeated_signal
        trap($!.signo, "IGNORE") if $!.is_a?(SignalException) && !$!.is_a?(Interrupt)
      end

      def write(serial = nil)
        # Bundler may have cleaned the load path, and the report loads its formats on demand.
        $LOAD_PATH.push(LIB) unless $LOAD_PATH.include?(LIB)
        path = @settings.path(Process.pid, main: @main, serial: serial)
        report = build_report
        render(report, path)
        @reports << path
        @allocated = report.total_allocated_memsize
        path
      end

      def build_report
        @session.collect
        # Nil if the VM's own objects are counted but not listed.
        internal = @settings.no_internal ? false : @settings.internal || nil
        options = { top: @settings.limit, allow_files: @settings.allow_files,
                    ignore_files: @settings.ignore_files, trace: @settings.trace, internal: internal }
        @session.report(**options.compact)
      end

      def render(report, path)
        color = @settings.color == :always || (@settings.color == :main && @main)
        if @settings.format == :memory_profiler
          report.pretty_print(to_file: path, color_output: color, scale_bytes: @settings.scale_bytes)
        else
          report.write(path, format: @settings.format, value: @settings.value, color: color)
        end
      end

      def post(state = nil)
        @notice.post(state, allocated: @allocated, reports: @reports.uniq,
          waiting: @settings.after_boot && @session.nil?)
      end

      # Includes SignalException: an impatient Ctrl-C ends the report, but keeps the program's exit status.
      def guard(consequence)
        yield
      rescue Exception => e # rubocop:disable Lint/RescueException
        message = e.message.lines.first.to_s.chomp
        Stderr.warn("#{consequence}: #{e.is_a?(Error) ? message : "#{message} (#{e.class})"}")
      end
    end
  end
end
