# frozen_string_literal: true

require_relative "loading"

# Traces of blocks and requests.
module Memprof
  class << self
    # Runs a block and reports its work, one key for each tracer ({Tracers.names}): objects and GC, system
    # calls, malloc, SQL, caches, HTTP. The report is written however the block ends. Traces may be nested and
    # concurrent.
    #
    # @param path_or_io [String, Pathname, IO, nil] a file, to which the report is appended as a line (created
    #   with mode 0600), or an IO; standard output if nil. A terminal gets a table for people without empty
    #   sections, everything else JSON
    # @param scope [Symbol] `:thread` to trace the calling thread, `:process` to trace all threads
    # @param tracers [Array<Symbol>, Symbol, nil] tracers to enable; nil for all
    # @param except [Array<Symbol>, Symbol, nil] tracers to disable, such as `:sql`
    # @param lines [Integer, false, nil] list so many lines that allocated most objects, 1 to 1000, in the
    #   report of the tracer `objects`: this tracks each object, which costs more than counting it. nil: the
    #   number in the variable MEMPROF_TRACE_LINES, or none
    # @yield the code to trace
    # @return [Object] the block's value
    # @raise [ArgumentError] without a block, or if scope, tracers or lines: is invalid
    # @raise [Unsupported] if a requested tracer can't work with this Ruby
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

    # Like {trace}, for a request of a web application: with its time and total duration, controller and
    # action (of Rails), parts of the Rack env, and the response's code. Written to {trace_filename}, or to
    # standard output.
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

    # @return [String, nil] the file that {trace_request} appends to
    # @example
    #   Memprof.trace_filename # => nil
    def trace_filename = @trace_journal&.path

    # Makes {trace_request} append a line for each request to a file of any size: {trace_to} without limits.
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

    # Makes {trace_request}, {Tracer} and {Filter} append a line for each request to a file. The file is
    # opened immediately, and created with mode 0600 if it does not exist.
    #
    # @param path [String, Pathname, nil] nil closes the file
    # @param max_size [Integer, nil] maximum bytes of the file; nil for no limit
    # @param when_full [Symbol] `:rotate` renames a full file to `PATH.1`, replacing that; `:stop` stops
    #   tracing requests until the file is moved away
    # @return [void]
    # @raise [Error] if it can't be opened; then the previous file remains open
    # @raise [ArgumentError] if it is not a path, or a limit is invalid
    # @example No more than 200 MB in two files
    #   Memprof.trace_to("requests.json", max_size: 100_000_000)
    #   Memprof.trace_request({ "PATH_INFO" => "/home" }) { [200, {}, []] }
    #   Memprof.trace_to(nil)
    def trace_to(path, max_size: nil, when_full: :rotate)
      path = path.to_path if path.respond_to?(:to_path)
      unless path.nil? || path.is_a?(String)
        raise ArgumentError, "path must be a String or a Pathname, not #{path.inspect}"
      end

      prepare(:Trace)
      limits = Trace::JournalFile.limits(max_size: max_size, when_full: when_full)
      journal = Trace::Journal.file(path, **limits) if path
      @trace_journal&.close
      @trace_journal = journal
    end
  end
end
