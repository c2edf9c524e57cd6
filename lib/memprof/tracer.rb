# frozen_string_literal: true

require "memprof"
require_relative "filter"
require_relative "job_tracer"
require_relative "trace/requests"

module Memprof
  # Rack middleware that traces every request, as {Memprof.trace_request} does, and appends a line for each to
  # `/tmp/memprof_tracer-PID.json`. `memprof trace FILE` reads such files.
  #
  # Each request counts only its own thread, so it is correct under a threaded server. A forked worker has its
  # own file. Status, headers and body are passed on unchanged; counting ends when the app returns, so it
  # excludes the work of a streaming body. If {Memprof.trace_filename} is set, lines go there. A line that
  # can't be written is reported once on stderr, and requests continue. After the file is moved away, as by
  # logrotate, the next line goes to a new one.
  #
  # Under servers that call the callables in `rack.response_finished` or `rack.after_reply` (puma, unicorn,
  # falcon), a line is written after the reply is sent; it has the state when the app returned. So lines may
  # be in a different order than the app returned, a client may see its reply before the line exists, and a
  # process killed by SIGKILL just then leaves none. One that exits writes all. A line is written before the
  # reply if the app raises, streams its body or takes over the connection, and under other servers.
  #
  # Calls are interposed when the middleware is built, and remain so, see {Tracers}.
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
    # @param path [String, nil] the file; `%p` in it becomes the process id. Default:
    #   `memprof_tracer-PID.json` in the directory in MEMPROF_DIR, or in /tmp
    # @param scope [Symbol] `:thread`, or `:process` to count all threads during a request
    # @param tracers [Array<Symbol>, nil] tracers to enable; nil for all
    # @param except [Array<Symbol>, nil] tracers to disable, such as `[:sql]`
    # @param only [#call, nil] called with the Rack env; requests for which it returns false are not traced
    # @param max_size [Integer, nil] maximum bytes of the file, see `when_full:`. The file of
    #   {Memprof.trace_to} has its own limits
    # @param when_full [Symbol] `:rotate` renames a full file to `PATH.1`, replacing that; `:stop` stops
    #   tracing until the file is moved away
    # @param one_in [Integer, nil] trace one request in so many, chosen at random
    # @param per_second [Integer, nil] trace at most so many requests a second
    # @param lines [Integer, nil] list so many lines that allocated most objects in the request, see
    #   {Memprof.trace}
    # @raise [ArgumentError] if an option is invalid
    # @example
    #   app = ->(env) { [200, {}, [env["PATH_INFO"]]] }
    #   Memprof::Tracer.new(app, path: "requests.json").call({ "PATH_INFO" => "/home" })
    # @example No more than 200 MB in two files, and no more than 50 requests a second
    #   app = ->(env) { [200, {}, [env["PATH_INFO"]]] }
    #   Memprof::Tracer.new(app, path: "requests.json", max_size: 100_000_000, per_second: 50)
    def initialize(app, path: nil, scope: :thread, tracers: nil, except: nil, only: nil, max_size: nil,
      when_full: :rotate, one_in: nil, per_second: nil, lines: nil)
      unless only.nil? || only.respond_to?(:call)
        raise ArgumentError, "only must be callable, not #{only.inspect}"
      end

      @requests = Trace::Requests.new(path: path, scope: scope, tracers: tracers, except: except,
        max_size: max_size, when_full: when_full, one_in: one_in, per_second: per_second, lines: lines)
      @requests.install # notices statements prepared before the first request
      @app = app
      @only = only
    end

    # Runs the app in a trace.
    #
    # @param env [Hash] the Rack environment
    # @return [Array] what the app returned
    # @example
    #   Memprof::Tracer.new(->(_env) { [204, {}, []] }, path: "requests.json").call({}).first # => 204
    def call(env)
      return @app.call(env) if @only && !@only.call(env)

      @requests.trace(env, later: true) { @app.call(env) }
    end
  end
end
