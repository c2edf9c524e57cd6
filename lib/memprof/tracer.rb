# frozen_string_literal: true

require "memprof"
require_relative "filter"
require_relative "trace/requests"

module Memprof
  # Rack middleware that traces every request, as {Memprof.trace_request} does, and adds a line for each to
  # `/tmp/memprof_tracer-PID.json`. `memprof trace FILE` reads such files.
  #
  # Each request counts what its own thread did, so it is right under a threaded server. A forked worker has a
  # file of its own. Status, headers and body are passed on unchanged; what is counted ends when the app
  # returns, so not what a streaming body does afterwards. If {Memprof.trace_filename} is set, lines go there.
  # Should a line be impossible to write, that is said once on stderr, and requests go on. After the file was
  # moved away, as by logrotate, the next line goes to a new one.
  #
  # Under servers that call what stands in `rack.response_finished` or `rack.after_reply` (puma, unicorn,
  # falcon), a line is written when the client has its reply; it says how things were when the app returned.
  # So lines may stand in another order than that in which the app returned, a client may see its reply before
  # there is a line, and a process that SIGKILL ends just then leaves none. One that exits writes all. Before
  # the reply a line is written if the app raises, streams its body or takes over the connection, and under
  # other servers.
  #
  # Calls are interposed as soon as the middleware is built, and stay so, see {Tracers}.
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
    # @param except [Array<Symbol>, nil] those that are not wanted, as `[:sql]`
    # @param only [#call, nil] is called with the Rack env; requests that it answers false for are not traced
    # @param max_size [Integer, nil] bytes that the file may have, see `when_full:`. The file of
    #   {Memprof.trace_to} has the limits that are given there
    # @param when_full [Symbol] `:rotate` renames a full file to `PATH.1`, replacing that; `:stop` traces no
    #   more until the file is moved away
    # @param one_in [Integer, nil] trace one request in so many, chosen at random
    # @param per_second [Integer, nil] trace so many requests a second at most
    # @param lines [Integer, nil] list so many lines that allocated most objects in the request, see
    #   {Memprof.trace}
    # @raise [ArgumentError] if an option cannot work
    # @example
    #   app = ->(env) { [200, {}, [env["PATH_INFO"]]] }
    #   Memprof::Tracer.new(app, path: "requests.json").call({ "PATH_INFO" => "/home" })
    # @example No more than 200 MB in two files, and no more than 50 requests a second
    #   app = ->(env) { [200, {}, [env["PATH_INFO"]]] }
    #   Memprof::Tracer.new(app, path: "requests.json", max_size: 100_000_000, per_second: 50)
    def initialize(app, path: nil, scope: :thread, tracers: nil, except: nil, only: nil, max_size: nil,
      when_full: :rotate, one_in: nil, per_second: nil, lines: nil)
      unless only.nil? || only.respond_to?(:call)
        raise ArgumentError, "only: wants something callable, got #{only.inspect}"
      end

      @requests = Trace::Requests.new(path: path&.to_s, scope: scope, tracers: tracers, except: except,
        max_size: max_size, when_full: when_full, one_in: one_in, per_second: per_second, lines: lines)
      @requests.install # statements that are prepared before the first request are noticed
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
