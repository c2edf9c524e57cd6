# frozen_string_literal: true

require "memprof"
require_relative "native" # before a server forks its workers
require_relative "middleware/pending"
require_relative "middleware/request"

module Memprof
  # Rack middleware that prints, for every request, the objects that it allocated and that are still alive
  # when its response is done: a blank line, a rule, and the lines of {Memprof.stats}.
  #
  # Each request is tracked in its own session, by thread: concurrent requests in a threaded server share one
  # tracker, but none sees another's objects or ends another's tracking. Objects of threads that the request
  # starts belong to it. (A server that runs many requests on *one* thread, each in a fiber, mixes those that
  # overlap.)
  #
  # Status, headers and body are passed on unchanged. If the body is an Array, tracking ends when the app
  # returns it; any other body may still be working while the server sends it, so it is wrapped in an object
  # that responds to exactly the same methods, and tracking ends when the server closes it. Tracking also ends
  # when the app raises (the report is printed, the exception propagates), when it hijacks the connection,
  # when the server reports that the response is finished (`rack.response_finished` of Rack 3,
  # `rack.after_reply` of puma), and, if a server never closes a body, when that body is garbage collected
  # (then nothing is printed).
  #
  # Works with Rack 2 and 3 and requires neither.
  #
  # @example config.ru
  #   require "memprof/middleware"
  #   use Memprof::Middleware, force_gc: true, limit: 20
  #   run ->(env) { [200, { "content-type" => "text/plain" }, ["hello"]] }
  #
  # @example Rails, in config/environments/development.rb
  #   config.middleware.use Memprof::Middleware, only: ->(env) { env["PATH_INFO"].start_with?("/orders") }
  class Middleware
    # The line printed twice above each report.
    RULE = ("-" * 80).freeze
    # Printed before the GC requested by `force_gc: true`.
    FORCING = "Forcing GC...."
    # Serializes reports: Ruby's IO may lose or repeat data that two threads write and flush at once.
    TURN = Lock.new
    # Allowed values of `report:`.
    REPORTS = %i[live allocations].freeze
    SWITCH = "memprof="
    private_constant :TURN, :REPORTS, :SWITCH

    autoload :Endpoint, "#{__dir__}/middleware/endpoint"
    autoload :Summary, "#{__dir__}/middleware/summary"
    autoload :MiniProfiler, "#{__dir__}/middleware/mini_profiler"

    # @param app [#call] the Rack app
    # @param force_gc [Boolean] run the GC before each report, so that it shows only retained objects
    # @param io [#write, nil] destination of reports, one call of `write` each; nil is the current `$stdout`
    # @param limit [Integer, nil] number of lines in a report, nil for all
    # @param only [#call, nil] called with the Rack env; requests for which it returns false are not tracked
    # @param sample [Integer, nil] record one in so many objects, on average, and scale up the counts
    # @param report [Symbol] `:live` prints the lines of live objects; `:allocations` the URL, the totals, and
    #   the lines that allocated most, including freed objects, by class and by gem
    # @param permit [#call, false, nil] called with the Rack env; returns whether the request may ask for its
    #   report with `?memprof=allocations`, `retained` or `flame`, which replaces the response (for
    #   `retained`, by a redirect to it). If it raises, the request may not. nil: if Rails or RACK_ENV is in
    #   development; false: never
    # @raise [ArgumentError] if an option is invalid
    #
    # @example
    #   require "stringio"
    #   app = ->(env) { [200, {}, [env["PATH_INFO"].upcase]] }
    #   report = StringIO.new
    #   Memprof::Middleware.new(app, io: report, limit: 5).call({ "PATH_INFO" => "/hello" })
    #   puts report.string
    def initialize(app, force_gc: false, io: nil, limit: nil, only: nil, sample: nil, report: :live,
      permit: nil)
      check(:limit, "a positive Integer", limit) { |value| value.is_a?(Integer) && value.positive? }
      check(:sample, "a positive Integer", sample) { |value| value.is_a?(Integer) && value.positive? }
      check(:io, "an object with write", io) { |value| value.respond_to?(:write) }
      check(:only, "callable", only) { |value| value.respond_to?(:call) }
      check(:permit, "callable or false", permit) { |value| !value || value.respond_to?(:call) }
      check(:report, "one of #{REPORTS.join(", ")}", report) { |value| REPORTS.include?(value) }

      @app = app
      @force_gc = force_gc
      @io = io
      @limit = limit
      @only = only
      @sample = sample
      @allocations = report == :allocations
      # Loaded by the first request that asks: this may be a signal handler, which can't load anything.
      @permit = permit.nil? ? ->(env) { Endpoint.development?(env) } : permit
      @pending = Pending.new
      @warned = false
    end

    # Runs the app under tracking; see the class comment for when the report is printed.
    #
    # @param env [Hash] the Rack environment
    # @return [Array] status, headers and body, as the app returned them
    #
    # @example
    #   require "stringio"
    #   app = Memprof::Middleware.new(->(_env) { [204, {}, []] }, io: StringIO.new)
    #   app.call({}).first # => 204
    def call(env)
      wish = asked_for(env) if @permit
      return Endpoint.new(@app, env, wish, @pending, limit: @limit).call if wish
      return @app.call(env) if @only && !@only.call(env)

      request = open_request
      return @app.call(env) unless request

      request.run(@app, env)
    end

    # Prints the report of a request. An error here (a closed pipe, a full disk) is reported once on stderr,
    # and the request continues.
    #
    # @api private
    # @param session [Memprof::Session] finished, not closed
    # @param env [Hash] the Rack environment
    # @param status [Integer, nil] of the response
    def print(session, env, status)
      GC.start if @force_gc
      text = Native.quiet { @allocations ? summary(session, env, status) : report(session) }
      io = @io || $stdout
      TURN.synchronize do
        io.write(text)
        io.flush if io.respond_to?(:flush)
      end
    rescue StandardError => error
      warn_once("cannot print its report", error)
    end

    private

    # The view that the request asks for, if permitted: nil for nearly all requests.
    def asked_for(env)
      query = env["QUERY_STRING"]
      return unless query&.include?(SWITCH)

      wish = Endpoint.wish(query)
      wish if wish && @permit.call(env)
    rescue StandardError, ScriptError => error
      warn_once("permits nothing", error)
      nil
    end

    def open_request
      Request.new(self, @sample)
    rescue Memprof::Error => error
      warn_once("does not track", error)
      nil
    end

    def report(session)
      heading = "\n#{RULE}\n#{RULE}\n#{"#{FORCING}\n" if @force_gc}"
      session.stats_text(limit: @limit, heading: heading)
    end

    def summary(session, env, status)
      request = Summary::Request.of(env, status)
      summary = Summary.new(session.report, request, retained: @force_gc, limit: @limit)
      "\n#{RULE}\n#{summary}"
    end

    def warn_once(what, error)
      return if @warned

      @warned = true
      Kernel.warn("memprof: the middleware #{what}: #{error.message} (#{error.class}); said only once")
    rescue StandardError
      nil # stderr is closed as well
    end

    def check(name, wanted, value)
      return if value.nil? || yield(value)

      raise ArgumentError, "#{name} must be #{wanted}, not #{value.inspect}"
    end
  end
end
