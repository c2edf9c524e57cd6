# frozen_string_literal: true

require_relative "after_fork"
require_relative "errors"
require_relative "native"
require_relative "tracers"
require_relative "trace/after_reply"
require_relative "trace/combined"
require_relative "trace/journal"
require_relative "trace/lines"
require_relative "trace/request"
require_relative "trace/uncounted"

module Memprof
  # One traced block: Memprof.trace. Traces may be nested, run concurrently on many threads, and end in any
  # order; each counts the work of the thread that began it, or that of the process.
  class Trace
    SCOPES = %i[thread process].freeze
    NONE = {}.freeze
    private_constant :SCOPES, :NONE

    # Runs a block in a trace, and delivers the report, however the block ended. If the block returns in the
    # child of a fork, nothing is delivered there: the report is the parent's.
    #
    # An interrupt (`Thread#kill`, `Timeout`) may arrive in the first `ensure`. It can only be one, so the
    # second finishes the rest.
    def self.run(trace, deliver)
      value = nil
      returned = false
      begin
        trace.start
        value = yield
        returned = true
        value
      ensure
        report = trace.finish
        deliver_report(report, returned ? [value] : nil, deliver) if report
      end
    ensure
      trace.finish
    end

    # A problem with the report must not mask the program's own exception.
    def self.deliver_report(report, returned, deliver)
      deliver.call(report, returned)
    rescue Memprof::Error, SystemCallError => e
      raise if returned

      warn "memprof: the trace is lost: #{e.message}"
    end
    private_class_method :deliver_report

    # The traces are the parent's, and their hooks must not slow down the child. (After `Process.daemon` they
    # remain until the process traces something itself, and count for no trace.)
    def self.after_fork
      Native::Trace.after_fork
      [Tracers, Tracers::Hooks, Tracers::Subscriber, AfterReply, Lines].each(&:after_fork)
    end
    AfterFork.register(self)

    attr_reader :plan

    # The number of allocating lines to list, see Lines; nil for none.
    attr_writer :lines

    # A finished trace may be started again.
    def initialize(scope = :thread, tracers = nil, lines: nil)
      @process = scope == :process
      unless @process || scope == :thread
        raise ArgumentError, "unknown scope #{scope.inspect}; expected one of: #{SCOPES.join(", ")}"
      end

      @plan = Tracers.plan(tracers)
      @lines = Lines.wanted(lines, @plan)
      @native = Native::Trace.new(@plan.choice, @process)
      @subscriber = Tracers::Subscriber.new(@plan.clients, @process) unless @plan.clients.empty?
      @own = @failed = NONE
      @started = []
      @tracked = nil
    end

    # For a thread's trace that is started for many requests, one after the other; see
    # Tracers::Subscriber#subscribe_permanently.
    def subscribe_permanently = @subscriber&.subscribe_permanently

    # Warns once why calls are not counted here.
    def self.warn_of(error)
      warn "memprof: #{error.message}; traces go without" unless @warned
      @warned = true
    end

    # Begins to count: objects last, so that ours are not among them.
    def start
      @uncounted = nil
      @pid = Process.pid
      @failed = NONE
      Support.detect_ractors
      begin_own unless @plan.own.empty?
      begin_one(@subscriber) if @subscriber
      return @uncounted = Uncounted.new(@plan) if !@process && Uncounted.needed?

      track if @lines
      begin
        @native.begin
      rescue Unsupported => e
        begin_without_calls(e)
      end
    end

    # Stops counting, in the opposite order. A second call does nothing.
    def finish
      counted = @uncounted || @native.finish
      @uncounted = nil
      @tracked&.finish
      finish_started
      return unless counted && @pid == Process.pid

      report(counted)
    ensure
      @tracked&.close
      @tracked = nil
    end

    private

    # Where library calls can't be counted, the VM still reports much.
    def begin_without_calls(error)
      raise error if @plan.asked

      self.class.warn_of(error)
      @native = Native::Trace.new(@plan.without_calls, @process)
      @native.begin
    end

    def track
      @tracked = Lines.new(@lines, @process)
      @tracked.start
    end

    # If a tracer of the program raises, it is reported as failed: the program and the other tracers continue.
    def begin_own
      @own = {}
      @plan.own.each do |name, factory|
        guard(name) { begin_one(@own[name] = factory.new) }
        @own[name] ||= nil # it appears in the report
      end
    end

    # Defers interrupts (`Timeout`): they are not failures of the tracer.
    def guard(name)
      Thread.handle_interrupt(StandardError => :never, ScriptError => :never) do
        yield
      rescue StandardError, ScriptError => e
        fail_with(name, e)
      end
    end

    def begin_one(tracer)
      # Registered first: a tracer that fails while starting is finished, too.
      @started << tracer
      tracer.start
    end

    def finish_started
      while (tracer = @started.last)
        name, = @own.find { |_, own| own.equal?(tracer) }
        name ? guard(name) { tracer.finish } : tracer.finish
        @started.pop # not before: after an interrupt in between this starts over
      end
    end

    # The first exception is the relevant one.
    def fail_with(name, error)
      @failed = { name => message_of(error), **@failed }
    end

    # Most requests use no client that is traced in Ruby: then the extension's counts are the report.
    def report(counted)
      clients = @subscriber&.reports || NONE
      return counted if clients.empty? && @own.empty? && @tracked.nil?

      clients = clients.to_h { |name, numbers| [name.name, Combined.plain(numbers)] }
      clients[Lines::TRACER] = { "lines" => @tracked.report } if @tracked
      Combined.new(counted, clients, @own.to_h { |name, tracer| [name.name, own_report(name, tracer)] })
    end

    def own_report(name, tracer)
      report = nil
      guard(name) { report = Combined.plain(tracer.report || {}) } unless @failed.key?(name)
      report || { "error" => @failed[name] }
    end

    def message_of(error) = Printable.line("#{error.message.lines.first.to_s.chomp} (#{error.class})")
  end
end
