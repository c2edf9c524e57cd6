# frozen_string_literal: true

require "memprof"
require_relative "filter"
require_relative "trace"
require_relative "trace/after_reply"
require_relative "trace/keeper"
require_relative "trace/process_file"

module Memprof
  # Rack middleware that traces every request, as {Memprof.trace_request} does, and adds a line for each to
  # `/tmp/memprof_tracer-PID.json`. `memprof trace FILE` reads such files.
  #
  # Each request counts what its own thread did, so it is right under a threaded server. A forked worker has a
  # file of its own. Status, headers and body are handed on as they are; what is counted ends when the app
  # returns, so not what a streaming body does afterwards. If {Memprof.trace_filename} is set, lines go there.
  # Should a line be impossible to write, that is said once on stderr, and requests go on.
  #
  # Under servers that call what stands in `rack.response_finished` or `rack.after_reply` (puma, unicorn,
  # falcon), a line is written when the client has its reply; it says how things were when the app returned.
  # So lines may stand in another order than that in which the app returned, a client may see its reply before
  # there is a line, and a process that SIGKILL ends just then leaves none. One that exits writes all. Before
  # the reply a line is written if the app raises, streams its body or takes over the connection, and under
  # other servers.
  #
  # From the first request on, the calls that are counted stay interposed, see {Tracers}.
  #
  # Works with Rack 2 and 3 and requires neither.
  #
  # @example config.ru
  #   require "memprof/tracer"
  #   use Memprof::Tracer
  #   run ->(env) { [200, { "content-type" => "text/plain" }, ["hello"]] }
  #
  # @example Rails
  #   config.middleware.insert(0, Memprof::Tracer)
  class Tracer
    # @param app [#call] the Rack app
    # @param path [String, nil] the file; `%p` in it becomes the process id. By default
    #   `memprof_tracer-PID.json` in the directory that the variable MEMPROF_DIR names, or in /tmp
    # @param scope [Symbol] `:thread`, or `:process` to count what all threads do during a request
    # @param tracers [Array<Symbol>, nil] those that are wanted; nil for all
    # @param only [#call, nil] is called with the Rack env; requests that it answers false for are not traced
    # @raise [ArgumentError] if an option cannot work
    # @example
    #   app = ->(env) { [200, {}, [env["PATH_INFO"]]] }
    #   Memprof::Tracer.new(app, path: "requests.json").call({ "PATH_INFO" => "/home" })
    def initialize(app, path: nil, scope: :thread, tracers: nil, only: nil)
      unless only.nil? || only.respond_to?(:call)
        raise ArgumentError, "only: wants something callable, got #{only.inspect}"
      end

      @keeper = Trace::Keeper.new(scope, tracers)
      @app = app
      @file = Trace::ProcessFile.new(path&.to_s)
      @only = only
      @warned = false
    end

    # Runs the app in a trace.
    #
    # @param env [Hash] the Rack environment
    # @return [Array] what the app returned
    # @example
    #   Memprof::Tracer.new(->(_env) { [204, {}, []] }, path: "requests.json").call({}).first # => 204
    def call(env)
      return @app.call(env) if @only && !@only.call(env)

      Trace::AfterReply.catch_up
      trace = @keeper.take
      begin
        Trace::Request.trace(env, self, trace, later: true) { @app.call(env) }
      ensure
        @keeper.put_back(trace)
      end
    end

    # Adds a request to the file; what is wrong with that is the operator's matter, not the visitor's.
    #
    # @api private
    # @param record [Hash]
    # @return [void]
    def write(record)
      @keeper.look
      @file.journal.write(record)
    rescue Memprof::Error, SystemCallError, IOError => e
      warn_once(e)
    end

    private

    def warn_once(error)
      return if @warned

      @warned = true
      Kernel.warn("memprof: the tracer cannot write its report: #{error.message}; said only once")
    rescue SystemCallError, IOError
      nil # stderr is gone as well: there is nobody left to tell
    end
  end
end
