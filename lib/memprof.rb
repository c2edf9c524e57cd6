# frozen_string_literal: true

require "memprof/version"
require "memprof/errors"
require "memprof/native"
require "memprof/support"
require "memprof/session"
# Not later, when they are needed: a constant defined then would empty the inline caches of the program that
# is tracked.
require "memprof/output"
require "memprof/report"

# Tells which lines of a Ruby program create objects, and which of those objects stay.
#
# @example Objects that a block made and that live at its end
#   Memprof.track { 12.times { "abc" } }
#
# @example What a block allocates and what it retains, in memory_profiler's shape
#   report = Memprof.report { @cache = Array.new(100) { "abc" } }
#   report.pretty_print
#
# @example What grows from run to run
#   puts Memprof.growth { (@log ||= []) << "line" }
module Memprof
  autoload :Growth, "memprof/growth"
  autoload :Middleware, "memprof/middleware"

  private_constant :Native, :Support

  class << self
    # Tracks the objects of the whole process from now on.
    #
    # @param sample [Integer, nil] record one object in so many, on average, and scale counts and bytes up
    # @param stack [Integer] frames to keep of each object's call stack
    # @return [Boolean] true, or false if objects were tracked already (whose options stay)
    # @raise [ArgumentError] if an option is impossible
    # @raise [Unsupported] if this Ruby can't be tracked
    # @example
    #   Memprof.start
    #   @kept = Array.new(3) { "abc".dup }
    #   Memprof.stats
    #   Memprof.stop
    def start(sample: nil, stack: 1)
      return false if running?

      @session = Session.open(sample: sample, stack: stack)
      true
    end

    # Stops tracking and forgets what was seen. Inside {track}, it ends that block's tracking.
    #
    # @return [Boolean] true, or false if nothing was tracked
    # @example
    #   Memprof.start
    #   Memprof.stop #=> true
    #   Memprof.stop #=> false
    def stop
      session = @session
      return false if session.nil? || session.closed?

      session.close
      @session = nil
      true
    end

    # @return [Boolean] whether objects are tracked, by {start} or {track}
    # @example
    #   Memprof.track { Memprof.running? } #=> true
    def running?
      session = @session
      !session.nil? && !session.closed?
    end

    # Writes the live tracked objects as lines `"%7d file:line:Class"`, most first, ties by place.
    #
    # @param path_or_io [String, Pathname, IO, nil] a file to replace, or an IO; standard output if nil
    # @return [nil]
    # @raise [NotRunning] if nothing is tracked
    # @raise [Error] if the file can't be written
    # @example
    #   Memprof.start
    #   10.times { $last = Object.new }
    #   Memprof.stats      # 10 objects of this line
    #   GC.start
    #   Memprof.stats      # 1 object
    #   Memprof.stop
    def stats(path_or_io = nil)
      write_stats(session, path_or_io, caller: caller_locations(1, 1)&.first)
    end

    # As {stats}, and then forgets these objects; tracking goes on.
    #
    # @param path_or_io (see #stats)
    # @return [nil]
    # @raise (see #stats)
    # @example
    #   Memprof.start
    #   Memprof.stats!
    #   Memprof.stop
    def stats!(path_or_io = nil)
      current = session
      write_stats(current, path_or_io, caller: caller_locations(1, 1)&.first)
      current.clear
      nil
    end

    # Tracks the objects that a block makes, and writes those that live at its end as {stats} does. Always
    # stops, also if the block raises. Inside another {track}, or after {start}, it shows its own block's
    # objects and leaves the outer tracking as it was.
    #
    # @param path_or_io (see #stats)
    # @param scope [Symbol] `:process`, or `:thread` for the objects of the calling thread and of those it
    #   starts
    # @param sample (see #start)
    # @param stack (see #start)
    # @yield the code to look at
    # @return [Object] the block's value
    # @raise [ArgumentError] without a block, or if an option is impossible
    # @raise [Error] if the file can't be written
    # @example
    #   Memprof.track { 12.times { "abc" } }
    def track(path_or_io = nil, scope: :process, sample: nil, stack: 1)
      raise ArgumentError, "block required" unless block_given?

      outermost = scope == :process && !running?
      session = Session.open(scope: scope, sample: sample, stack: stack)
      @session = session if outermost
      begin
        value = yield
        session.finish
        # Stopped inside the block: nothing was tracked in the end, so there is nothing to show.
        write_stats(session, path_or_io) unless session.closed?
        value
      ensure
        session.close
        @session = nil if @session.equal?(session)
      end
    end

    # Runs a block and reports what it allocated and what of that it retained. GC stays on.
    #
    # @param scope (see #track)
    # @param sample (see #start)
    # @param stack (see #start)
    # @param filters [Hash] `top:`, `allow_files:`, `ignore_files:`, `trace:`, `internal:`, see
    #   {Report#initialize}
    # @yield the code to look at
    # @return [Report]
    # @raise [ArgumentError] without a block, or if an option is impossible
    # @example
    #   report = Memprof.report(internal: false) { Array.new(10) { Object.new } }
    #   report.total_allocated # => 11
    #   puts report
    def report(scope: :process, sample: nil, stack: 1, **filters)
      raise ArgumentError, "block required" unless block_given?

      Report.check_filters(**filters)
      session = Session.open(scope: scope, sample: sample, stack: stack, strings: true)
      begin
        yield
        session.finish
        session.collect
        session.report(**filters)
      ensure
        session.close
      end
    end

    # Runs a block over and over, and reports the sites whose live objects grow from run to run.
    #
    # @param times [Integer] runs that are looked at
    # @param warmup [Integer] runs before these, to fill caches
    # @yield the code to look at
    # @return [Growth]
    # @raise [ArgumentError] without a block, or if a number is impossible
    # @example
    #   log = []
    #   puts Memprof.growth { log << "line".dup }
    def growth(times: 20, warmup: 3, &block)
      Growth.measure(times: times, warmup: warmup, &block)
    end

    private

    def session
      raise NotRunning, "objects are not tracked: call Memprof.start first" unless running?

      @session
    end

    def write_stats(session, path_or_io, caller: nil)
      Native.quiet do
        lines = session.stats_lines(caller: caller)
        text = lines.empty? ? "" : "#{lines.join("\n")}\n"
        Output.write(path_or_io || $stdout, text)
      end
      nil
    end
  end
end
