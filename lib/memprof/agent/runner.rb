# frozen_string_literal: true

require_relative "../after_fork"
require_relative "../clock"
require_relative "../stderr"
require_relative "budget"
require_relative "evidence"
require_relative "interval"
require_relative "labels"
require_relative "ledger"
require_relative "limits"
require_relative "log"
require_relative "notifications"
require_relative "sampler"
require_relative "schedule"
require_relative "served"
require_relative "settings"

module Memprof
  module Agent
    # The agent of this process: a thread that ends intervals, looks at the limits, and calls subscribers.
    #
    # A child of a fork has an agent of its own, with no intervals yet. It starts a moment later, as many
    # children end or become another program at once.
    class Runner
      # Seconds before the agent of a forked child starts.
      SETTLE = 0.1
      # Maximum seconds that the end of the process waits for the last interval.
      EXIT_PATIENCE = 2
      STOP_PATIENCE = 30
      # Intervals that the control socket answers.
      STATE = 10
      PLAIN = [Numeric, String, Symbol, true, false, nil].freeze
      OFF = "MEMPROF_AGENT=off turns it off"
      LOCK = Mutex.new
      private_constant :SETTLE, :EXIT_PATIENCE, :STOP_PATIENCE, :STATE, :PLAIN, :OFF, :LOCK

      @current = nil

      class << self
        # See Agent.start. An `automatic` agent is replaced by one that the program starts.
        def start(given = {}, automatic: false)
          Support.check_ractor
          settings = Settings.new(given)
          LOCK.synchronize do
            return false if running? && (automatic || !@current.automatic)

            @current&.stop
            runner = new(settings, automatic: automatic)
            watch_process unless @watching
            @watching = true
            @current = runner
            runner.start
          end
        end

        def stop = LOCK.synchronize { running? && @current.stop }
        def running? = @current&.running? || false
        def intervals = @current&.intervals || []
        def leaks = @current&.leaks || []
        def settings = running? ? @current.settings.to_h : {}
        def labels = running? ? @current.labels : Labels.new.to_h

        # The agent as plain values, with its last intervals; objects among the settings by their class.
        def state
          plain = settings.transform_values do |value|
            PLAIN.any? { |kind| kind === value } ? value : value.class.name
          end
          { labels: labels, settings: plain, intervals: intervals.last(STATE).map(&:to_h),
            leaks: leaks.map(&:to_s) }
        end

        # A part of the agent has found a leak: publishes it, and logs it if the settings say so.
        def leak(leak) = @current&.leak(leak)

        # A failure in here must not become the program's.
        def after_fork = guard { @current&.after_fork }
        def before_daemon = guard { @current&.before_daemon }
        def after_daemon = guard { @current&.after_daemon }

        private

        def watch_process
          AfterFork.register(self)
          at_exit { guard { @current&.finish } }
        end

        def guard
          yield
        rescue StandardError => e
          Stderr.warn("the agent of process #{Process.pid} has failed: #{e.message} (#{e.class})")
        end
      end

      attr_reader :settings, :automatic, :intervals

      def initialize(settings, automatic: false, clock: Clock)
        @settings = settings
        @automatic = automatic
        @clock = clock
        @log = Log.new(settings[:logger])
        @labels = Labels.new(settings)
        renew
      end

      # Returns whether it runs.
      def start
        @settings.problems.each { |problem| @log.warn(problem) }
        return false unless sample

        @announced = false
        @thread = open_thread
        true
      rescue ThreadError => e
        Sampler.stop
        @log.warn("is off: #{e.message}")
        false
      end

      # Those of this service that are known on this host, fastest first.
      def leaks = @trends&.leaks || []

      def running? = @pid == Process.pid && !@ended && @thread&.alive? ? true : false
      def labels = @labels.to_h

      # Ends it, without a last interval. Returns true.
      def stop
        end_thread(STOP_PATIENCE)
        Sampler.stop
        close_trends
        @intervals = [].freeze
        @ended = true
      end

      # At the end of the process: there is a last interval, but not at any price.
      def finish
        return unless running? && @sampling

        @last = true
        end_thread(EXIT_PATIENCE)
      end

      # In a forked child.
      def after_fork
        return if @pid == Process.pid || @ended

        Sampler.stop
        @served.after_fork
        renew
        @announced = true
        @thread = open_thread(settle: SETTLE)
      end

      # In a process about to continue under another id: its threads do not continue.
      def before_daemon
        return unless running?

        @continue = true
        end_thread(STOP_PATIENCE)
        Sampler.stop
      end

      def after_daemon
        return unless @continue

        before = @intervals
        renew
        @intervals = before
        @thread = open_thread(settle: SETTLE)
      end

      def leak(leak)
        @log.warn(leak.to_s) if @settings[:leaks] == :log
        publish("leak", leak: leak)
      end

      private

      # The state of one process.
      def renew
        @pid = Process.pid
        @lock = Mutex.new
        @wake = ConditionVariable.new
        @thread = nil
        @intervals = [].freeze
        @trends = nil
        @stopping = @last = @ended = @continue = @sampling = false
        @ledger = Ledger.new
        @cgroup = Cgroup.new
        @limits = Limits.new(@settings, cgroup: @cgroup)
        @evidence = Evidence.new(@settings, limits: @limits, cgroup: @cgroup, ledger: @ledger)
        @budget = Budget.new(@settings[:budget])
        @served = Served.new(@settings, log: @log)
      end

      def sample
        @sampling = Sampler.start(**@settings.to_h.slice(:share, :stack, :budget))
        @log.warn("is off: the sampler is running already") unless @sampling
        @sampling
      rescue Error => e
        @log.warn("is off: #{e.message}")
        false
      end

      # Silent, of low priority, and marked for puma as safe to fork.
      def open_thread(settle: nil)
        body = -> do
          # Named by itself, too: a thread that begins renames the system's thread.
          Thread.current.name = Switch::THREAD
          run(settle)
        end
        Thread.new(&body).tap do |thread|
          thread.name = Switch::THREAD
          thread.report_on_exception = false
          thread.priority = -1
          thread.thread_variable_set(:memprof, true)
          thread.thread_variable_set(:fork_safe, true)
        end
      end

      def run(settle)
        return if settle && !settled(settle)

        @schedule = Schedule.new(@settings.to_h.slice(:interval, :check), clock: @clock)
        @cpu = thread_cpu
        @served.start
        tick until wait(@schedule.wait)
        end_interval if @last
        close_trends if @last
      rescue Error => e
        @log.warn("has switched itself off: #{e.message}")
      rescue StandardError, ScriptError, NoMemoryError => e
        @log.warn("has switched itself off after an internal error (please report it): " \
                  "#{first_line(e)} (#{e.class}, #{e.backtrace&.first})")
      ensure
        @served.stop
        unless @stopping
          @ended = true
          Sampler.stop
        end
      end

      # In a forked child: whether it still runs after a moment, and whether it may have an agent. Spring
      # makes a console or a task out of a child.
      def settled(seconds)
        return false if wait(seconds) || (@automatic && !Switch.on?)

        Native.quiet { sample }
      end

      # Waits for so many seconds. Returns whether the agent is to end.
      def wait(seconds)
        @lock.synchronize { @wake.wait(@lock, seconds) if seconds.positive? && !@stopping }
        @stopping
      end

      def end_thread(patience)
        thread = @thread
        @stopping = true
        return if thread.nil? || thread.equal?(Thread.current)

        thread.priority = Thread.current.priority # now somebody waits for it
        @lock.synchronize { @wake.broadcast }
        thread.join(patience)
      end

      def tick
        due = @schedule.due
        announce unless @announced
        end_interval if due.include?(:interval)
        check if due.include?(:check)
      end

      # Once it is known where to log, as Rails has no logger while it boots.
      def announce
        return unless @log.settled?

        @announced = true
        seconds = format("%g s", @settings[:interval])
        @log.info("profiles this process in intervals of #{seconds} (#{@labels.describe}); #{OFF}")
        problem = @limits.problem
        @log.warn(problem) if problem
      end

      def end_interval
        interval = Native.quiet { take_interval }
        @intervals = [*@intervals, interval].last(@settings[:intervals]).freeze
        publish("interval", interval: interval)
        Agent.subscriptions.each { |subscription| inform(subscription, interval) }
        look_for_leaks(interval)
        return unless @budget.exceeded?(interval)

        raise Error, "it used #{@budget} (budget: #{@settings[:budget]})"
      end

      def take_interval
        report, facts = Sampler.interval
        # Nor does it wait for the ledger: beside busy threads, each file that is read costs a turn.
        memory = @ledger.read unless @last
        facts = facts.slice(:started_at, :duration, :gc, :errors, :ages)
          .merge(cost: cost(facts[:cost]), memory: memory, rss: @limits.resident || memory&.rss)
        Interval.new(report: report, labels: labels, **facts)
      end

      # Adds the CPU time of this thread.
      def cost(sampler)
        before = @cpu
        @cpu = thread_cpu
        # With RUBY_MN_THREADS it may continue on another native thread, whose time is not comparable.
        sampler.merge(cpu: sampler.fetch(:cpu) + [@cpu - before, 0].max)
      end

      def look_for_leaks(interval)
        # The end of the process does not wait until that is loaded.
        return if @settings[:leaks] == :off || (@last && !@trends)

        @trends ||= Native.quiet { Trends.open(@settings) }
        Native.quiet { @trends.add(interval) }.each { |leak| leak(leak) }
      rescue StandardError, ScriptError => e
        failed(:trends, "the search for leaks", e)
      end

      # The process no longer counts as a worker.
      def close_trends
        @trends&.close
      rescue StandardError
        nil # its directory is gone
      end

      def inform(subscription, interval)
        subscription.call(interval)
      rescue StandardError, ScriptError => e
        failed(subscription, "a subscriber", e)
      end

      def publish(name, **payload)
        Notifications.publish(name, **payload)
      rescue StandardError, ScriptError => e
        failed(name, "a subscriber of #{name}.memprof", e)
      end

      def failed(key, what, error)
        @log.warn_once(key, "#{what} raised #{error.class}: #{first_line(error)}")
      end

      def first_line(error) = error.message.lines.first.to_s.chomp

      def check
        reason = @limits.reached or return
        end_interval
        @schedule.begin(:interval)
        outcome = Native.quiet { @evidence.write(reason, intervals: @intervals, labels: labels) }
        @log.warn("#{reason}: #{outcome}")
        publish("limit", reason: reason, paths: outcome.paths)
        begin
          @settings[:on_limit]&.call(outcome.paths)
        rescue StandardError, ScriptError => e
          failed(:on_limit, "on_limit", e)
        end
        @cpu = thread_cpu # evidence is no cost of every day
      end

      def thread_cpu = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID)
    end
  end
end
