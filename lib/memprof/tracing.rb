# frozen_string_literal: true

require_relative "loading"

# Traces of blocks and requests.
module Memprof
  class << self
    # Runs a block and reports what it did, one key for each tracer ({Tracers.names}): objects and
    # collections, system calls, malloc, SQL, caches, HTTP. The report is written however the block ends.
    # Traces may be nested and run side by side.
    #
    # @param path_or_io [String, Pathname, IO, nil] a file, to which the report is added as a line (mode 0600
    #   if it is made), or an IO; standard output if nil. A terminal gets a table for people without what is
    #   empty, all else JSON
    # @param scope [Symbol] `:thread` for what the calling thread does, `:process` for what all threads do
    # @param tracers [Array<Symbol>, Symbol, nil] those that are wanted; nil for all
    # @param except [Array<Symbol>, Symbol, nil] those that are not wanted, as `:sql`
    # @param lines [Integer, false, nil] list so many lines that allocated most objects, 1 to 1000, in the
    #   report of the tracer `objects`: each object is tracked for that, which costs more than to count it.
    #   nil: as many as the variable MEMPROF_TRACE_LINES says, or none
    # @yield the code to look at
    # @return [Object] the block's value
    # @raise [ArgumentError] without a block, or if scope or tracers are unknown, or lines: is impossible
    # @raise [Unsupported] if a tracer that was named can't work with this Ruby
    # @raise [Error] if the file can't be written
    # @example
    #   Memprof.trace(tracers: %i[objects gc]) { 10.times { Object.new } }
    # @example To a file, with all that the process does
    #   Memprof.trace("trace.json", scope: :process) { Thread.new { "abc".dup }.join }
    # @example The lines that allocate most
    #   Memprof.trace(tracers: :objects, lines: 3) { Array.new(10) { "abc".dup } }
    def trace(path_or_io = nil, scope: :thread, tracers: nil, except: nil, lines: nil, &block)
      raise ArgumentError, "block required" unless block

      prepare(:Trace)
      journal = Trace::Journal.of(path_or_io)
      begin
        trace = Trace.new(scope, Tracers.without(tracers, except), lines: lines)
        began = Clock.now
        Trace.run(trace, ->(report, _) { journal.write(report, Clock.now - began) }, &block)
      ensure
        journal.close
      end
    end

    # As {trace}, for a request of a web application: with when it came and how long it took in all,
    # controller and action (of Rails), parts of the Rack env, and the response's code. Written to
    # {trace_filename}, or to standard output.
    #
    # @param env [Hash] the Rack environment
    # @param scope (see #trace)
    # @param tracers (see #trace)
    # @param except (see #trace)
    # @param lines (see #trace)
    # @yield handles the request
    # @yieldreturn [Array, Object] a Rack response, or anything else
    # @return [Object] the block's value
    # @raise (see #trace)
    # @example
    #   env = { "REQUEST_METHOD" => "GET", "PATH_INFO" => "/home" }
    #   Memprof.trace_request(env) { [200, {}, ["hello"]] }
    def trace_request(env, scope: :thread, tracers: nil, except: nil, lines: nil, &block)
      raise ArgumentError, "block required" unless block

      prepare(:Trace)
      journal = @trace_journal || Trace::Journal.new(nil)
      return yield if journal.full?

      Trace::Request.new(env, journal)
        .trace(Trace.new(scope, Tracers.without(tracers, except), lines: lines), &block)
    end

    # @return [String, nil] the file that {trace_request} adds to
    # @example
    #   Memprof.trace_filename # => nil
    def trace_filename = @trace_journal&.path

    # Has {trace_request} add a line for each request to a file of any size: {trace_to} without limits.
    #
    # @param path [String, Pathname, nil] nil closes the file
    # @return [String, Pathname, nil] path
    # @raise (see #trace_to)
    # @example
    #   Memprof.trace_filename = "requests.json"
    #   Memprof.trace_request({ "PATH_INFO" => "/home" }) { [200, {}, []] }
    #   Memprof.trace_filename = nil
    def trace_filename=(path)
      trace_to(path)
    end

    # Has {trace_request}, {Tracer} and {Filter} add a line for each request to a file. The file is opened at
    # once, and made with mode 0600 if it is not there.
    #
    # @param path [String, Pathname, nil] nil closes the file
    # @param max_size [Integer, nil] bytes that the file may have; nil for no limit
    # @param when_full [Symbol] `:rotate` renames a full file to `PATH.1`, replacing that; `:stop` traces no
    #   more requests until the file is moved away
    # @return [void]
    # @raise [Error] if it can't be opened; then the file that was open stays so
    # @raise [ArgumentError] if it is no path, or a limit is impossible
    # @example No more than 200 MB in two files
    #   Memprof.trace_to("requests.json", max_size: 100_000_000)
    #   Memprof.trace_request({ "PATH_INFO" => "/home" }) { [200, {}, []] }
    #   Memprof.trace_to(nil)
    def trace_to(path, max_size: nil, when_full: :rotate)
      path = path.to_path if path.respond_to?(:to_path)
      unless path.nil? || path.is_a?(String)
        raise ArgumentError, "a path is needed, not #{path.inspect}"
      end

      prepare(:Trace)
      limits = Trace::JournalFile.limits(max_size: max_size, when_full: when_full)
      journal = Trace::Journal.file(path, **limits) if path
      @trace_journal&.close
      @trace_journal = journal
    end
  end
end
